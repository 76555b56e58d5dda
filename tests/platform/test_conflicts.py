"""What works against something else on the cluster is said before the merge; all else stays silent."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from shared.platform.inventory import ObjectId
from tests.platform.inventories import manifest, release
from tests.support.built_platforms import SOURCE, Platform, deployment
from tests.support.flux_definitions import real_definitions

NAMESPACES = "\n---\n".join(
    f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}" for name in ("platform", "apps")
)


def said(*objects: dict[str, Any], text: str = "") -> tuple[list[str], list[str]]:
    """Return the problems and the notes of a platform with these objects."""
    documents = [yaml.safe_dump(given) for given in objects]
    platform = Platform(NAMESPACES, *([text] if text else []), *documents)
    return platform.problems, platform.notes


def of_prom(name: str, **spec: Any) -> dict[str, Any]:
    return release(name, **spec)


@pytest.mark.parametrize(
    ("second", "refused"),
    [
        (of_prom("platform/other", releaseName="prom"), True),
        (of_prom("apps/prom", storageNamespace="platform"), True),
        (of_prom("apps/prom"), False),
        (of_prom("platform/other"), False),
        (of_prom("platform/other", releaseName="${name}"), False),
        (of_prom("platform/other", releaseName="prom", kubeConfig={"secretRef": {"name": "a"}}), False),
    ],
)
def test_a_release_has_one_helm_release(second: dict[str, Any], refused: bool) -> None:
    problems, _ = said(of_prom("platform/prom"), second)
    assert any("the release platform/prom has 2 HelmReleases" in problem for problem in problems) == refused


def scaler(name: str, target: str = "web") -> dict[str, Any]:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    spec = {"scaleTargetRef": ref, "maxReplicas": 3}
    return manifest("HorizontalPodAutoscaler", f"platform/{name}", "autoscaling/v2", spec=spec)


def test_two_autoscalers_of_a_workload_are_refused() -> None:
    problems, _ = said(scaler("a"), scaler("b"))
    assert "HorizontalPodAutoscaler platform/a and HorizontalPodAutoscaler platform/b scale" in problems[0]
    assert said(scaler("a"), scaler("b", "api"))[0] == []


def test_an_autoscaler_and_flux_both_scale_what_has_replicas_in_git() -> None:
    problems, notes = said(scaler("a"), text=deployment(replicas=3))
    assert problems == []
    assert (
        "spec.replicas: HorizontalPodAutoscaler platform/a scales Deployment platform/web, and Flux"
        in notes[0]
    )
    assert said(scaler("a"), text=deployment().replace("  replicas: 1\n", "")) == ([], [])


@pytest.mark.parametrize(
    ("spec", "replicas", "held"),
    [
        ({"maxUnavailable": 0}, 3, True),
        ({"maxUnavailable": "0%"}, 3, True),
        ({"minAvailable": "100%"}, 3, True),
        ({"minAvailable": 1}, None, True),
        ({"minAvailable": 3}, 3, True),
        ({"minAvailable": 2}, 3, False),
        ({"maxUnavailable": 1}, 1, False),
        ({"minAvailable": 1}, 0, False),
    ],
)
def test_a_budget_that_lets_no_pod_go_is_a_note(
    spec: dict[str, Any], replicas: int | None, held: bool
) -> None:
    selector = {"selector": {"matchLabels": {"app": "web"}}}
    budget = manifest("PodDisruptionBudget", "platform/web", "policy/v1", spec=spec | selector)
    more: dict[str, Any] = {} if replicas is None else {"replicas": replicas}
    problems, notes = said(budget, text=deployment(**more))
    assert problems == []
    assert any("no pod of Deployment platform/web may be evicted" in note for note in notes) == held


def policy(namespace: str, **spec: Any) -> dict[str, Any]:
    name = f"{namespace}/deny-{len(spec)}"
    return manifest("NetworkPolicy", name, "networking.k8s.io/v1", spec={"podSelector": {}, **spec})


DNS = {"ports": [{"port": 53, "protocol": "UDP"}]}


@pytest.mark.parametrize(
    ("policies", "refused"),
    [
        ([policy("kube-system", policyTypes=["Ingress"])], True),
        ([policy("kube-system", policyTypes=["Egress"])], True),
        ([policy("kube-system")], True),
        ([policy("platform", policyTypes=["Ingress", "Egress"])], False),
        ([policy("kube-system", policyTypes=["Ingress"], ingress=[DNS])], False),
        ([policy("kube-system"), policy("kube-system", policyTypes=["Ingress"], ingress=[DNS])], False),
    ],
)
def test_nothing_cuts_the_pods_of_kubernetes_off(policies: list[dict[str, Any]], refused: bool) -> None:
    assert any("resolves" in problem for problem in said(*policies)[0]) == refused


@pytest.mark.parametrize("direction", ["Ingress", "Egress"])
@pytest.mark.parametrize(
    ("own", "definitions", "refused", "noted"),
    [
        (False, real_definitions(), True, False),
        (False, (), False, True),
        (True, real_definitions(), False, False),
    ],
)
def test_nothing_cuts_flux_off(
    direction: str, own: bool, definitions: Any, refused: bool, noted: bool
) -> None:
    """Reports: fluxcd/flux2#2152, #703: what the components allow themselves stays."""
    allowing = ObjectId("networking.k8s.io", "NetworkPolicy", "flux-system", "allow-egress")
    provided = (SOURCE, allowing) if own else (SOURCE,)
    text = yaml.safe_dump(policy("flux-system", policyTypes=[direction]))
    platform = Platform(text, provided=provided, definitions=definitions)
    assert any("so Flux applies nothing any more" in problem for problem in platform.problems) == refused
    assert any("so Flux applies nothing any more" in note for note in platform.notes) == noted


@pytest.mark.parametrize(
    ("kind", "api"),
    [("CiliumNetworkPolicy", "cilium.io/v2"), ("FluxInstance", "fluxcd.controlplane.io/v1")],
)
def test_an_object_of_another_kind_may_allow_what_flux_needs(kind: str, api: str) -> None:
    denying = policy("flux-system", policyTypes=["Egress"])
    other = manifest(kind, "flux-system/flux", api)
    problems, notes = said(denying, other)
    assert not any("so Flux applies nothing any more" in problem for problem in problems)
    assert any("so Flux applies nothing any more" in note for note in notes)


SERVICE = manifest("Service", "platform/hook", spec={"ports": [{"port": 443}], "selector": {"app": "web"}})
ALL = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
WIDGETS = [{"apiGroups": ["a.b"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"]}]


def webhook(**fields: Any) -> dict[str, Any]:
    service = {"name": "hook", "namespace": "platform"}
    rest = {"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    given = {**rest, "clientConfig": {"service": service}, "rules": WIDGETS, **fields}
    api = "admissionregistration.k8s.io/v1"
    return manifest("ValidatingWebhookConfiguration", "w", api, webhooks=[given])


def test_a_webhook_that_fails_closed_has_a_service() -> None:
    assert "nothing here defines Service platform/hook" in said(webhook())[0][0]
    assert said(webhook(), SERVICE, text=deployment()) == ([], [])
    problems, notes = said(webhook(failurePolicy="Ignore"))
    assert problems == []
    assert "it is not asked" in notes[0]


@pytest.mark.parametrize(
    ("text", "more", "refused"),
    [
        (deployment(), [], False),
        (deployment(replicas=0), [], True),
        (deployment(replicas=0), [scaler("a")], False),
        (deployment("other"), [], True),
        (deployment("other"), [manifest("Server", "platform/hook", "example.com/v1")], False),
        (deployment("other"), [release("platform/hook")], False),
    ],
)
def test_a_webhook_that_fails_closed_has_a_pod(text: str, more: list[dict[str, Any]], refused: bool) -> None:
    source = manifest(
        "HelmRepository", "platform/charts", "source.toolkit.fluxcd.io/v1", spec={"url": "https://a.b"}
    )
    problems, _ = said(webhook(), SERVICE, source, *more, text=text)
    assert any("so nothing answers webhook a.example.com" in problem for problem in problems) == refused
    problems, _ = said(webhook(failurePolicy="Ignore"), SERVICE, source, *more, text=text)
    assert not any("so nothing answers webhook" in problem for problem in problems)


def test_a_chart_may_bring_the_service_of_a_webhook() -> None:
    source = manifest(
        "HelmRepository", "platform/charts", "source.toolkit.fluxcd.io/v1", spec={"url": "https://a.b"}
    )
    problems, notes = said(webhook(), source, release("platform/hook"))
    assert not any("Service platform/hook" in problem for problem in problems)
    assert any("Service platform/hook" in note for note in notes)


def test_a_conversion_that_nobody_answers_is_refused() -> None:
    service = {"name": "hook", "namespace": "platform", "path": "/convert"}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}}
    names = {"kind": "Backup", "plural": "backups", "listKind": "BackupList", "singular": "backup"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    spec = {
        "group": "data.example.com",
        "names": names,
        "scope": "Namespaced",
        "conversion": {"strategy": "Webhook", "webhook": webhook},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    kind = "CustomResourceDefinition"
    (problem,) = said(manifest(kind, "backups.data.example.com", "apiextensions.k8s.io/v1", spec=spec))[0]
    assert "clientConfig.service.name: nothing here defines Service platform/hook" in problem


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"rules": ALL}, True),
        ({"rules": ALL, "failurePolicy": "Ignore"}, False),
        ({"rules": ALL, "namespaceSelector": {"matchLabels": {"team": "a"}}}, False),
        ({"rules": WIDGETS}, False),
    ],
)
def test_a_webhook_of_everything_that_fails_closed_is_a_note(fields: dict[str, Any], told: bool) -> None:
    problems, notes = said(webhook(**fields), SERVICE, text=deployment())
    assert problems == []
    assert any("nothing starts any more" in note for note in notes) == told


ALL_OUT = {"policyTypes": ["Egress"]}


def to_namespace(label: str) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": {label: "kube-system"}}}


@pytest.mark.parametrize(
    ("egress", "cut"),
    [
        ([{"ports": [{"port": 443}]}], True),
        ([{"ports": [{"port": 443}]}, DNS], False),
        ([{"ports": [{"port": 1, "endPort": 1000}]}], False),
        ([{"ports": [{"port": "dns"}]}], False),
        ([{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}], False),
        ([{"to": [to_namespace("name")], **DNS}], True),
        ([{"to": [to_namespace("kubernetes.io/metadata.name")], **DNS}], False),
        ([], False),
    ],
)
def test_a_namespace_that_may_send_and_not_ask_dns_is_a_note(egress: list[dict[str, Any]], cut: bool) -> None:
    problems, notes = said(policy("platform", **ALL_OUT, egress=egress))
    assert problems == []
    assert any("no pod of platform may ask DNS" in note for note in notes) == cut


def with_resources(**resources: dict[str, Any]) -> str:
    workload = yaml.safe_load(deployment())
    workload["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    return yaml.safe_dump(workload)


QUOTA = manifest("ResourceQuota", "platform/q", spec={"hard": {"limits.memory": "1Gi", "cpu": "2"}})
RANGE = manifest(
    "LimitRange", "platform/r", spec={"limits": [{"type": "Container", "default": {"memory": "1Gi"}}]}
)
DEFAULTS = {"limits": [{"type": "Container", "max": {"memory": "1Gi"}, "defaultRequest": {"cpu": "1"}}]}
SCOPED = manifest("ResourceQuota", "platform/q", spec={"hard": {"cpu": "2"}, "scopes": ["BestEffort"]})
COUNTED = with_resources(limits={"memory": "1Gi", "cpu": "1"})


@pytest.mark.parametrize(
    ("objects", "workload", "lacking"),
    [
        ([QUOTA], deployment(), "limits.memory (web) and requests.cpu (web)"),
        ([QUOTA], with_resources(limits={"memory": "1Gi"}), "requests.cpu (web)"),
        ([QUOTA], COUNTED, ""),
        ([QUOTA], with_resources(limits={"memory": "1Gi"}, requests={"cpu": 0}), ""),
        ([QUOTA, RANGE], deployment(), "requests.cpu (web)"),
        ([QUOTA, manifest("LimitRange", "platform/r", spec=DEFAULTS)], deployment(), ""),
        ([SCOPED], deployment(), ""),
        ([manifest("ResourceQuota", "platform/q", spec={"hard": {"pods": "9"}})], deployment(), ""),
        ([manifest("ResourceQuota", "apps/q", spec={"hard": {"cpu": "9"}})], deployment(), ""),
    ],
)
def test_containers_have_what_a_quota_of_their_namespace_counts(
    objects: list[dict[str, Any]], workload: str, lacking: str
) -> None:
    problems, _ = said(*objects, text=workload)
    assert len(problems) == bool(lacking), problems
    assert not lacking or f"counts what containers here do not have: {lacking}; no pod" in problems[0]


@pytest.mark.parametrize(
    ("requests", "target", "told"),
    [
        ({}, {"type": "Utilization", "averageUtilization": 80}, True),
        ({"cpu": "100m"}, {"type": "Utilization", "averageUtilization": 80}, False),
        ({}, {"type": "AverageValue", "averageValue": "100m"}, False),
    ],
)
def test_an_autoscaler_has_the_requests_that_it_goes_by(
    requests: dict[str, str], target: dict[str, Any], told: bool
) -> None:
    """Report: kubernetes/kubernetes#79365."""
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    spec = {"minReplicas": 1, "maxReplicas": 3, "scaleTargetRef": ref, "metrics": metrics}
    scaler = manifest("HorizontalPodAutoscaler", "platform/web", "autoscaling/v2", spec=spec)
    notes = said(scaler, text=with_resources(requests=requests))[1]
    assert any("a share of the requests of cpu, which web of" in note for note in notes) == told
