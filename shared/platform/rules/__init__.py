"""What a platform must not have, before it is merged: a table of rules, each with its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shared.frozen import dataclass
from shared.json_tree import path_text
from shared.language.resolve.problems import Problem, problem_at
from shared.language.yaml.nodes import Mark
from shared.platform.rules.conflicts import (
    cut_off,
    scaled_twice,
    selects_nothing,
    unanswered_webhooks,
    undrainable,
    unscaled,
    webhooks_of_everything,
    without_dns,
    written_in_turns,
)
from shared.platform.rules.finding import ClusterPlatform, Files, Finding
from shared.platform.rules.flux_fields import idle_markers, impatient_waits, unknown_annotations
from shared.platform.rules.kinds import kinds_of_charts, wrong_fields, wrong_kinds
from shared.platform.rules.limits import beyond_quota, refused_by_limits, refused_by_quota
from shared.platform.rules.names import (
    lasting_finalizers,
    missing_namespaces,
    too_large,
    unknown_namespaces,
    wrong_labels,
    wrong_names,
)
from shared.platform.rules.needed_objects import missing_objects
from shared.platform.rules.ownership import (
    flux_owns_itself,
    one_release_twice,
    owned_by_roadstead,
    taken_twice,
    two_owners,
)
from shared.platform.rules.placement import no_room, pods_of_azure
from shared.platform.rules.pod_security import refused_pods, root_refused
from shared.platform.rules.references import (
    beyond_rights,
    blocked_references,
    missing_charts,
    missing_sources,
    without_rights,
)
from shared.platform.rules.secrets import plain_credentials, plain_secrets, undecrypted_secrets
from shared.platform.rules.silent_builds import (
    defaults_in_scripts,
    halved_dollars,
    missing_variables,
    of_variable,
    silent_targets,
    unreplaced_variables,
)
from shared.platform.rules.waiting import (
    cycles,
    keeps_everything,
    missing_dependencies,
    reports_early,
    suspended_dependencies,
    waits_in_vain,
)
from shared.platform.rules.workloads import impossible_objects
from shared.platform.source.places import place_of, place_of_text

__all__ = ["RULES", "ClusterPlatform", "Files", "Finding", "Findings", "Rule", "findings_of", "placed"]


@dataclass(frozen=True)
class Rule:
    """A rule: what finds its faults, and who says that they are some."""

    find: Callable[[ClusterPlatform, Files], Iterator[Finding]]
    source: str


def _plain(find: Callable[[ClusterPlatform], Iterator[Finding]]) -> Callable[..., Iterator[Finding]]:
    """Return a rule that needs no files."""
    return lambda platform, _files: find(platform)


_CONTROLLER = "fluxcd/kustomize-controller internal/controller/kustomization_controller.go"
_ADMISSION = "kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers"
_API_MACHINERY = "k8s.io/apimachinery pkg"
RULES: tuple[Rule, ...] = (
    Rule(_plain(two_owners), "fluxcd/kustomize-controller#732, fluxcd/flux2#5611, argoproj/argo-cd#22607"),
    Rule(_plain(owned_by_roadstead), "fluxcd/kustomize-controller#732"),
    Rule(_plain(flux_owns_itself), "fluxcd/flux2#3949, #4570"),
    Rule(_plain(one_release_twice), "fluxcd/helm-controller api/v2 GetReleaseName, GetStorageNamespace"),
    Rule(_plain(scaled_twice), "kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale"),
    Rule(_plain(unscaled), "kubernetes/kubernetes#79365"),
    Rule(_plain(undrainable), "Azure/AKS#3558, #5767, kubernetes/kubernetes#75957"),
    Rule(_plain(taken_twice), "cert-manager/cert-manager#4846, kubernetes/ingress-nginx#8216"),
    Rule(_plain(no_room), "kubernetes/kubernetes#116891, argoproj/argo-cd#16627"),
    Rule(_plain(pods_of_azure), "Azure/AKS#1919, #1989, #3546"),
    Rule(_plain(refused_by_limits), "k8s.io/kubernetes plugin/pkg/admission/limitranger/admission.go"),
    Rule(_plain(cut_off), "kubernetes.io/docs/concepts/services-networking/network-policies"),
    Rule(_plain(without_dns), "kubernetes.io/docs/concepts/services-networking/network-policies"),
    Rule(_plain(refused_by_quota), "kubernetes.io/docs/concepts/policy/resource-quotas"),
    Rule(_plain(beyond_quota), "kubernetes/kubernetes#89209, #98656"),
    Rule(_plain(webhooks_of_everything), _ADMISSION),
    Rule(_plain(unanswered_webhooks), _ADMISSION),
    Rule(_plain(written_in_turns), "fluxcd/flux2#2472, chaos-mesh/chaos-mesh#4822"),
    Rule(_plain(missing_dependencies), f"{_CONTROLLER} checkDependencies"),
    Rule(_plain(cycles), "fluxcd/kustomize-controller#1712"),
    Rule(_plain(waits_in_vain), f"{_CONTROLLER} checkDependencies, checkHealth, apply"),
    Rule(_plain(suspended_dependencies), f"{_CONTROLLER} checkDependencies"),
    Rule(plain_secrets, "digitalocean/Kubernetes-Starter-Kit-Developers#53, goauthentik/helm#217"),
    Rule(_plain(plain_credentials), "kubernetes.io/docs/concepts/security/secrets-good-practices"),
    Rule(_plain(undecrypted_secrets), f"{_CONTROLLER} apply"),
    Rule(_plain(missing_variables), "fluxcd/kustomize-controller#253, #290"),
    Rule(defaults_in_scripts, "fluxcd/kustomize-controller#253"),
    Rule(_plain(unreplaced_variables), "fluxcd/flux2#2360, #3632, fluxcd/kustomize-controller#1126"),
    Rule(halved_dollars, "fluxcd/kustomize-controller#537, fluxcd/website#705"),
    Rule(_plain(missing_sources), f"{_CONTROLLER} getSource"),
    Rule(_plain(blocked_references), "fluxcd.io/flux/installation/configuration/multitenancy"),
    Rule(_plain(without_rights), "fluxcd.io/flux/installation/configuration/multitenancy"),
    Rule(_plain(beyond_rights), "fluxcd/flux2-multi-tenancy#69, #131, projectcapsule/capsule#516"),
    Rule(missing_charts, "fluxcd.io/flux/components/helm/helmreleases"),
    Rule(silent_targets, "kubernetes-sigs/kustomize#4379, #2798"),
    Rule(
        _plain(missing_objects),
        "k8s.io/kubernetes pkg/kubelet, plugin/pkg/admission/{serviceaccount,priority}; fluxcd/pkg "
        f"kustomize/kustomize_varsub.go LoadVariables; {_CONTROLLER} checkHealth, impersonation",
    ),
    Rule(_plain(selects_nothing), "kubernetes.io/docs/concepts/services-networking/service"),
    Rule(_plain(refused_pods), "k8s.io/pod-security-admission policy/check_*.go"),
    Rule(_plain(root_refused), "k8s.io/kubernetes pkg/kubelet/kuberuntime/security_context_others.go"),
    Rule(_plain(kinds_of_charts), "fluxcd/pkg ssa/manager_apply.go ApplyAllStaged"),
    Rule(_plain(wrong_kinds), "kubernetes.io/docs/reference/using-api/deprecation-guide"),
    Rule(_plain(wrong_fields), "k8s.io/kubernetes api/openapi-spec/v3"),
    Rule(_plain(impossible_objects), "k8s.io/kubernetes pkg/apis/*/validation/validation.go"),
    Rule(
        _plain(unknown_annotations),
        "fluxcd.io/flux/components/kustomize/kustomizations, Controlling the apply",
    ),
    Rule(_plain(impatient_waits), "fluxcd/kustomize-controller#709, argoproj/argo-cd#29205"),
    Rule(idle_markers, "fluxcd/image-automation-controller#159, #214"),
    Rule(_plain(wrong_names), f"{_API_MACHINERY}/util/validation/validation.go"),
    Rule(_plain(lasting_finalizers), "kubernetes.io/docs/concepts/overview/working-with-objects/finalizers"),
    Rule(_plain(wrong_labels), f"{_API_MACHINERY}/api/validation/objectmeta.go"),
    Rule(_plain(missing_namespaces), "fluxcd/pkg ssa/utils: an object without a namespace is one of default"),
    Rule(_plain(unknown_namespaces), "k8s.io/apiserver pkg/admission/plugin/namespace/lifecycle"),
    Rule(_plain(too_large), "etcd.io/docs/latest/dev-guide/limit, pkg/apis/core/types.go MaxSecretSize"),
    Rule(_plain(reports_early), f"{_CONTROLLER} checkHealth"),
    Rule(_plain(keeps_everything), "fluxcd.io/flux/components/kustomize/kustomizations, Prune"),
)


@dataclass(frozen=True)
class Findings:
    """What is wrong with a platform, and what is worth saying of it, each with its place."""

    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()


def findings_of(platform: ClusterPlatform, files: Files) -> tuple[Finding, ...]:
    """Return what the rules find on clusters that are alike, each finding once."""
    return tuple(dict.fromkeys(finding for rule in RULES for finding in _found(rule, platform, files)))


def _found(rule: Rule, platform: ClusterPlatform, files: Files) -> Sequence[Finding]:
    """Return what a rule finds: a note where it fails itself, so that one platform stops no other plan."""
    try:
        return tuple(of_variable(finding, files) for finding in rule.find(platform, files))
    except Exception as error:  # noqa: BLE001 - the note says where
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        where = f"{at.tb_frame.f_code.co_name}, line {at.tb_lineno}" if at else "?"
        file = next((built.file for *_, built in platform.objects if built.file), "")
        message = (
            f"what is wrong here after {rule.source} is not known: the rule itself failed "
            f"({type(error).__name__} in {where}); report it to Roadstead"
        )
        return (Finding(file, None, (), message, is_note=True),)


def placed(finding: Finding, files: Files) -> Problem:
    """Return a finding as a problem with its line; of the manifest of a cluster that is not known here."""
    content = files(finding.file) if finding.file else None
    mark = Mark(finding.file, 1, 1)
    if content is not None and finding.text:
        mark = place_of_text(content, finding.file, finding.text)
    elif content is not None:
        mark = place_of(content, finding.file, finding.of, finding.path)
    return problem_at(mark, path_text(finding.path), finding.message)
