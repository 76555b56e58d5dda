"""Readings of a cluster before an upgrade: what stands in its way is found, and no check reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app import readiness
from shared.app.api.acts.cluster import read_readiness
from shared.app.api.parts import FIRST_PAGE
from shared.app.api.views.cluster_list import EVERYTHING
from shared.app.api.views.versions import readiness_view
from shared.app.readiness import MOST_PAGES
from shared.cluster.failures.errors import Unauthorized, Unavailable
from shared.cluster.queues.messages import ReadinessMessage
from shared.frozen import replace as changed
from shared.kubernetes.readiness.observation import METRIC
from shared.ports import ObjectListPage
from shared.ports.azure import AzureCall, ListComputeUsages
from tests.support.calls_inside import counted
from tests.support.checks import check, take_tokens
from tests.support.one_cluster import ENTRA, ONE, SUBSCRIPTION, api, files, ready, record, world
from tests.support.pipeline_runs import another_worker_for_each_message, phases, push
from tests.support.replaced_ports import Around, around, calls_of
from tests.support.upgrade_blockers import deployment, sample, webhook
from tests.support.workloads import budget, pod

pytestmark = pytest.mark.lives

REGIONAL = {"list_compute_usages", "list_locations", "list_network_usages", "list_sizes", "list_versions"}
NOT_READ_BY_CHECKS = {
    *("Pod", "PodDisruptionBudget", "EndpointSlice"),
    *("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
}


def read(cloud: MemoryCloud, to: str = "1.38") -> Any:
    """Have the cluster read, and return what is shown of it."""
    read_readiness(["one"], "ann", cloud.ports)
    cloud.run(seconds=5)
    return shown(cloud, to)


def shown(cloud: MemoryCloud, to: str = "1.38") -> Any:
    (found,) = readiness_view(cloud.ports, FIRST_PAGE, EVERYTHING, to)["clusters"]
    return found


def blockers(found: Any) -> list[str]:
    return [f"{blocker['object']} {blocker['why']}" for blocker in found["blockers"]]


def shop(cloud: MemoryCloud) -> str:
    """Create the namespace shop; return the name of a node."""
    api(cloud).apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    return str(api(cloud).list("v1", "Node")[0]["metadata"]["name"])


def tight_budget(cloud: MemoryCloud) -> None:
    node = shop(cloud)
    above = api(cloud).apply(deployment("web", kind="StatefulSet", replicas=2, serviceName="web"))
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": True}
    owner["uid"] = above["metadata"]["uid"]
    api(cloud).apply(pod("web", node, namespace="shop", labels={"app": "web"}, ownerReferences=[owner]))
    api(cloud).apply(budget(namespace="shop", minAvailable=1))


def bare_pod(cloud: MemoryCloud) -> None:
    api(cloud).apply(pod("debug", shop(cloud), namespace="shop"))


def one_replica(cloud: MemoryCloud) -> None:
    shop(cloud)
    api(cloud).apply(deployment())
    api(cloud).apply(budget("cart", namespace="shop", maxUnavailable=0))


def dead_webhook(cloud: MemoryCloud) -> None:
    api(cloud).apply(webhook())


def old_api(cloud: MemoryCloud) -> None:
    world(cloud).metrics.append(sample("resourceclaims", "1.38"))


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (tight_budget, "PodDisruptionBudget shop/web allows no eviction: it needs 1 of 1 pod"),
        (bare_pod, "Pod shop/debug has no controller: nothing creates it again"),
        (one_replica, "Deployment shop/cart has one replica, and PodDisruptionBudget cart needs it"),
        (
            dead_webhook,
            "webhook pods.guard.io of ValidatingWebhookConfiguration guard refuses pods: its Service "
            "guard/guard has no ready endpoint",
        ),
        (
            old_api,
            "API resource.k8s.io/v1beta1 resourceclaims is asked for, and removed in Kubernetes 1.38 "
            "(apiserver_requested_deprecated_apis)",
        ),
    ],
)
def test_what_is_planted_is_found(plant: Callable[[MemoryCloud], None], found: str) -> None:
    cloud = ready(ENTRA)
    before = read(cloud, "1.37")
    assert (before["state"], before["blockers"], before["unknown"]) == ("ready", [], [])
    plant(cloud)
    after = read(cloud)
    assert (after["state"], blockers(after)) == ("blocked", [found])


def few_cores(cloud: MemoryCloud) -> None:
    cloud.azure.engine.quotas.limit(SUBSCRIPTION, "eastus", "cores", 1)


def test_cores_that_the_surge_lacks_and_a_version_that_is_not_offered_are_found() -> None:
    cloud = ready(ENTRA)
    few_cores(cloud)
    (found,) = blockers(read(cloud, "1.37"))
    assert found == "the limit of cores in eastus leaves 0 of 1, and the surge of a pool needs 4"
    assert "Azure does not offer Kubernetes 1.38 here" in shown(cloud, "1.39")["notes"][0]


def test_the_lists_of_a_region_are_read_once_for_all_its_clusters() -> None:
    cloud = ready(ENTRA)
    calls = calls_of(cloud, "azure", "call")
    read(cloud)
    first = Counter(call.name for call in calls)
    assert first["get_cluster"] == 1
    assert {name for name in first if name.startswith("list_")} == REGIONAL
    read(cloud)
    again = Counter(call.name for call in calls) - first
    assert not REGIONAL & {*again}


def test_a_region_of_which_azure_says_nothing_is_unknown() -> None:
    cloud = ready(ENTRA)
    answers = cloud.ports.azure.call

    def refuse(operation: AzureCall[Any]) -> Any:
        if isinstance(operation, ListComputeUsages):
            raise Unavailable("nobody answers")
        return answers(operation)

    around(cloud, "azure", call=refuse)
    found = read(cloud, "1.37")
    assert found["state"] == "unknown"
    assert found["unknown"] == ["how many cores are left in eastus could not be read: Azure did not say"]


def test_one_reading_serves_every_target() -> None:
    cloud = ready(ENTRA)
    old_api(cloud)
    assert read(cloud, "1.38")["state"] == "blocked"
    assert (shown(cloud, "1.37")["state"], shown(cloud, "")["state"]) == ("ready", "ready")


def test_a_service_with_a_ready_endpoint_answers_for_its_webhook() -> None:
    cloud = ready(ENTRA)
    dead_webhook(cloud)
    api(cloud).apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "guard"}})
    slices = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "guard-1",
            "namespace": "guard",
            "labels": {"kubernetes.io/service-name": "guard"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}],
    }
    api(cloud).apply(slices)
    assert read(cloud)["state"] == "ready"


def test_a_reading_takes_few_answers_of_the_api_server_and_a_check_none_of_them() -> None:
    cloud = ready(ENTRA)
    tight_budget(cloud)
    with counted(cloud) as calls:
        found = read(cloud)
    kinds = ["PodDisruptionBudget", "Pod", "Deployment", "StatefulSet"]
    kinds += ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "Node", "Kustomization"]
    assert calls.paged == kinds
    assert calls.measured == [METRIC]
    assert found["reads"] == len(kinds) + 1
    assert (calls.listed, calls.read, calls.applied, calls.written) == ([], [], [], [])
    with counted(cloud) as calls:
        check(cloud)
        push(cloud, files(f"{ENTRA}  tags: {{team: shop}}\n"))
        cloud.run()
    assert calls.listed
    assert not NOT_READ_BY_CHECKS.intersection(calls.listed)
    assert (calls.paged, calls.measured) == ([], [])


def test_without_budgets_no_workload_is_read() -> None:
    cloud = ready(ENTRA)
    with counted(cloud) as calls:
        read(cloud)
    assert not {"Deployment", "StatefulSet"}.intersection(calls.paged)


def test_a_reading_is_no_change_of_the_record() -> None:
    cloud = ready(ENTRA)
    before = record(cloud)
    read(cloud)
    assert record(cloud) == before
    assert phases(cloud)


def test_what_was_never_read_is_unknown() -> None:
    found = shown(ready())
    assert (found["state"], found["unknown"], found["readAt"]) == (
        "unknown",
        ["nobody has read it yet"],
        None,
    )


def test_what_was_read_too_long_ago_is_unknown() -> None:
    cloud = ready(ENTRA)
    read(cloud)
    cloud.clock.advance(timedelta(days=1, hours=1).total_seconds())
    found = shown(cloud)
    assert found["state"] == "unknown"
    assert "which is too long ago" in found["unknown"][0]


def test_a_reading_of_an_earlier_life_of_a_cluster_does_not_count() -> None:
    cloud = ready(ENTRA)
    read(cloud)
    known = cloud.state.readiness_of("one")
    cloud.state.save_readiness(changed(known, uid="another"))
    assert shown(cloud)["unknown"] == ["nobody has read it yet"]


def test_a_version_below_what_runs_is_unknown() -> None:
    cloud = ready(ENTRA)
    assert "AKS never goes back to 1.20" in read(cloud, "1.20")["unknown"][0]


def test_a_cluster_that_does_not_answer_is_unknown_and_is_asked_once() -> None:
    cloud = ready(ENTRA)
    another_worker_for_each_message(cloud)
    cloud.kubernetes.set_power(ONE, on=False)
    with counted(cloud) as calls:
        found = read(cloud)
    assert (found["state"], found["blockers"]) == ("unknown", [])
    assert found["unknown"]
    assert len(calls.paged) <= 1


def test_a_part_that_is_refused_is_unknown_and_the_others_are_read() -> None:
    cloud = ready(ENTRA)
    bare_pod(cloud)

    def refused(_: str) -> Any:
        raise Unauthorized("the identity may not get /metrics")

    inside(cloud, metric=refused)
    found = read(cloud)
    assert found["state"] == "blocked"
    assert found["unknown"] == [
        "the metrics of the API server could not be read: Unauthorized: the identity may not get /metrics"
    ]


def test_a_list_that_does_not_end_is_unknown() -> None:
    cloud = ready(ENTRA)
    asked = list[str]()

    def endless(_: str, kind: str, **how: Any) -> ObjectListPage:
        asked.append(kind)
        return ObjectListPage([], f"page {len(asked)}")

    inside(cloud, page=endless)
    found = read(cloud)
    assert found["state"] == "unknown"
    assert f"pods could not be read: there are more than {MOST_PAGES} pages" not in found["unknown"]
    assert asked.count("PodDisruptionBudget") == MOST_PAGES


def test_without_a_token_for_a_kubeconfig_a_cluster_is_read_a_minute_later() -> None:
    cloud = ready()
    another_worker_for_each_message(cloud)
    take_tokens(cloud, ONE, 1000)
    read_readiness(["one"], "ann", cloud.ports)
    cloud.run(seconds=5)
    assert shown(cloud)["readAt"] is None
    cloud.run(seconds=900)
    assert shown(cloud)["readAt"] is not None


def test_all_clusters_are_read_by_one_message_each() -> None:
    cloud = ready(ENTRA)
    receipt = read_readiness([], "ann", cloud.ports)
    assert (receipt.status, receipt.body["all"]) == (202, True)
    cloud.run(seconds=5)
    assert shown(cloud)["readAt"] is not None


def test_a_message_that_comes_twice_or_late_stores_the_newest_reading() -> None:
    cloud = ready(ENTRA)
    read(cloud)
    known = cloud.state.readiness_of("one")
    assert known.seen is not None
    later = changed(known.seen, at=known.seen.at + timedelta(hours=1))
    cloud.state.save_readiness(changed(known, seen=later))
    readiness.handle(ReadinessMessage(reading="again", cluster="one"), cloud.ports)
    assert cloud.state.readiness_of("one").seen == later


def test_a_cluster_that_is_unknown_is_not_read() -> None:
    cloud = ready(ENTRA)
    assert read_readiness(["other"], "ann", cloud.ports).status == 404
    readiness.handle(ReadinessMessage(reading="1", cluster="other"), cloud.ports)
    assert cloud.state.readiness_of("other").seen is None


def inside(cloud: MemoryCloud, **methods: Any) -> None:
    """Replace methods of the cluster's API."""
    kubernetes = cloud.ports.kubernetes

    def connect(*given: Any, **how: Any) -> Any:
        return Around(kubernetes.connect(*given, **how), **methods)

    cloud.with_ports(lambda ports: replace(ports, kubernetes=Around(kubernetes, connect=connect)))
