"""Node pool replacements on a real cluster: what may hold a pod on its node, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from shared.json_tree import Json
from shared.ports import KubernetesApi
from tests.authority.real_fleet import RealFleet
from tests.support.workloads import budget, pod

pytestmark = pytest.mark.timeout(600)
POLICY = "admissionregistration.k8s.io/v1"


def pools(size: str) -> str:
    return f"    - {{name: apps, vmSize: {size}, count: 1}}\n"


def run_pod(api: KubernetesApi, name: str, **metadata: Any) -> None:
    node = api.list("v1", "Node", labels="kubernetes.azure.com/agentpool=apps")[0]
    api.apply(pod(name, node["metadata"]["name"], **metadata))


def guarded_evictions() -> list[Json]:
    """Return a policy that refuses evictions in namespaces with a label, as policy engines do."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods/eviction"],
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "request.name != 'guarded'", "message": "the shop is open"}],
    }
    binding = {"policyName": "shop-hours", "validationActions": ["Deny"]}
    name = {"name": "shop-hours"}
    return [
        {"apiVersion": POLICY, "kind": "ValidatingAdmissionPolicy", "metadata": name, "spec": spec},
        {"apiVersion": POLICY, "kind": "ValidatingAdmissionPolicyBinding", "metadata": name, "spec": binding},
    ]


def test_a_drain_waits_for_a_disruption_budget_and_goes_on_when_it_allows_more(fleet: RealFleet) -> None:
    fleet.ready(fleet.files(extra=pools("Standard_D4s_v5")))
    with fleet.api() as api:
        run_pod(api, "web", labels={"app": "web"})
        api.apply(budget(minAvailable=1))
        commit = fleet.operator.push(fleet.files(extra=pools("Standard_D8s_v5")))
        fleet.wait_for_reason("blocked: default/web", "The disruption budget web needs 1 healthy pod")
        api.apply(budget(minAvailable=0))
        fleet.operator.wait_for_status(commit, "success", seconds=150)
        assert api.list("v1", "Pod", fields="metadata.name=web") == []


def test_a_drain_behind_an_admission_policy_moves_the_other_pods_and_names_the_policy(
    fleet: RealFleet,
) -> None:
    fleet.ready(fleet.files(extra=pools("Standard_D4s_v5")))
    with fleet.api() as api:
        for name in ("free", "guarded", "other"):
            run_pod(api, name)
        for manifest in guarded_evictions():
            api.apply(manifest)
        commit = fleet.operator.push(fleet.files(extra=pools("Standard_D8s_v5")))
        fleet.wait_for_reason("default/guarded", "the shop is open")
        fleet.operator.wait(lambda: left(api) == {"guarded"}, "the other pods moved")
        api.apply(without_validation())
        fleet.operator.wait_for_status(commit, "success", seconds=150)


def left(api: KubernetesApi) -> set[str]:
    return {document["metadata"]["name"] for document in api.list("v1", "Pod", namespace="default")}


def without_validation() -> Json:
    policy = guarded_evictions()[0]
    return {**policy, "spec": {**policy["spec"], "validations": [{"expression": "true"}]}}
