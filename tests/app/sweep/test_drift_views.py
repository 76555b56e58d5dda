"""What the API shows of drift: the fields with both values, and pages of the clusters that differ."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api import schema
from shared.app.api.parts import FIRST_PAGE, ClusterPage
from shared.app.api.views.clusters import cluster_detail, fleet_view
from shared.app.api.views.drift import drift_of_cluster, drift_view
from shared.app.api.views.why import why_view
from tests.support import fleet_files
from tests.support.one_cluster import ONE, cluster, pool, ready
from tests.support.pipeline_runs import cloud_with
from tests.support.sweeps import sweep, tag_by_hand


def test_the_views_name_the_fields_and_since_when() -> None:
    cloud = ready(pool(count=2))
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    detail, why = cluster_detail("one", cloud.ports), why_view("one", cloud.ports)
    assert detail is not None
    assert why is not None
    assert detail["reason"] == "differs from git in nodePools[apps].count"  # type: ignore[typeddict-item]
    source = "clusters/one/cluster.yaml:11"
    assert why["doing"].endswith(f"it differs from git in nodePools[apps].count, set in {source}")
    message = f"differs from git in nodePools[apps].count (2 in {source}, 5 live)"
    assert detail["events"][0]["message"] == message
    (shown,) = drift_view(cloud.ports, FIRST_PAGE)["clusters"]
    (field,) = shown["fields"]
    assert (shown["name"], field["path"], field["git"], field["live"], field["source"]) == (
        *("one", "nodePools[apps].count"),
        *("2", "5", source),
    )
    assert drift_of_cluster("one", cloud.ports) == drift_view(cloud.ports, FIRST_PAGE)
    assert drift_of_cluster("two", cloud.ports) is None


def test_the_view_of_a_fleet_has_pages() -> None:
    cloud = cloud_with(fleet_files.fleet("a", "b", "c"), throttle=False)
    for record in (found for found in cloud.state.clusters() if found.name != "b"):
        tag_by_hand(cloud, record.desired.id, own="x")
    sweep(cloud)
    first = drift_view(cloud.ports, ClusterPage(limit=1))
    second = drift_view(cloud.ports, ClusterPage(after=first["next"] or "", limit=1))
    names = [drifted["name"] for page in (first, second) for drifted in page["clusters"]]
    assert (names, first["count"]) == (["a", "c"], 2)


def test_a_sweep_updates_the_version_and_the_nodes_that_run() -> None:
    cloud = ready(pool(count=2))
    assert (running(cloud)["runningVersion"], running(cloud)["nodes"]) == ("1.36.3", 3)
    live = cluster(cloud)
    cloud.azure.put_cluster(ONE, {**live, "properties": {**live["properties"], "kubernetesVersion": "1.37"}})
    sweep(cloud)
    cloud.azure.interventions.scale(ONE, "apps", 5)
    revision = running(cloud)["fluxRevision"]
    sweep(cloud)
    shown = running(cloud)
    assert shown["runningVersion"].startswith("1.37.")
    assert (shown["nodes"], shown["fluxRevision"]) == (6, revision)


def running(cloud: MemoryCloud) -> schema.ClusterSummaryView:
    (found,) = fleet_view(cloud.ports)["clusters"]
    return found


def test_the_version_that_runs_decides_what_retires_and_not_that_of_git() -> None:
    cloud = ready()
    cloud.clock.advance(394 * 24 * 3600)
    assert [retirement["what"] for retirement in running(cloud)["retirements"]] == ["Kubernetes 1.36"]
    live = cluster(cloud)
    newer = {**live["properties"], "kubernetesVersion": "1.37"}
    cloud.azure.put_cluster(ONE, {**live, "properties": newer})
    sweep(cloud)
    assert running(cloud)["retirements"] == []
