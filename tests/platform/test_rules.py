"""What is refused in a platform before it is merged: each rule with what it refuses and what it lets pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.platform.inventory import ObjectId
from shared.platform.rules import RULES
from tests.support.built_platforms import MAIN, SOURCE, Platform, deployment

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: platform}\n"


def release(name: str, chart: str, **spec: Any) -> str:
    reference = {"kind": "HelmRepository", "name": "charts", "namespace": "flux-system"}
    manifest = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": "flux-system"},
        "spec": {"interval": "1h", "chart": {"spec": {"chart": chart, "sourceRef": reference}}, **spec},
    }
    return yaml.safe_dump(manifest, sort_keys=False)


CHARTS = """
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {interval: 1h, url: https://charts.example.com}
"""


def test_a_platform_that_is_right_has_no_problem() -> None:
    platform = Platform(NAMESPACE, deployment()).kustomize("core", deployment("gateway"))
    assert platform.problems == []
    assert platform.notes == []


@pytest.mark.parametrize(
    ("name", "creates", "hint"),
    [
        ("platfrom", False, "did you mean platform?"),
        ("elsewhere", False, "add it, unless something else creates it"),
        ("elsewhere", True, ""),
        ("kube-system", False, ""),
        ("${team}", False, ""),
    ],
)
def test_a_namespace_that_nothing_defines_is_a_note(name: str, creates: bool, hint: str) -> None:
    spec = {"targetNamespace": name, "install": {"createNamespace": creates}}
    text = deployment().replace("namespace: platform", f"namespace: {name}")
    platform = Platform(NAMESPACE, CHARTS, release("web", "podinfo", **spec), text)
    assert platform.problems == []
    found = [note for note in platform.notes if "nothing here defines the namespace" in note]
    assert [hint in note for note in found] == ([True] if hint else [])


def test_every_rule_has_a_source() -> None:
    assert all(rule.source for rule in RULES)


def test_an_object_of_two_kustomizations_is_refused_with_both_files() -> None:
    platform = Platform().kustomize("core", deployment()).kustomize("edge", deployment(image="pause:3.9"))
    assert platform.problems == [
        "platform/layers/edge/all.yaml:4:3 metadata.name: Deployment platform/web has two owners: "
        "Kustomization flux-system/core with ./platform/layers/core (platform/layers/core/all.yaml) and "
        "Kustomization flux-system/edge with ./platform/layers/edge (platform/layers/edge/all.yaml); keep it "
        "in one of them: they overwrite each other, and it is deleted when it leaves one of them"
    ]


@pytest.mark.parametrize("namespace", ["", "\n  namespace: default"])
def test_an_object_without_a_namespace_is_the_one_in_default(namespace: str) -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a{namespace}\n"
    platform = Platform(text, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n")
    assert len(platform.problems) == (1 if not namespace else 0)


SHARED = """
apiVersion: v1
kind: {kind}
metadata:
  name: shared
  annotations: {{kustomize.toolkit.fluxcd.io/{mark}}}
"""


@pytest.mark.parametrize(
    ("mark", "refused"),
    [
        ("prune: disabled", False),
        ("ssa: Merge", True),
        ("reconcile: disabled", False),
        ("ssa: Ignore", False),
    ],
)
def test_equal_objects_of_two_owners_are_right_where_nothing_deletes_them(mark: str, refused: bool) -> None:
    text = SHARED.format(kind="Namespace", mark=mark)
    platform = Platform().kustomize("core", text).kustomize("edge", text)
    assert bool(platform.problems) == refused


def test_equal_objects_that_hold_nothing_are_a_note() -> None:
    source = CHARTS
    platform = Platform().kustomize("core", source).kustomize("edge", source)
    assert platform.problems == []
    assert "has two owners" in platform.notes[0]


def waiting(*names: str) -> dict[str, Any]:
    return {"dependsOn": [{"name": name} for name in names]}


def test_a_cycle_is_refused_with_each_file() -> None:
    platform = Platform().kustomize("core", spec=waiting("edge")).kustomize("edge", spec=waiting("core"))
    assert platform.problems == [
        "platform/core.yaml:15:5 spec.dependsOn[0].name: a cycle of dependsOn: flux-system/core "
        "(platform/core.yaml) waits for flux-system/edge, and flux-system/edge (platform/edge.yaml) waits "
        "for flux-system/core, so none of them is ever applied; no Kustomization of the same source hears "
        "of a new commit either; remove one of these lines"
    ]


def test_a_kustomization_that_waits_for_itself_is_a_cycle() -> None:
    assert "waits for flux-system/a, so" in Platform().kustomize("a", spec=waiting("a")).problems[0]


def test_a_chain_of_dependencies_is_right() -> None:
    platform = Platform()
    for number in range(2000):
        platform.kustomize(f"k{number}", spec=waiting(*([f"k{number - 1}"] if number else [])))
    assert platform.problems == []


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ({"name": "cores"}, "did you mean core?"),
        ({"name": "core", "namespace": "apps"}, "flux-system/core is in another namespace"),
        ({"name": "nothing-like-it"}, "add it, or remove this line"),
    ],
)
def test_a_dependency_that_is_nowhere_is_refused(wanted: dict[str, str], hint: str) -> None:
    platform = Platform().kustomize("core").kustomize("edge", spec={"dependsOn": [wanted]})
    assert len(platform.problems) == 1
    assert platform.problems[0].startswith("platform/edge.yaml:15:5 spec.dependsOn[0].name: there is no")
    assert hint in platform.problems[0]


def test_a_dependency_of_the_manifest_of_the_cluster_is_there() -> None:
    platform = Platform(spec={"wait": False}).kustomize("edge", spec=waiting("flux-system"))
    assert platform.problems == []


def test_helm_releases_that_wait_for_each_other_are_refused() -> None:
    first, second = (release(a, "podinfo", **waiting(b)) for a, b in (("a", "b"), ("b", "a")))
    assert "a cycle of dependsOn" in Platform(CHARTS, first, second).problems[0]


MAIL = """
apiVersion: v1
kind: Secret
metadata:
  name: mail-relay
  namespace: platform
stringData:
  password: correct-horse-example
data:
  fallback: YmF0dGVyeS1zdGFwbGUtZXhhbXBsZQ==
"""


def test_a_secret_in_plain_text_is_refused_at_each_field_and_no_value_is_shown() -> None:
    problems = Platform(MAIL).problems
    places = [problem.split(": ")[0] for problem in problems]
    assert places == [
        "platform/all.yaml:7:3 stringData.password",
        "platform/all.yaml:9:3 data.fallback",
    ]
    values = ("correct-horse-example", "YmF0dGVyeS1zdGFwbGUtZXhhbXBsZQ", "battery-staple-example")
    assert not any(value in problem for value in values for problem in problems)


ENCRYPTED = """
apiVersion: v1
kind: Secret
metadata: {name: a, namespace: platform}
data:
  password: ENC[AES256_GCM,data:abc,iv:def,tag:ghi,type:str]
sops:
  mac: ENC[AES256_GCM,data:abc,iv:def,tag:ghi,type:str]
"""


@pytest.mark.parametrize("key", ["pin", "password", "API_KEY", "auth.token"])
def test_a_short_number_is_a_secret_where_its_name_says_so(key: str) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\n"
    assert len(Platform(f"{text}stringData: {{{key}: '1234'}}\n").problems) == 1
    assert Platform(f"{text}stringData: {{retries: '1234'}}\n").problems == []


def test_a_secret_of_sops_is_right_where_it_is_decrypted() -> None:
    decrypting = {"decryption": {"provider": "sops", "secretRef": {"name": "sops-age"}}}
    assert Platform().kustomize("core", ENCRYPTED, spec=decrypting).problems == []
    refused = Platform().kustomize("core", ENCRYPTED).problems
    assert len(refused) == 1
    assert "has no spec.decryption, so Flux refuses it" in refused[0]


def test_a_generated_secret_is_refused_at_its_generator() -> None:
    kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nsecretGenerator:\n"
    kustomization += "  - name: mail\n    literals: [password=correct-horse-example]\n"
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: mail-5hg7b2k9tf, namespace: a}\n"
    secret += "data: {password: Y29ycmVjdC1ob3JzZS1leGFtcGxl}\n"
    platform = Platform(secret)
    platform.files["platform/all.yaml"] = kustomization
    assert platform.problems[0].startswith("platform/all.yaml:4:5 secretGenerator[0]: Secret")


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\ntype: Opaque\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nstringData: {AZURE_CLIENT_ID: "
        "0c1ff0c1-0000-4000-8000-000000000001, USE_WORKLOAD_IDENTITY_AUTH: 'true', port: '5432', SYNC: 1h}\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\n"
        "stringData: {ca.crt: '-----BEGIN CERTIFICATE-----\n  MIIB\n  -----END CERTIFICATE-----'}\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nstringData: {token: '${token}'}\n",
        "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: a, namespace: b}\n",
        "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: a, namespace: b}\nspec: {}\n",
    ],
)
def test_what_holds_no_secret_is_right(text: str) -> None:
    assert Platform(text).problems == []


SCRIPT = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: rotate
  namespace: platform
data:
  rotate.sh: |
    #!/bin/sh
    echo "$${target}" > /tmp/log
    cp "$HOME" "${target}/${file##*/}"
"""


def test_variables_without_value_are_refused_at_their_lines() -> None:
    file = "platform/layers/jobs/all.yaml"
    missing = {"target": (file,), "file": (file,)}
    platform = Platform().kustomize("jobs", SCRIPT, missing=missing, variables={"cluster_name": "one"})
    problems = platform.problems
    assert [problem.split(": ")[0] for problem in problems] == [f"{file}:10:17", f"{file}:10:27"]
    assert "in a script, write $${target}" in problems[0]
    assert "kustomize.toolkit.fluxcd.io/substitute: disabled" in problems[0]


def test_a_script_that_loses_its_defaults_is_a_note() -> None:
    file, built = "platform/layers/jobs/all.yaml", SCRIPT.replace("${target}/${file##*/}", "/tmp")
    platform = Platform(NAMESPACE).kustomize("jobs", built, variables={"cluster_name": "one"})
    platform.files[file] = SCRIPT.replace("${target}/${file##*/}", "${target:-/tmp}")
    assert platform.problems == []
    assert "Flux replaces ${target:-...} by its default" in platform.notes[0]


def test_a_source_that_is_not_there_is_refused_once_with_who_needs_it() -> None:
    platform = Platform(release("a", "podinfo"), release("b", "podinfo"))
    assert [problem.split(": ", 1)[1] for problem in platform.problems] == [
        "there is no HelmRepository flux-system/charts, which HelmRelease flux-system/a and HelmRelease "
        "flux-system/b refer to, and so never become Ready; add it, or correct the name"
    ]
    assert platform.add(CHARTS).problems == []


@pytest.mark.parametrize(
    ("reference", "hint"),
    [
        ({"kind": "GitRepository", "name": "flux-sytem"}, "did you mean flux-system?"),
        ({"kind": "OCIRepository", "name": "flux-system"}, "there is a GitRepository of this name"),
        (
            {"kind": "GitRepository", "name": "flux-system", "namespace": "apps"},
            "it is in the namespace flux-system",
        ),
    ],
)
def test_a_source_that_is_misspelt_is_refused_with_the_right_one(
    reference: dict[str, str], hint: str
) -> None:
    platform = Platform().kustomize("edge", spec={"sourceRef": reference})
    assert len(platform.problems) == 1
    assert hint in platform.problems[0]


def test_a_kustomization_of_another_source_brings_what_nobody_knows() -> None:
    other = (
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: other, namespace: "
    )
    other += "flux-system}\nspec: {interval: 1m, url: https://example.com/a}\n"
    platform = Platform(release("a", "podinfo"), other)
    assert len(platform.problems) == 1
    platform.kustomize("more", spec={"sourceRef": {"kind": "GitRepository", "name": "other"}})
    assert platform.problems == []


def test_a_missing_source_is_a_note_where_not_everything_was_built() -> None:
    platform = Platform(release("a", "podinfo")).kustomize("edge", unbuilt="a remote base")
    assert platform.problems == []
    assert any("there is no HelmRepository" in note for note in platform.notes)


VALUES = """
apiVersion: v1
kind: ConfigMap
metadata: {name: web-values-5hg7b2k9tf, namespace: flux-system}
"""


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"kind": "ConfigMap", "name": "web-values"}, "the generator calls it web-values-5hg7b2k9tf"),
        ({"kind": "ConfigMap", "name": "cluster-fact"}, "did you mean cluster-facts?"),
        ({"kind": "ConfigMap", "name": "cluster-facts"}, ""),
        ({"kind": "ConfigMap", "name": "settings"}, ""),
        ({"kind": "ConfigMap", "name": "cluster-fact", "optional": True}, ""),
        ({"kind": "Secret", "name": "web"}, ""),
    ],
)
def test_values_that_nothing_defines_are_refused_where_a_name_beside_is_meant(
    entry: dict[str, Any], problem: str
) -> None:
    found = Platform(CHARTS, VALUES, release("a", "podinfo", valuesFrom=[entry])).problems
    assert [problem in text for text in found] == ([True] if problem else [])


def test_a_key_of_sops_that_nothing_brings_is_a_note() -> None:
    keys = {"decryption": {"provider": "sops", "secretRef": {"name": "sops-age"}}}
    platform = Platform(NAMESPACE).kustomize("core", deployment("gateway"), spec=keys)
    assert platform.problems == []
    assert any("nothing here defines Secret flux-system/sops-age" in note for note in platform.notes)


def test_another_namespace_is_refused_where_flux_is_locked_down() -> None:
    elsewhere = release("a", "podinfo").replace("namespace: flux-system\nspec", "namespace: apps\nspec")
    assert Platform(CHARTS, elsewhere).problems == []
    refused = Platform(CHARTS, elsewhere, blocking=("helm-controller",)).problems
    assert len(refused) == 1
    assert "refers to the namespace flux-system, which helm-controller refuses" in refused[0]


BINDING = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: default-applies}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
  - {kind: ServiceAccount, name: default, namespace: flux-system}
"""


def test_a_kustomization_without_account_has_no_rights_where_flux_is_locked_down() -> None:
    confining = ("kustomize-controller",)
    assert (
        "without serviceAccountName: Kustomization flux-system/core"
        in Platform(confining=confining).kustomize("core").problems[0]
    )
    account = {"serviceAccountName": "kustomize-controller"}
    assert Platform(confining=confining).kustomize("core", spec=account).problems == []
    assert Platform(BINDING, confining=confining).kustomize("core").problems == []
    assert Platform().kustomize("core").problems == []


ISSUER = """
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: letsencrypt}
spec: {selfSigned: {}}
"""


def test_a_kind_that_only_the_chart_beside_it_brings_is_refused() -> None:
    platform = Platform(CHARTS).kustomize("certs", release("cert-manager", "cert-manager"), ISSUER)
    assert len(platform.problems) == 1
    assert "move the ClusterIssuer into a Kustomization that depends on this one" in platform.problems[0]


@pytest.mark.parametrize(
    "values", [{"values": {"crds": {"enabled": False}}}, {"install": {"crds": "Skip"}}, {"suspend": True}]
)
def test_a_release_that_leaves_its_definitions_out_brings_none(values: dict[str, Any]) -> None:
    text = release("cert-manager", "cert-manager", **values)
    refused = Platform(CHARTS).kustomize("certs", text, ISSUER).problems
    assert bool(refused) == ("suspend" in values)


def test_a_kind_that_a_chart_of_another_kustomization_brings_is_right() -> None:
    platform = Platform(CHARTS).kustomize("certs", release("cert-manager", "cert-manager"))
    platform.kustomize("issuers", ISSUER, release("web", "podinfo"), spec=waiting("certs"))
    assert platform.problems == []
    assert any("nothing here defines cert-manager.io/v1 ClusterIssuer" in note for note in platform.notes)


def test_a_kind_that_no_chart_is_known_to_bring_is_a_note() -> None:
    route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a, namespace: b}\n"
    assert Platform(CHARTS).kustomize("web", release("web", "podinfo"), route).problems == []


BACKUPS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.data.example.com}
spec:
  group: data.example.com
  names: {kind: Backup, plural: backups}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [schedule]
              properties:
                schedule: {type: string}
                keep: {type: integer, minimum: 1}
                mode: {type: string, enum: [full, delta]}
                options: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
BACKUP = """
apiVersion: data.example.com/v1
kind: Backup
metadata:
  name: nightly
  namespace: platform
spec:
  schedule: daily
"""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("schedule", "schedule"), ""),
        (("schedule: daily", "schedule: daily\n  options: {any: thing}"), ""),
        (("schedule: daily", "schedul: daily"), "6:1 spec: schedule is missing; add it"),
        (
            ("schedule: daily", "schedule: 5"),
            "7:3 spec.schedule: must be a string, got 5; write it in quotes",
        ),
        (("schedule: daily", "schedule: a\n  keep: 0"), "8:3 spec.keep: must be 1 or more, got 0"),
        (
            ("schedule: daily", "schedule: a\n  mode: fulll"),
            "8:3 spec.mode: must be full or delta, got fulll",
        ),
        (
            ("schedule: daily", "schedule: a\n  kep: 1"),
            "8:3 spec.kep: there is no such field; did you mean keep?",
        ),
        (("com/v1", "com/v1beta1"), "1:1 apiVersion: data.example.com/v1beta1 Backup is not served"),
    ],
)
def test_a_custom_object_fits_its_definition(change: tuple[str, str], problem: str) -> None:
    platform = Platform().kustomize("data", BACKUPS).kustomize("apps", BACKUP.replace(*change))
    found = [text.removeprefix("platform/layers/apps/all.yaml:") for text in platform.problems]
    assert [text for text in found if text.startswith(problem)] if problem else found == []


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (
            "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget",
            "not served since Kubernetes 1.25; write policy/v1,",
        ),
        (
            "apiVersion: extensions/v1beta1\nkind: Ingress",
            "not served since Kubernetes 1.22; write networking.k8s",
        ),
        ("apiVersion: v1\nkind: Deployment", "there is no Deployment in v1; write apps/v1"),
        ("apiVersion: app/v1\nkind: Deployment", "there is no Deployment in app/v1; write apps/v1"),
        (
            "apiVersion: apps/v1\nkind: Deploymnt",
            "Kubernetes has no kind Deploymnt in apps/v1; did you mean Deployment?",
        ),
        (
            "apiVersion: helm.toolkit.fluxcd.io/v2beta1\nkind: HelmRelease",
            "is not served: its definition has no v2beta1; write helm.toolkit.fluxcd.io/v2",
        ),
        (
            "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy",
            "is served from Kubernetes 1.36 on, and not by 1.34",
        ),
        (
            "apiVersion: networking.k8s.io/v1beta1\nkind: IPAddress",
            "",
        ),
    ],
)
def test_a_kind_that_nothing_serves_is_refused(manifest: str, problem: str) -> None:
    found = Platform(f"{manifest}\nmetadata: {{name: a, namespace: b}}\nspec: {{}}\n").problems
    assert any(problem in text for text in found) if problem else not any("served" in text for text in found)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"replicas": "3"}, 'spec.replicas: must be an integer, got "3"'),
        ({"replica": 3}, "spec.replica: there is no such field; did you mean replicas?"),
        (
            {"strategy": {"type": "Recreat"}},
            "spec.strategy.type: must be Recreate or RollingUpdate, got Recreat",
        ),
        (
            {"template": {"metadata": {"labels": {"app": "other"}}, "spec": {"containers": []}}},
            "does not match",
        ),
        ({"template": None}, "spec.template.spec.containers: a pod needs at least one container"),
        ({"selector": None}, "spec.selector: a selector is needed"),
        ({"paused": "true"}, 'spec.paused: must be true or false, got "true"'),
        ({"replicas": 3, "revisionHistoryLimit": 2}, ""),
    ],
)
def test_fields_are_those_of_the_published_schema(spec: dict[str, Any], problem: str) -> None:
    found = Platform(deployment(**spec)).problems
    assert any(problem in text for text in found) if problem else found == []


def test_a_field_of_a_newer_kubernetes_is_refused_for_an_older_one() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec:\n  hostnameOverride: a\n"
    text += "  containers: [{name: a, image: b}]\n"
    assert Platform(text, kubernetes="1.36").problems == []
    assert Platform(text, kubernetes="1.31").problems == [
        "platform/all.yaml:5:3 spec.hostnameOverride: there is no such field in Kubernetes 1.31; it comes "
        "with 1.34"
    ]


@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [
        ("Namespace", "Apps_Bad", True),
        ("Namespace", "apps.bad", True),
        ("Namespace", "apps-good", False),
        ("Namespace", "a" * 64, True),
        ("ConfigMap", "apps.good", False),
        ("ConfigMap", "Apps", True),
        ("Service", "1st", True),
    ],
)
def test_names_are_those_that_the_api_server_takes(kind: str, name: str, wrong: bool) -> None:
    spec = "\nspec: {ports: [{port: 80}]}" if kind == "Service" else ""
    found = Platform(f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}{spec}\n").problems
    assert bool(found) == wrong
    assert all(text.startswith("platform/all.yaml:4:3 metadata.name: ") for text in found)


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ("labels: {app: ok}", ""),
        ("labels: {app: 'not ok'}", "the value of a label must be"),
        ("labels: {'/app': a}", "must have the name of a domain before the /"),
        ("labels: {app: true}", 'must be a string, got true; write it in quotes, as "true"'),
        ("annotations: {a.b/c: any thing}", ""),
        ("annotations: {a b: c}", "must be at most 63 letters"),
        ("uid: 0d6f1c1e", "every apply is refused as a conflict"),
        ("resourceVersion: '7'", "every apply is refused as a conflict"),
        ("creationTimestamp: null", ""),
        ("labels: {pod-security.kubernetes.io/enforce: restricted}", ""),
        ("labels: {pod-security.kubernetes.io/enforce: restrictive}", "did you mean restricted?"),
        (
            "labels: {pod-security.kubernetes.io/warn-version: '1.36'}",
            "must be latest, or a version as v1.36",
        ),
        ("labels: {pod-security.kubernetes.io/warn-version: latest}", ""),
    ],
)
def test_labels_and_annotations_are_those_that_the_api_server_takes(metadata: str, problem: str) -> None:
    found = Platform(f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  {metadata}\n").problems
    assert [problem in text for text in found] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("spec: {type: ClusterIP, ports: [{port: 80, nodePort: 30000}]}", "does not go with type ClusterIP"),
        (
            "spec: {ports: [{name: a, port: 80}, {port: 81}]}",
            "name is missing, and a Service with several ports needs it",
        ),
        ("spec: {ports: [{port: 70000}]}", "must be 1 to 65535, got 70000"),
        ("spec: {type: NodePort, ports: [{port: 80, nodePort: 8080}]}", "must be 30000 to 32767, got 8080"),
        ("spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}]}", ""),
        ("spec: {type: LoadBalancer, ports: [{port: 80, nodePort: 0}]}", ""),
        ("spec: {selector: {a: b}}", "ports is missing"),
        ("spec: {clusterIP: None, selector: {a: b}}", ""),
        ("spec: {type: ExternalName, externalName: a.example.com}", ""),
        ("spec: {ports: [{port: 80, targetPort: http}]}", ""),
        ("spec: {ports: [{port: 80, targetPort: '8080'}]}", "write it without quotes"),
        ("spec: {ports: [{name: a, port: 80}, {name: b, port: 80}]}", "the port 80 is here twice"),
        ("spec: {ports: [{name: a, port: 53}, {name: b, port: 53, protocol: UDP}]}", ""),
    ],
)
def test_what_the_api_server_always_refuses_is_refused(text: str, problem: str) -> None:
    found = Platform(f"apiVersion: v1\nkind: Service\nmetadata: {{name: a, namespace: b}}\n{text}\n").problems
    assert [problem in text for text in found] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("container", "problem"),
    [
        ("ports: [{containerPort: 80, name: a-name-of-sixteen}]", "must be at most 15"),
        ("ports: [{containerPort: 80, name: http-metrics}]", ""),
        ("readinessProbe: {httpGet: {port: '80'}}", "write it without quotes"),
        ("readinessProbe: {httpGet: {port: http}}", "no port of this container is called http"),
        ("{livenessProbe: {tcpSocket: {port: http}}, ports: [{containerPort: 80, name: http}]}", ""),
        ("{startupProbe: {httpGet: {port: http}}, ports: [{containerPort: 80, name: '${port_name}'}]}", ""),
        ("env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", "does not go with"),
        ("env: [{name: A, value: b}, {name: A, value: c}]", "the name A is here twice"),
        ("env: [{name: A, value: ''}, {name: B, value: ''}]", ""),
        (
            "volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /a}]",
            "the mountPath /a is here twice",
        ),
    ],
)
def test_a_container_is_one_that_the_api_server_takes(container: str, problem: str) -> None:
    given = {"name": "web", "image": "web:1", **yaml.safe_load(container)}
    spec = {"containers": [given], "volumes": [{"name": "v", "emptyDir": {}}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    found = Platform(NAMESPACE, deployment(template=template)).problems
    assert [problem in text for text in found] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("image", "right"),
    [
        ("registry.k8s.io/pause", True),
        ("localhost:5000/team/web__api:v1.2_3@sha256:" + "0" * 64, True),
        ("${registry}/web", True),
        ("Registry.k8s.io/pause: 3.10", False),
        ("web:1.2:3", False),
        ("registry.k8s.io/Pause", False),
    ],
)
def test_an_image_has_a_name_that_the_kubelet_takes(image: str, right: bool) -> None:
    spec = {"containers": [{"name": "web", "image": image}]}
    found = Platform(
        NAMESPACE, deployment(template={"metadata": {"labels": {"app": "web"}}, "spec": spec})
    ).problems
    assert ["is no name of an image" in text for text in found] == ([] if right else [True])


@pytest.mark.parametrize(
    ("label", "problem"),
    [("edge team", "the value of a label must be"), (1, "must be a string, got 1"), ("${team}", "")],
)
def test_a_label_of_a_template_is_refused_once(label: object, problem: str) -> None:
    labels = {"app": "web", "team": label}
    spec = {"containers": [{"name": "web", "image": "web:1"}]}
    found = Platform(NAMESPACE, deployment(template={"metadata": {"labels": labels}, "spec": spec})).problems
    assert [problem in text for text in found] == ([True] if problem else [])


IN_B = "metadata: {name: a, namespace: b}"
SCALED = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}"
GROUP = "subjects: [{kind: Group, name: g, apiGroup: rbac.authorization.k8s.io}]"


@pytest.mark.parametrize(
    ("api", "kind", "text", "problem"),
    [
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            f"spec: {{minReplicas: 2, maxReplicas: 1, {SCALED}}}",
            "at least",
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            f"spec: {{minReplicas: 2, maxReplicas: 2, {SCALED}}}",
            "",
        ),
        ("networking.k8s.io/v1", "Ingress", "spec: {rules: [{host: A_b.example.com}]}", "no name of a host"),
        ("networking.k8s.io/v1", "Ingress", "spec: {rules: [{host: '*.example.com'}]}", ""),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "spec: {podSelector: {}, egress: [{to: [{ipBlock: {cidr: 10.0.0.0/33}}]}]}",
            "no block of addresses",
        ),
        (
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            f"roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}\n{GROUP}",
            "must be ClusterRole",
        ),
    ],
)
def test_objects_of_many_kinds_are_those_that_the_api_server_takes(
    api: str, kind: str, text: str, problem: str
) -> None:
    found = Platform(f"apiVersion: {api}\nkind: {kind}\n{IN_B}\n{text}\n").problems
    assert [problem in text for text in found] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("strategy", "problem"),
    [
        ({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}, "does not go with type Recreate"),
        ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}, "must not be 0"),
        ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, ""),
        ({"rollingUpdate": {"maxUnavailable": 0}}, ""),
    ],
)
def test_a_deployment_can_replace_its_pods(strategy: dict[str, Any], problem: str) -> None:
    found = Platform(NAMESPACE, deployment(strategy=strategy)).problems
    assert [problem in text for text in found] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("schedule", "right"),
    [
        ("0 3 * * 1", True),
        ("*/15 0-6,18 1,15 JAN-JUN MON-FRI", True),
        ("@daily", True),
        ("@every 1h30m", True),
        ("${schedule}", True),
        ("61 * * * *", False),
        ("0 3 * *", False),
        ("0 3 * * 7", False),
        ("0 6-3 * * *", False),
        ("*/0 * * * *", False),
        ("@dayly", False),
    ],
)
def test_a_schedule_is_one_that_the_api_server_reads(schedule: str, right: bool) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1"}]}
    spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    metadata = {"name": "a", "namespace": "b"}
    given = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}
    assert ["is no schedule" in text for text in Platform(yaml.safe_dump(given)).problems] == [True] * (
        not right
    )


@pytest.mark.parametrize(
    ("field", "size", "refused"),
    [
        ("data", 1024 * 1024, False),
        ("data", 1024 * 1024 + 1, True),
        ("annotations", 256 * 1024 - 1, False),
        ("annotations", 256 * 1024, True),
    ],
)
def test_an_object_over_a_limit_is_refused(field: str, size: int, refused: bool) -> None:
    metadata: dict[str, Any] = {"name": "a", "namespace": "b"}
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    (metadata if field == "annotations" else manifest)[field] = {"k": "x" * size}
    assert bool(Platform(yaml.safe_dump(manifest)).problems) == refused


def test_a_kustomization_that_checks_and_prunes_nothing_is_a_note() -> None:
    notes = Platform().kustomize("core", spec={"wait": False, "prune": False}).notes
    assert any("flux-system/core: Ready as soon as applied" in note for note in notes)
    assert any("flux-system/core: without prune" in note for note in notes)


def test_a_source_that_roadstead_applies_is_a_note() -> None:
    source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, "
    source += (
        "namespace: flux-system}\nspec: {interval: 1m, url: https://example.com/a, ref: {branch: main}}\n"
    )
    assert Platform(source).problems == []
    assert "Roadstead applies it too" in Platform(source).notes[0]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, ""),
        ({"timeout": "5m"}, ""),
        ({"path": "platform/"}, ""),
        ({"path": "./other"}, "spec.path"),
        ({"prune": False}, "spec.prune"),
        ({"suspend": True}, "spec.suspend"),
        ({"sourceRef": {"kind": "GitRepository", "name": "other"}}, "spec.sourceRef"),
    ],
)
def test_the_platform_points_no_kustomization_of_the_fleet_elsewhere(
    spec: dict[str, Any], field: str
) -> None:
    main = {
        "path": "./platform",
        "prune": True,
        "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
    }
    given = {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "flux-system", "namespace": "flux-system"},
        "spec": {"interval": "10m", **main, **spec},
    }
    platform = Platform(yaml.safe_dump(given), provided=(SOURCE, MAIN))
    found = [text for text in platform.problems if "two owners" in text]
    assert [f"{field} differs" in text for text in found] == ([True] if field else [])


@pytest.mark.parametrize(("marks", "refused"), [("", True), (", annotations: {MARK/prune: disabled}", False)])
def test_a_namespace_of_a_team_is_in_the_platform_only_where_it_stays_when_it_leaves(
    marks: str, refused: bool
) -> None:
    text = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop{marks}}}\n"
    shop = ObjectId("", "Namespace", "", "shop")
    platform = Platform(text.replace("MARK", "kustomize.toolkit.fluxcd.io"), provided=(SOURCE, shop))
    assert ["two owners: Roadstead" in text for text in platform.problems] == [True] * refused
    assert ["two owners: Roadstead" in text for text in platform.notes] == [True] * (not refused)


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        (
            {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "webs"},
            "did you mean web?",
        ),
        ({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "web"}, ""),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "name": "of-a-chart"}, ""),
    ],
)
def test_a_health_check_of_what_only_git_defines_is_there(check: dict[str, str], problem: str) -> None:
    spec = {"wait": False, "healthChecks": [{**check, "namespace": "flux-system"}]}
    found = Platform(CHARTS, release("web", "podinfo")).kustomize("core", spec=spec).problems
    assert [problem in text for text in found] == ([True] if problem else [])


def test_a_chart_of_the_repository_is_there_with_its_values() -> None:
    values = ["charts/web/values.yaml", "charts/web/large.yaml"]
    reference = {"kind": "GitRepository", "name": "flux-system"}
    spec = {"chart": "./charts/web", "valuesFiles": values, "sourceRef": reference}
    manifest = yaml.safe_load(release("web", "podinfo"))
    manifest["spec"]["chart"]["spec"] = spec
    platform = Platform(yaml.safe_dump(manifest))
    assert [problem.split(": ")[1].partition(" in this")[0] for problem in platform.problems] == [
        "there is no chart ./charts/web",
        "there is no file ./charts/web/values.yaml",
        "there is no file ./charts/web/large.yaml",
    ]
    platform.files |= {f"charts/web/{name}": "a: b\n" for name in ("Chart.yaml", "values.yaml", "large.yaml")}
    assert platform.problems == []


CASES = Path(__file__).parents[2] / "examples"


def trees() -> Sequence[Path]:
    return sorted(path for path in CASES.glob("*/platform/**/*.yaml") if path.name != "kustomization.yaml")


@pytest.mark.parametrize("path", trees(), ids=lambda path: str(path.relative_to(CASES)))
def test_nothing_is_wrong_with_the_fields_of_the_examples(path: Path) -> None:
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    platform = Platform(provided=[SOURCE, ObjectId("", "ConfigMap", "flux-system", "cluster-facts")])
    kinds = platform.platform.kinds
    faults = [fault for document in documents for fault in kinds.faults(document)]
    assert faults == []
