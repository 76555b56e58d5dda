"""What a cluster shows of the APIs in use and of its nodes, as it is stored."""

from __future__ import annotations

from datetime import UTC, datetime

from shared.cluster.forms import StoredText
from shared.kubernetes.readiness.budgets import Budgets
from shared.kubernetes.readiness.observation import (
    NAMED,
    AppliedApi,
    Observation,
    PoolNodes,
    ReadGap,
    RequestedApi,
    applied_apis,
    named,
    pool_nodes,
    requested_apis,
)
from shared.kubernetes.readiness.removed_apis import KNOWN_TO, REMOVED, removed_in
from shared.kubernetes.readiness.webhooks import node_webhooks
from tests.support.upgrade_blockers import budget, deployment, kustomization, node, pod, sample, webhook

AT = datetime(2026, 11, 29, 8, tzinfo=UTC)


def test_the_metric_names_each_deprecated_api_that_a_release_removes() -> None:
    lines = [
        "# TYPE apiserver_requested_deprecated_apis gauge",
        sample("resourceclaims", "1.38"),
        sample("endpoints", "", group="", version="v1"),
        sample("flowschemas", "1.32", group="flowcontrol.apiserver.k8s.io", version="v1beta3"),
        sample("resourceclaims", "1.38"),
        sample("widgets", "1.39").removesuffix("1") + "0",
        'apiserver_request_total{code="200"} 17',
    ]
    assert requested_apis(lines) == (
        RequestedApi("flowcontrol.apiserver.k8s.io", "v1beta3", "flowschemas", 32),
        RequestedApi("resource.k8s.io", "v1beta1", "resourceclaims", 38),
    )


def test_the_metric_names_a_subresource() -> None:
    line = sample("pods", "1.40", group="", version="v1").replace('subresource=""', 'subresource="eviction"')
    assert [api.resource for api in requested_apis([line])] == ["pods/eviction"]


def test_flux_says_which_versions_it_applies() -> None:
    applied = kustomization(
        ("shop_gpu_resource.k8s.io_ResourceClaimTemplate", "v1beta1"),
        ("shop_gpu2_resource.k8s.io_ResourceClaimTemplate", "v1beta1"),
        ("_fast_resource.k8s.io_DeviceClass", "v1"),
        ("shop_cart_apps_Deployment", "v1"),
        ("odd", "v1"),
    )
    kind = "ResourceClaimTemplate"
    assert applied_apis([applied, {"metadata": {"name": "new"}}]) == (
        AppliedApi("resource.k8s.io", "v1beta1", kind, 38, 2, "shop/gpu"),
    )


def test_the_table_of_removals_has_every_kind_once_and_in_the_order_of_the_releases() -> None:
    keys = [(api.group, api.version, kind) for api in REMOVED for kind in api.kinds]
    assert len(keys) == len({*keys})
    minors = [api.minor for api in REMOVED]
    assert minors == sorted(minors)
    assert minors[-1] == KNOWN_TO
    assert removed_in("networking.k8s.io", "v1beta1", "ServiceCIDR") == 37
    assert removed_in("networking.k8s.io", "v1", "ServiceCIDR") is None


def test_nodes_are_counted_by_pool_and_kubelet() -> None:
    nodes = [node("a", "system", "1.36.2"), node("b", "system", "1.36.2"), node("c", "gpu", "1.34.1")]
    assert pool_nodes(nodes, "kubernetes.azure.com/agentpool") == (
        PoolNodes("gpu", "1.34.1", 1),
        PoolNodes("system", "1.36.2", 2),
    )


def test_of_many_objects_the_first_are_named_and_the_others_counted() -> None:
    assert named(range(3)) == ((0, 1, 2), 0)
    assert named(iter(range(NAMED + 7))) == (tuple(range(NAMED)), 7)


def test_what_was_read_is_stored_and_read_again_as_it_was() -> None:
    budgets = Budgets([budget(), budget("b")])
    seen = Observation(
        AT,
        tuple(budgets.tight()),
        tuple(budgets.pods_in_the_way([pod(owner="")])),
        tuple(budgets.lone([deployment()])),
        requested_apis([sample("resourceclaims", "1.38")]),
        applied_apis([kustomization(("_fast_resource.k8s.io_DeviceClass", "v1beta1"))]),
        pool_nodes([node("a", "system", "1.36.2")], "kubernetes.azure.com/agentpool"),
        tuple(node_webhooks([webhook()])),
        (ReadGap("metrics", "Forbidden"),),
        {"pods": 4},
        12,
    )
    stored = StoredText[Observation](Observation)
    assert stored.read(stored.write(seen)) == seen
