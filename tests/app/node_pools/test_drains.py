"""Drains: pods move within disruption budgets, and no node stays cordoned without need."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.kubernetes.world.kinds import NODE
from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.kubernetes.world.writes.patches import MERGE
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.ports import Timing
from shared.ports.azure import DeletePool
from tests.support.one_cluster import ONE, advice, api, blocked_pod, files, nodes, pool, pools, ready, record
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import Around, around
from tests.support.workloads import budget, pod

pytestmark = pytest.mark.lives


def ready_slow(extra: str) -> MemoryCloud:
    """Return a cloud whose cluster is Ready and read as often as by default."""
    cloud = ready(extra)
    config = replace(
        cloud.ports.config, timing=replace(cloud.ports.config.timing, poll_seconds=Timing().poll_seconds)
    )
    cloud.with_ports(lambda ports: replace(ports, config=config))
    return cloud


def closed_by_a_person(cloud: MemoryCloud, node: str) -> None:
    world = cloud.kubernetes.world(ONE)
    assert world is not None
    world.patch(At(NODE, node), {"spec": {"unschedulable": True}}, MERGE, WriteMode(manager="kubectl"))


def test_an_old_pool_is_drained_within_disruption_budgets() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(seconds=300)
    assert "apps" in pools(cloud)
    assert "blocked: shop/web: " in record(cloud).job.reason
    assert record(cloud).phase is Phase.UPDATING
    assert "PodDisruptionBudget allow one more disruption; the drain fails after 30 minutes" in advice(cloud)
    api(cloud).apply(budget(namespace="shop", minAvailable=0))
    cloud.run()
    assert set(pools(cloud)) == {"system", "appsb"}
    assert phases(cloud) == {"one": Phase.READY}


def test_a_drain_that_stays_blocked_fails_and_removes_nothing() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5", upgradeSettings="{drainTimeoutInMinutes: 5}")))
    cloud.run(until=lambda: record(cloud).phase is Phase.FAILED)
    assert set(pools(cloud)) == {"system", "apps", "appsb"}
    assert "could not be drained in 5 minutes: shop/web" in record(cloud).job.reason


def test_a_drain_with_a_long_time_limit_does_not_stall_before_it_fails() -> None:
    cloud = ready_slow(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5", upgradeSettings="{drainTimeoutInMinutes: 180}")))
    cloud.run(seconds=2 * 3600)
    assert record(cloud).phase is Phase.UPDATING
    cloud.run(until=lambda: record(cloud).phase is Phase.FAILED)
    assert "could not be drained in 180 minutes" in record(cloud).job.reason


def test_a_commit_that_changes_the_new_pool_reaches_it_while_the_drain_is_blocked() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "blocked: " in record(cloud).job.reason)
    push(cloud, files(pool("Standard_D8s_v5", nodeLabels="{tier: web}")))
    cloud.run(seconds=300)
    assert pools(cloud)["appsb"]["nodeLabels"] == {"tier": "web"}
    assert "apps" in pools(cloud)


@pytest.mark.parametrize("by_a_person", [False, True])
def test_a_pod_that_returns_to_a_cordoned_node_does_not_delay_a_drain(by_a_person: bool) -> None:
    cloud = ready(pool())
    node = min(nodes(cloud, "apps"))
    if by_a_person:
        closed_by_a_person(cloud, node)
    api(cloud).apply(pod("web-0", node))
    connect, evicted = cloud.ports.kubernetes.connect, []

    def comes_back(*place: Any, **credentials: Any) -> Around:
        inner = connect(*place, **credentials)

        def evict(namespace: str, name: str) -> None:
            inner.evict(namespace, name)
            evicted.append(name)
            api(cloud).apply(pod(f"web-{len(evicted)}", node))

        return Around(inner, evict=evict)

    around(cloud, "kubernetes", connect=comes_back)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(seconds=3600)
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "appsb"})
    assert 1 <= len(evicted) <= 30


def test_a_clock_that_was_late_at_the_cordon_leaves_no_pod_behind() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    connect = cloud.ports.kubernetes.connect

    def late(*place: Any, **credentials: Any) -> Around:
        inner = connect(*place, **credentials)
        return Around(inner, cordon=lambda node, at: inner.cordon(node, at - timedelta(days=1)))

    around(cloud, "kubernetes", connect=late)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(seconds=300)
    assert "apps" in pools(cloud)
    assert "blocked: shop/web: " in record(cloud).job.reason


def test_nodes_cordoned_by_a_person_stay_cordoned_and_ours_are_uncordoned() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    broken = min(nodes(cloud, "apps"))
    closed_by_a_person(cloud, broken)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "blocked: " in record(cloud).job.reason)
    assert all(nodes(cloud, "apps").values())
    push(cloud, files(pool()))
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "apps"})
    assert [name for name, closed in nodes(cloud, "apps").items() if closed] == [broken]


def test_nodes_that_we_cordoned_are_uncordoned_when_the_new_pool_was_removed() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "blocked: " in record(cloud).job.reason)
    cloud.ports.azure.call(DeletePool(ONE, "appsb", etag=None))
    push(cloud, files(pool()))
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "apps"})
    assert not any(nodes(cloud, "apps").values())


def test_blocked_pods_do_not_block_the_others() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    node = min(nodes(cloud, "apps"))
    for number in range(60):
        api(cloud).apply(pod(f"a{number:02}", node, labels={"app": "held"}))
        api(cloud).apply(pod(f"z{number:02}", node))
    api(cloud).apply(budget("held", minAvailable=60))
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(seconds=900)
    left = {pod["metadata"]["name"] for pod in api(cloud).list("v1", "Pod", namespace="default")}
    assert left == {f"a{number:02}" for number in range(60)}
    assert record(cloud).phase is Phase.UPDATING


def test_a_drain_that_is_blocked_for_hours_leaves_room_in_the_history() -> None:
    cloud = ready_slow(pool())
    first, second = sorted(nodes(cloud, "apps"))
    for number in range(60):
        api(cloud).apply(pod(f"a{number:02}", (first, second)[number % 2], labels={"app": "held"}))
    api(cloud).apply(budget("held", minAvailable=60))
    push(cloud, files(pool("Standard_D8s_v5", upgradeSettings="{drainTimeoutInMinutes: 600}")))
    cloud.run(until=lambda: "blocked: " in record(cloud).job.reason)
    before = record(cloud).job.reason
    assert before.count("needs 60 healthy pods") == 5
    events = len(cloud.state.events("one", limit=500))
    cloud.run(seconds=4 * 3600)
    assert record(cloud).phase is Phase.UPDATING
    assert record(cloud).job.reason == before
    assert len(cloud.state.events("one", limit=500)) == events


def test_a_node_of_ours_is_uncordoned_after_its_managed_fields_forgot_us() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "blocked: " in record(cloud).job.reason)
    world = cloud.kubernetes.world(ONE)
    assert world is not None
    for number in range(11):
        cloud.clock.advance(1)
        for node in nodes(cloud, "apps"):
            patch = {"metadata": {"labels": {f"example.com/label-{number}": "set"}}}
            world.patch(At(NODE, node), patch, MERGE, WriteMode(manager=f"controller-{number}"))
    fields = world.get(At(NODE, min(nodes(cloud, "apps"))))["metadata"]["managedFields"]
    assert "roadstead" not in [entry["manager"] for entry in fields]
    push(cloud, files(pool()))
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "apps"})
    assert not any(nodes(cloud, "apps").values())


def test_a_node_that_a_person_cordoned_again_after_us_stays_cordoned() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "blocked: " in record(cloud).job.reason)
    node, other = sorted(nodes(cloud, "apps"))
    world = cloud.kubernetes.world(ONE)
    assert world is not None
    for closed in (False, True):
        patch = {"spec": {"unschedulable": closed}}
        world.patch(At(NODE, node), patch, MERGE, WriteMode(manager="kubectl"))
    push(cloud, files(pool()))
    cloud.run()
    assert nodes(cloud, "apps") == {node: True, other: False}


def test_a_long_drain_with_progress_neither_stalls_nor_fails() -> None:
    cloud = ready_slow(pool())
    count = 20
    for number in range(count):
        api(cloud).apply(pod(f"a{number}", min(nodes(cloud, "apps")), labels={"app": "held"}))
    api(cloud).apply(budget("held", minAvailable=count))
    push(cloud, files(pool("Standard_D8s_v5", upgradeSettings="{drainTimeoutInMinutes: 5}")))
    cloud.run(until=lambda: "blocked: " in record(cloud).job.reason)
    for left in reversed(range(1, count)):  # 80 minutes, a pod every four
        api(cloud).apply(budget("held", minAvailable=left))
        cloud.run(seconds=240)
        assert record(cloud).phase is Phase.UPDATING
    api(cloud).apply(budget("held", minAvailable=0))
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "appsb"})


def test_pods_that_start_on_cordoned_nodes_do_not_extend_a_drain() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5", upgradeSettings="{drainTimeoutInMinutes: 5}")))
    cloud.run(until=lambda: "blocked: " in record(cloud).job.reason)
    for number in range(8):
        cloud.run(seconds=60)
        api(cloud).apply(pod(f"tolerant{number}", min(nodes(cloud, "apps"))))
    assert record(cloud).phase is Phase.FAILED
    assert "shop/web" in record(cloud).job.reason


def test_a_pool_that_git_removed_is_drained_within_budgets_before_its_deletion() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files())
    cloud.run(seconds=600)
    assert "apps" in pools(cloud)
    assert "draining the node pool apps: 1 pod to move; blocked: shop/web" in record(cloud).job.reason
    push(cloud, files(pool()))
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "apps"})
    assert not any(nodes(cloud, "apps").values())


def test_a_pod_that_its_node_never_ends_is_not_waited_for() -> None:
    cloud = ready(pool())
    api(cloud).apply(pod("lost", min(nodes(cloud, "apps")), finalizers=["example.com/never"]))
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "1 of them ending" in record(cloud).job.reason)
    assert "apps" in pools(cloud)
    cloud.run(seconds=900)
    assert set(pools(cloud)) == {"system", "appsb"}


def test_the_autoscaler_of_a_draining_pool_is_off() -> None:
    scaled = "    - {name: apps, vmSize: SIZE, minCount: 1, maxCount: 5}\n"
    cloud = ready(scaled.replace("SIZE", "Standard_D4s_v5"))
    cloud.azure.interventions.scale(ONE, "apps", 3)
    cloud.kubernetes.reconcile()
    blocked_pod(cloud)
    push(cloud, files(scaled.replace("SIZE", "Standard_D8s_v5")))
    cloud.run(until=lambda: "blocked: " in record(cloud).job.reason)
    assert (pools(cloud)["apps"]["enableAutoScaling"], pools(cloud)["apps"]["count"]) == (False, 3)
    assert (pools(cloud)["appsb"]["enableAutoScaling"], pools(cloud)["appsb"]["count"]) == (True, 3)
    push(cloud, files(scaled.replace("SIZE", "Standard_D4s_v5")))
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "apps"})
    assert (pools(cloud)["apps"]["enableAutoScaling"], pools(cloud)["apps"]["maxCount"]) == (True, 5)


def test_a_blocked_drain_delays_no_other_pool() -> None:
    more = "    - {{name: more, vmSize: Standard_D4s_v5, count: {}}}\n"
    cloud = ready(pool() + more.format(1))
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5") + more.format(1)))
    cloud.run(until=lambda: "blocked" in record(cloud).job.reason)
    push(cloud, files(pool("Standard_D8s_v5") + more.format(3)))
    cloud.run(seconds=300)
    assert pools(cloud)["more"]["count"] == 3
    assert "blocked" in record(cloud).job.reason
