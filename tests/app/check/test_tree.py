"""A cluster as a tree: what a check read in it, how old that is, and what it costs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api import schema
from shared.app.api.views.tree import tree_view
from shared.cluster.record import to_json
from shared.kubernetes.flux_objects import KUSTOMIZATION
from shared.kubernetes.inside import NAMED
from shared.resource_ids import ObjectRef
from tests.support.checks import check, pass_time
from tests.support.flux_components import named
from tests.support.one_cluster import (
    ENTRA,
    ONE,
    api,
    branch_files,
    files,
    live,
    pool,
    pools,
    ready,
    record,
    world,
)
from tests.support.pipeline_runs import another_worker_for_each_message, push
from tests.support.sweeps import delete_by_hand, sweep

pytestmark = pytest.mark.lives

MORE = b"{apiVersion: v1, kind: ConfigMap, metadata: {name: more, namespace: default}}"
PODS = {"selector": {"matchLabels": {"app": "web"}}}
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
}


def tree(cloud: MemoryCloud) -> schema.TreeView:
    found = tree_view("one", cloud.ports)
    assert found is not None
    return found


def group(groups: list[schema.ObjectGroup], kind: str) -> schema.ObjectGroup:
    return next(part for part in groups if part["kind"] == kind)


def workload(kind: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    """Return a workload of the namespace shop."""
    body = named(kind, name, "apps/v1", spec={**PODS, "template": TEMPLATE, **spec})
    return {**body, "metadata": {"name": name, "namespace": "shop"}}


def run(cloud: MemoryCloud, *workloads: dict[str, Any]) -> None:
    """Create workloads in the cluster as a person does; no StatefulSet has a controller there."""
    api(cloud).apply(named("Namespace", "shop"))
    for document in workloads:
        api(cloud).apply(document)


def test_a_cluster_that_no_check_has_read_has_its_pools_from_git_and_no_age() -> None:
    cloud = ready(pool(orchestratorVersion="'1.36'"))
    shown = tree(cloud)
    assert (shown["checkedAt"], shown["flux"], shown["workloads"]) == (None, [], [])
    assert [
        (shown_pool["name"], shown_pool["wantedVersion"], shown_pool["nodes"])
        for shown_pool in shown["nodePools"]
    ] == [
        ("system", shown["kubernetesVersion"], 0),
        ("apps", "1.36", 0),
    ]
    assert tree_view("nobody", cloud.ports) is None


def test_a_healthy_cluster_is_counted_and_names_no_object() -> None:
    cloud = ready(pool(count=2))
    check(cloud)
    shown = tree(cloud)
    assert shown["checkedAt"] is not None
    assert [
        (shown_pool["name"], shown_pool["nodes"], shown_pool["ready"]) for shown_pool in shown["nodePools"]
    ] == [
        ("system", 1, 1),
        ("apps", 2, 2),
    ]
    for part in (*shown["flux"], *shown["workloads"]):
        assert (part["ready"], part["failed"], part["unhealthy"]) == (
            part["total"],
            0,
            [],
        )
    assert group(shown["flux"], "GitRepository")["total"] == 1
    assert group(shown["flux"], "Kustomization")["total"] == 1
    assert [condition["type"] for condition in shown["conditions"]] == [
        *("Ready", "InSync", "FluxHealthy", "PlatformHealthy", "Stalled")
    ]


def applied(cloud: MemoryCloud) -> str:
    """Return what the first Kustomization says that it applied last."""
    return str(live(cloud, KUSTOMIZATION)["status"]["lastAppliedRevision"])


def test_the_revision_is_the_one_that_flux_says_it_applied_also_after_a_commit_was_broken_and_repaired() -> (
    None
):
    cloud = ready(fleet=branch_files)
    first = tree(cloud)
    assert (first["fluxRevision"], first["checkedAt"]) == (applied(cloud), None)
    push(cloud, branch_files() | {"platform/broken.yaml": b"kind: [unfinished"})
    check(cloud)
    broken = tree(cloud)
    assert broken["fluxRevision"] == applied(cloud) == first["fluxRevision"]
    repaired = push(cloud, branch_files() | {"platform/more.yaml": MORE})
    check(cloud)
    shown = tree(cloud)
    assert shown["fluxRevision"] == applied(cloud) == f"main@sha1:{repaired}"
    assert shown["fluxReadAt"] == shown["checkedAt"] != first["fluxReadAt"]


def test_the_revision_keeps_the_time_at_which_it_was_read_whatever_else_is_read_later() -> None:
    cloud = ready(fleet=branch_files)
    before = tree(cloud)
    pass_time(cloud)
    push(cloud, branch_files() | {"platform/more.yaml": MORE})
    pass_time(cloud)
    sweep(cloud)
    shown = tree(cloud)
    assert applied(cloud) != shown["fluxRevision"]
    assert (shown["fluxRevision"], shown["fluxReadAt"]) == (before["fluxRevision"], before["fluxReadAt"])
    message = next(condition["message"] for condition in shown["conditions"] if condition["type"] == "Ready")
    at = datetime.fromisoformat(before["fluxReadAt"] or "")
    assert message == f"Flux applied {before['fluxRevision']}, read at {at:%Y-%m-%d %H:%M:%S} UTC"


def test_a_kustomization_that_somebody_deleted_has_applied_nothing() -> None:
    cloud = ready()
    api(cloud).delete(live(cloud, KUSTOMIZATION))
    check(cloud)
    shown = tree(cloud)
    assert (shown["fluxRevision"], shown["fluxReadAt"]) == ("", shown["checkedAt"])


def test_a_replaced_pool_has_the_name_of_git_and_not_that_of_azure() -> None:
    cloud = ready(pool(count=2))
    push(cloud, files(pool("Standard_D8s_v5", count=2)))
    cloud.run()
    assert "appsb" in pools(cloud)
    check(cloud)
    assert [
        (shown_pool["name"], shown_pool["wantedVersion"], shown_pool["nodes"])
        for shown_pool in tree(cloud)["nodePools"]
    ] == [
        ("system", "1.36", 1),
        ("apps", "1.36", 2),
    ]


def test_the_versions_of_the_nodes_stand_beside_that_of_git() -> None:
    cloud = ready()
    check(cloud)
    (system,) = tree(cloud)["nodePools"]
    (node,) = api(cloud).list("v1", "Node")
    assert system["versions"] == [node["status"]["nodeInfo"]["kubeletVersion"].removeprefix("v")]


def test_what_a_commit_breaks_in_flux_is_named_with_its_reason_and_its_time() -> None:
    cloud = ready(fleet=branch_files)
    check(cloud)
    push(cloud, branch_files() | {"platform/broken.yaml": b"kind: [unfinished"})
    cloud.run()
    check(cloud)
    kustomizations = group(tree(cloud)["flux"], "Kustomization")
    assert (kustomizations["total"], kustomizations["ready"], kustomizations["failed"]) == (1, 0, 1)
    broken = next(
        unhealthy for unhealthy in kustomizations["unhealthy"] if unhealthy["name"] == "flux-system"
    )
    assert (broken["namespace"], broken["reason"]) == ("flux-system", "BuildFailed")
    assert not broken["message"].startswith("BuildFailed")
    assert broken["since"] is not None
    assert broken["since"] < (tree(cloud)["checkedAt"] or "")


def test_workloads_that_do_not_run_are_named_and_make_the_cluster_no_less_ready() -> None:
    cloud = ready()
    run(cloud, workload("StatefulSet", replicas=2, serviceName="web"), workload("Deployment"))
    pass_time(cloud)
    world(cloud).missing_images.add("late:1")
    late = {"metadata": TEMPLATE["metadata"], "spec": {"containers": [{"name": "web", "image": "late:1"}]}}
    api(cloud).apply(workload("Deployment", "late") | {"spec": {**PODS, "template": late}})
    pass_time(cloud)
    check(cloud)
    shown = tree(cloud)
    sets, deployments = (group(shown["workloads"], kind) for kind in ("StatefulSet", "Deployment"))
    assert [
        (unhealthy["name"], unhealthy["namespace"], unhealthy["message"]) for unhealthy in sets["unhealthy"]
    ] == [("web", "shop", "0 of 2 pods are available")]
    assert (deployments["total"], deployments["failed"]) == (2, 1)
    assert [unhealthy["name"] for unhealthy in deployments["unhealthy"]] == ["late"]
    assert shown["phase"] == "Ready"
    assert {condition["status"] for condition in shown["conditions"] if condition["type"] != "Stalled"} == {
        "True"
    }


def test_a_deployment_of_flux_is_what_roadstead_applied_and_no_workload_besides() -> None:
    cloud = ready()
    ref = ObjectRef("apps/v1", "Deployment", "source-controller", "flux-system")
    check(cloud)
    deployments = group(tree(cloud)["workloads"], "Deployment")["total"]
    assert deployments == len(api(cloud).list("apps/v1", "Deployment")) - 2
    api(cloud).delete(api(cloud).get(ref) or {})
    check(cloud)
    applied = group(tree(cloud)["flux"], "Component")
    assert (applied["failed"], applied["ready"]) == (1, applied["total"] - 1)
    assert [
        (unhealthy["kind"], unhealthy["name"], unhealthy["reason"]) for unhealthy in applied["unhealthy"]
    ] == [("Deployment", "source-controller", "ObjectMissing")]


def test_a_cluster_with_thousands_of_broken_objects_has_a_small_record() -> None:
    cloud = ready()
    check(cloud)
    before = len(to_json(record(cloud)))
    run(cloud, *(workload("StatefulSet", f"web-{number}", serviceName="web") for number in range(1200)))
    pass_time(cloud)
    check(cloud)
    sets = group(tree(cloud)["workloads"], "StatefulSet")
    assert (sets["total"], sets["failed"], len(sets["unhealthy"])) == (1200, 1200, NAMED)
    assert len(to_json(record(cloud))) - before < NAMED * 500


def test_what_was_read_keeps_its_time_while_the_cluster_cannot_be_read() -> None:
    cloud = ready(ENTRA)
    check(cloud)
    read = tree(cloud)
    cloud.kubernetes.stop(ONE)
    another_worker_for_each_message(cloud)
    check(cloud)
    shown = tree(cloud)
    assert (shown["checkedAt"], shown["flux"]) == (read["checkedAt"], read["flux"])
    assert {
        condition["status"] for condition in shown["conditions"] if condition["type"] == "FluxHealthy"
    } == {"Unknown"}


def test_nothing_is_left_of_the_inside_of_a_cluster_that_no_longer_exists() -> None:
    cloud = ready()
    check(cloud)
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    cloud.run(seconds=60)
    assert tree(cloud)["checkedAt"] is None


@pytest.mark.parametrize("count", [1, 300])
def test_the_tree_itself_reads_no_cluster(count: int) -> None:
    cloud = ready()
    run(cloud, *(workload("StatefulSet", f"web-{number}", serviceName="web") for number in range(count)))
    check(cloud)
    cloud.kubernetes.stop(ONE)
    assert group(tree(cloud)["workloads"], "StatefulSet")["total"] == count
