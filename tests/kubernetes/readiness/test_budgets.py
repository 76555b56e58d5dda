"""Which pods a drain cannot evict or loses, by their budgets, controllers and replicas."""

from __future__ import annotations

from typing import Any

import pytest

from shared.kubernetes.readiness.budgets import (
    Budgets,
    LoneWorkload,
    PodInTheWay,
    PodReason,
    TightBudget,
)
from tests.support.upgrade_blockers import budget, deployment, pod


def test_a_budget_with_pods_that_allows_no_eviction_is_in_the_way() -> None:
    assert list(Budgets([budget()]).tight()) == [TightBudget("shop", "cart", 1, 1, 1)]


@pytest.mark.parametrize(
    "fields",
    [
        {"allowed": 1, "expected": 2, "healthy": 2},
        {"expected": 0, "healthy": 0, "desired": 0},
        {"healthy": 0, "minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
    ],
    ids=["it allows an eviction", "it has no pods", "none is healthy, and those may go"],
)
def test_a_budget_that_keeps_no_pod_is_in_nobodys_way(fields: dict[str, Any]) -> None:
    assert list(Budgets([budget(**fields)]).tight()) == []


def test_a_budget_whose_pods_its_controller_cannot_count_is_in_the_way_with_the_reason() -> None:
    failed = [{"type": "DisruptionAllowed", "reason": "SyncFailed", "message": "found no controllers"}]
    found = list(Budgets([budget(expected=0, healthy=0, status={"conditions": failed})]).tight())
    assert [known.problem for known in found] == ["found no controllers"]


def test_what_a_budget_allows_that_was_not_counted_yet_is_unknown() -> None:
    for status in ({"observedGeneration": 0}, {"disruptionsAllowed": None, "observedGeneration": None}):
        budgets = Budgets([budget(status=status)])
        assert (list(budgets.tight()), budgets.uncounted()) == ([], ["shop/cart"])


def test_a_pod_without_a_controller_is_created_by_nobody_again() -> None:
    owned = pod("a", ownerReferences=[{"kind": "Thing", "name": "x"}])
    pods = [pod(), pod("bare", owner=""), owned]
    found = list(Budgets([]).pods_in_the_way(pods))
    assert [(known.name, known.reason) for known in found] == [
        ("bare", PodReason.BARE),
        ("a", PodReason.BARE),
    ]


@pytest.mark.parametrize(
    "metadata",
    [
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        {"annotations": {"kubernetes.io/config.mirror": "b5"}},
    ],
    ids=["it ends", "a node runs it from a file"],
)
def test_some_pods_without_a_controller_are_in_nobodys_way(metadata: dict[str, Any]) -> None:
    assert list(Budgets([]).pods_in_the_way([pod(owner="", **metadata)])) == []


def test_the_api_server_evicts_no_pod_of_two_budgets() -> None:
    two = [budget("b", allowed=1), budget("a", allowed=1), budget("c", namespace="other")]
    expected = [PodInTheWay("shop", "cart-1", PodReason.TWO_BUDGETS, ("a", "b"))]
    assert list(Budgets(two).pods_in_the_way([pod()])) == expected


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({"minAvailable": 1}, True),
        ({"minAvailable": "1%"}, True),
        ({"minAvailable": "0%"}, False),
        ({"minAvailable": 0}, False),
        ({"maxUnavailable": 0}, True),
        ({"maxUnavailable": "0%"}, True),
        ({"maxUnavailable": "1%"}, False),
        ({"maxUnavailable": 1}, False),
    ],
)
def test_a_budget_needs_the_one_replica_as_its_controller_rounds(spec: dict[str, Any], needed: bool) -> None:
    found = list(Budgets([budget(**spec)]).lone([deployment()]))
    assert found == ([LoneWorkload("shop", "Deployment", "cart", "cart")] if needed else [])


def test_only_a_workload_with_one_replica_of_the_selected_pods_counts() -> None:
    others = [deployment(replicas=2), deployment(namespace="other"), deployment(replicas=0)]
    apart = budget(selector={"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["cart"]}]})
    assert list(Budgets([budget()]).lone(others)) == []
    assert list(Budgets([apart]).lone([deployment()])) == []
    everything = budget(selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]})
    assert len(list(Budgets([everything]).lone([deployment(), deployment(kind="StatefulSet")]))) == 2
