"""Nodes, their pods and evictions through the Kubernetes port, on both implementations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from localcloud.kubernetes.world.kinds import BUILT_IN, NODE, POD, STATEFUL_SET, ResourceKind
from localcloud.kubernetes.world.object_store import At
from shared.cluster.failures.errors import Blocked
from shared.json_tree import Json
from shared.ports.kubernetes import CORDONED
from shared.resource_ids import ObjectRef
from tests.support import workloads
from tests.support.kubernetes_ports import Setting

pytestmark = pytest.mark.lives

AT = datetime(2026, 1, 1, tzinfo=UTC)
DAEMON_SET = next(kind for kind in BUILT_IN if kind.kind == "DaemonSet")


def a_node(setting: Setting, name: str) -> str:
    setting.world.create(NODE, "", {"metadata": {"name": name, "labels": {"agentpool": "web"}}})
    return name


def a_pod(setting: Setting, name: str, node: str, *, ready: bool = True, **metadata: Any) -> str:
    """Create a pod of the app web on a node."""
    whole = {"name": name, "labels": {"app": "web"}, **metadata}
    spec = {"nodeName": node, "containers": [{"name": "web", "image": "web:1"}]}
    at = At(POD, name, "default")
    setting.world.create(POD, "default", {"metadata": whole, "spec": spec})
    setting.until(lambda: is_ready(setting.world.get(at)))
    if not ready:
        setting.world.set_status(at, {"phase": "Running", "conditions": []}, manager="kubelet")
    return name


def a_budget(setting: Setting, name: str = "web", **spec: Any) -> None:
    """Apply a budget of the app web, and wait until it counts the pods as they are."""
    setting.api.apply(workloads.budget(name=name, **spec))
    counted(setting, name)


def counted(setting: Setting, name: str = "web") -> None:
    """Wait until the disruption controller has counted the pods of the app web."""
    ref = ObjectRef("policy/v1", "PodDisruptionBudget", name, "default")

    def up_to_date() -> bool:
        budget = setting.api.get(ref) or {}
        status = budget.get("status") or {}
        healthy = sum(map(is_ready, setting.api.list("v1", "Pod", labels="app=web")))
        new = status.get("observedGeneration") == budget["metadata"]["generation"]
        return new and status["currentHealthy"] == healthy and not status.get("disruptedPods")

    setting.until(up_to_date)


def is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def an_owner(setting: Setting, kind: ResourceKind = STATEFUL_SET, **spec: Any) -> dict[str, Any]:
    """Create what the pods of the app web belong to; return the reference to it."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    whole = {"selector": {"matchLabels": labels}, "template": template, **spec}
    body = {"metadata": {"name": "web"}, "spec": whole}
    uid = setting.world.create(kind, "default", body)["metadata"]["uid"]
    return {"apiVersion": kind.api_version, "kind": kind.kind, "name": "web", "uid": uid, "controller": True}


def pods(setting: Setting, **selectors: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in setting.api.list("v1", "Pod", **selectors)]


def test_the_pods_of_a_node_are_found(setting: Setting) -> None:
    one, two = a_node(setting, "one"), a_node(setting, "two")
    a_pod(setting, "a", one)
    owner = an_owner(setting, DAEMON_SET)
    a_pod(setting, "daemon", two, ownerReferences=[owner])
    a_pod(setting, "mirror", two, annotations={"kubernetes.io/config.mirror": "hash"})
    assert pods(setting, fields=f"spec.nodeName={one}") == ["a"]
    assert pods(setting, fields="spec.nodeName=two", namespace="default") == ["daemon", "mirror"]
    daemon, mirror = setting.api.list("v1", "Pod", fields="spec.nodeName=two")
    assert daemon["metadata"]["ownerReferences"] == [owner]
    assert mirror["metadata"]["annotations"] == {"kubernetes.io/config.mirror": "hash"}
    assert daemon["status"]["phase"] == "Running"


def test_pods_go_with_their_node(setting: Setting) -> None:
    a_pod(setting, "a", a_node(setting, "one"))
    a_pod(setting, "b", a_node(setting, "two"))
    setting.world.delete(At(NODE, "one"))
    setting.until(lambda: pods(setting) == ["b"])


def test_a_node_is_cordoned_and_uncordoned_and_a_missing_one_is_success(setting: Setting) -> None:
    def unschedulable() -> bool:
        (node,) = setting.api.list("v1", "Node", labels="agentpool=web")
        return bool((node.get("spec") or {}).get("unschedulable"))

    def annotations() -> dict[str, str]:
        node = setting.api.get(ObjectRef("v1", "Node", "one"))
        assert node is not None
        return dict(node["metadata"].get("annotations") or {})

    a_node(setting, "one")
    for _ in range(2):
        setting.api.cordon("one", AT)
        assert unschedulable()
        assert annotations() == {CORDONED: AT.isoformat()}
    setting.api.uncordon("one")
    assert not unschedulable()
    assert annotations() == {}
    setting.api.cordon("missing", AT)
    setting.api.uncordon("missing")


def test_a_pod_without_a_budget_is_evicted_and_a_missing_one_is_success(setting: Setting) -> None:
    a_pod(setting, "a", a_node(setting, "one"))
    setting.api.evict("default", "a")
    setting.until(lambda: pods(setting) == [])
    setting.api.evict("default", "a")
    setting.api.evict("nowhere", "a")


def test_a_budget_blocks_evictions_until_enough_pods_are_healthy(setting: Setting) -> None:
    one, two = a_node(setting, "one"), a_node(setting, "two")
    a_pod(setting, "a", one)
    a_pod(setting, "b", one)
    a_budget(setting, minAvailable=2)
    with pytest.raises(Blocked) as refused:
        setting.api.evict("default", "a")
    assert (refused.value.code, refused.value.retry_after) == ("TooManyRequests", None)
    message = "The disruption budget web needs 2 healthy pods and has 2 currently"
    assert message in str(refused.value)
    assert "pod a in default" in str(refused.value)
    a_pod(setting, "c", two, ready=False)
    with pytest.raises(Blocked):
        setting.api.evict("default", "a")
    a_pod(setting, "d", two)
    counted(setting)
    setting.api.evict("default", "a")
    with pytest.raises(Blocked):
        setting.api.evict("default", "b")
    setting.until(lambda: pods(setting) == ["b", "c", "d"])


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": "50%"}, 2),
        ({"maxUnavailable": 0}, 0),
        ({"minAvailable": "75%"}, 1),
        ({"minAvailable": "100%"}, 0),
    ],
)
def test_a_budget_counts_against_what_the_controller_wants(
    setting: Setting, spec: dict[str, Any], allowed: int
) -> None:
    owner, node = an_owner(setting, replicas=4, serviceName="web"), a_node(setting, "one")
    for name in "abcd":
        a_pod(setting, name, node, ownerReferences=[owner])
    a_budget(setting, **spec)
    evicted = 0
    for name in "abcd":
        try:
            setting.api.evict("default", name)
        except Blocked:
            break
        evicted += 1
    assert evicted == allowed
    budget = setting.api.get(ObjectRef("policy/v1", "PodDisruptionBudget", "web", "default"))
    assert budget is not None
    assert (budget["status"]["disruptionsAllowed"], budget["status"]["expectedPods"]) == (0, 4)


def test_an_unready_pod_may_be_evicted_while_its_application_is_healthy(setting: Setting) -> None:
    node = a_node(setting, "one")
    a_pod(setting, "a", node)
    a_pod(setting, "sick", node, ready=False)
    a_budget(setting, minAvailable=2)
    with pytest.raises(Blocked):
        setting.api.evict("default", "sick")
    a_budget(setting, minAvailable=1)
    setting.api.evict("default", "sick")
    setting.until(lambda: pods(setting) == ["a"])
    a_pod(setting, "sick", node, ready=False)
    a_budget(setting, minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow")
    setting.api.evict("default", "sick")
    setting.until(lambda: pods(setting) == ["a"])


def test_two_budgets_on_one_pod_block_it_with_the_reason(setting: Setting) -> None:
    a_pod(setting, "a", a_node(setting, "one"))
    a_budget(setting, minAvailable=0)
    a_budget(setting, "other", minAvailable=0)
    with pytest.raises(Blocked, match="more than one PodDisruptionBudget"):
        setting.api.evict("default", "a")
