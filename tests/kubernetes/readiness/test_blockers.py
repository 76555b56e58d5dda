"""What blocks an upgrade, who acts, and what of it is unknown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.kubernetes.readiness.blockers import (
    Blocker,
    BlockerKind,
    Remover,
    blockers_of,
    minor_of,
    unknown_of,
)
from shared.kubernetes.readiness.budgets import Budgets
from shared.kubernetes.readiness.observation import (
    Observation,
    PoolNodes,
    ReadGap,
    RequestedApi,
    applied_apis,
    requested_apis,
)
from shared.kubernetes.readiness.removed_apis import KNOWN_TO, REMOVED
from shared.kubernetes.readiness.webhooks import node_webhooks
from tests.support.upgrade_blockers import budget, deployment, kustomization, pod, sample, webhook

AT = datetime(2026, 11, 29, 8, tzinfo=UTC)


def seen(**parts: Any) -> Observation:
    return Observation(AT, **parts)


def one(found: tuple[Blocker, ...]) -> Blocker:
    assert len(found) == 1
    return found[0]


def test_a_budget_that_needs_all_of_its_pods_says_so() -> None:
    found = one(blockers_of(seen(budgets=tuple(Budgets([budget()]).tight())), "1.38"))
    assert str(found) == "PodDisruptionBudget shop/cart allows no eviction: it needs 1 of 1 pod"
    assert (found.kind, found.who) == (BlockerKind.BUDGET, Remover.WORKLOAD)


def test_a_budget_whose_pods_are_not_healthy_says_how_many_are() -> None:
    tight = tuple(Budgets([budget(expected=3, healthy=1, desired=2)]).tight())
    found = one(blockers_of(seen(budgets=tight), "1.38"))
    assert found.why == "allows no eviction: 1 of the 2 pods that it needs are healthy"
    assert "repair" in found.act


def test_a_workload_with_one_replica_is_named_once_with_its_budget() -> None:
    budgets = Budgets([budget()])
    lone, tight = tuple(budgets.lone([deployment()])), tuple(budgets.tight())
    both = one(blockers_of(seen(budgets=tight, lone=lone), ""))
    assert both.why.endswith("it needs 1 of 1 pod, of the one replica of Deployment cart")
    alone = one(blockers_of(seen(lone=lone), ""))
    assert str(alone) == "Deployment shop/cart has one replica, and PodDisruptionBudget cart needs it"


def test_a_pod_is_in_the_way_by_its_controller_or_its_budgets() -> None:
    two = Budgets([budget("a", allowed=1), budget("b", allowed=1)])
    found = blockers_of(seen(pods=tuple(two.pods_in_the_way([pod(owner="")]))), "")
    assert [str(known) for known in found] == [
        "Pod shop/cart-1 has no controller: nothing creates it again",
        "Pod shop/cart-1 has 2 budgets, so no eviction: a, b",
    ]


def test_a_webhook_without_an_endpoint_names_what_it_refuses() -> None:
    found = one(blockers_of(seen(webhooks=tuple(node_webhooks([webhook()]))), ""))
    assert str(found) == (
        "webhook pods.guard.io of ValidatingWebhookConfiguration guard refuses pods: "
        "its Service guard/guard has no ready endpoint"
    )
    assert found.who is Remover.CLUSTER


def test_an_api_blocks_the_release_that_removes_it_and_later_ones() -> None:
    parts = seen(
        requested=requested_apis([sample("resourceclaims", "1.38")]),
        applied=applied_apis([kustomization(("_fast_resource.k8s.io_DeviceClass", "v1beta1"))]),
    )
    assert blockers_of(parts, "1.37.4") == ()
    assert blockers_of(parts, "") == ()
    called, applied = blockers_of(parts, "1.38")
    assert str(called) == (
        "API resource.k8s.io/v1beta1 resourceclaims is asked for, and removed in Kubernetes 1.38 "
        "(apiserver_requested_deprecated_apis)"
    )
    assert str(applied) == (
        "API resource.k8s.io/v1beta1 DeviceClass is removed in Kubernetes 1.38, and Flux applies "
        "the object fast"
    )
    assert (called.who, applied.who) == (Remover.CLIENT, Remover.MANIFEST)


def test_nodes_that_stay_more_than_three_minors_behind_block() -> None:
    nodes = (PoolNodes("system", "1.34.2", 3), PoolNodes("gpu", "1.34.2", 2), PoolNodes("old", "1.35.0", 1))
    found = one(blockers_of(seen(nodes=nodes), "1.38", upgraded={"system"}))
    assert str(found) == "2 nodes of the pool gpu are at 1.34.2, which stays more than 3 minors behind 1.38"


def test_objects_that_are_not_named_block_as_well() -> None:
    found = blockers_of(seen(more={"pods": 4, "budgets": 1}), "")
    assert [str(known) for known in found] == [
        "1 more PodDisruptionBudget is in the way, too",
        "4 more Pods are in the way, too",
    ]


@pytest.mark.parametrize(("version", "minor"), [("1.38", 38), ("1.38.2", 38), ("2.1", None), ("", None)])
def test_the_minor_of_a_version(version: str, minor: int | None) -> None:
    assert minor_of(version) == minor


def test_what_could_not_be_read_is_unknown() -> None:
    unread = seen(unread=(ReadGap("the metrics of the API server", "Forbidden"),))
    assert unknown_of(unread, "1.38") == ("the metrics of the API server could not be read: Forbidden",)


def test_releases_beyond_the_table_are_unknown() -> None:
    assert unknown_of(seen(), f"1.{KNOWN_TO}") == ()
    assert unknown_of(seen(), f"1.{KNOWN_TO + 1}") == (
        f"which APIs Kubernetes 1.{KNOWN_TO + 1} removes is known up to 1.{KNOWN_TO}",
    )


@given(st.sampled_from(REMOVED), st.integers(20, 45))
def test_every_removed_api_that_flux_applies_blocks_exactly_the_releases_without_it(
    api: Any, minor: int
) -> None:
    entries = [(f"shop_a_{api.group}_{kind}", api.version) for kind in api.kinds]
    found = blockers_of(seen(applied=applied_apis([kustomization(*entries)])), f"1.{minor}")
    assert len(found) == (len(api.kinds) if minor >= api.minor else 0)


_REQUESTED = st.builds(RequestedApi, st.just("g"), st.just("v1"), st.sampled_from("abc"), st.integers(30, 40))


@given(st.lists(_REQUESTED), st.integers(25, 40), st.integers(0, 5))
def test_a_later_release_is_blocked_by_whatever_blocks_an_earlier_one(
    apis: list[RequestedApi], minor: int, later: int
) -> None:
    both = seen(requested=tuple(apis), nodes=(PoolNodes("a", "1.33.0", 1),))
    earlier = {known.object for known in blockers_of(both, f"1.{minor}")}
    assert earlier <= {known.object for known in blockers_of(both, f"1.{minor + later}")}
