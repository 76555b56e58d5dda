"""A cluster that somebody deletes in Azure: the next sweep says so, and nothing is created unasked."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.app.api.views.clusters import cluster_detail, fleet_view
from shared.app.api.views.why import why_view
from shared.cluster.failures.errors import Unauthorized, Unavailable
from shared.cluster.queues.messages import SweepRequest
from shared.cluster.record_parts import Phase
from shared.ports.azure import DocumentPage, GetCluster, ListClusters
from tests.support import fleet_files
from tests.support.one_cluster import ENTRA, ONE, advice, files, ready, record
from tests.support.pipeline_runs import accepted, cloud_with, phases, push, status
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import delete_by_hand, handle, reads_of, ready_condition, sweep

pytestmark = pytest.mark.lives


def head(cloud: MemoryCloud) -> str:
    return cloud.repository.head("main")


def missing() -> MemoryCloud:
    """Return a cloud whose one cluster was deleted by hand, and a sweep has seen that."""
    cloud = ready()
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    return cloud


def test_a_sweep_of_clusters_that_are_as_they_were_changes_no_record_and_reads_no_cluster() -> None:
    cloud = ready()
    before, reads = record(cloud), reads_of(cloud)
    sweep(cloud)
    assert [type(read) for read in reads] == [ListClusters]
    assert record(cloud).etag == before.etag
    assert status(cloud, head(cloud))[0] == "success"


def test_a_deleted_cluster_is_not_ready_any_more_in_its_record_its_views_and_its_commit_status() -> None:
    cloud = missing()
    assert ready_condition(record(cloud)) == (False, "ClusterMissing")
    assert phases(cloud) == {"one": Phase.FAILED}
    detail, why = cluster_detail("one", cloud.ports), why_view("one", cloud.ports)
    assert detail is not None
    assert why is not None
    assert (detail["phase"], detail["events"][0]["reason"]) == ("Failed", "Failed")
    (shown,) = fleet_view(cloud.ports)["clusters"]
    assert (shown["runningVersion"], shown["nodes"], shown["fluxRevision"]) == ("", 0, "")
    assert why["doing"].startswith("is not Ready any more: the cluster no longer exists in Azure")
    assert "the next sweep compares it again" in why["next"]
    assert "`roadstead replay one`" in why["suggestedAction"]
    state, description = status(cloud, head(cloud))
    assert state == "failure"
    assert description.startswith("one: Failed at verify: ClusterMissing: the cluster no longer exists")
    counts = fleet_view(cloud.ports)["counts"]
    assert counts is not None
    assert counts["phases"] == {"Failed": 1}


def test_a_deleted_cluster_is_not_created_again_unasked_and_a_replay_does_it() -> None:
    cloud = missing()
    cloud.run(seconds=6 * 3600, until=lambda: False)
    assert accepted(cloud)["create", "one"] == 1
    assert replay("one", "someone", cloud.ports).status == 202
    assert status(cloud, head(cloud))[0] == "failure"
    cloud.run()
    assert accepted(cloud)["create", "one"] == 2
    assert (phases(cloud), ready_condition(record(cloud))) == ({"one": Phase.READY}, (True, "Done"))
    assert status(cloud, head(cloud))[0] == "success"


def test_the_commit_is_not_in_sync_while_the_cluster_is_created_again() -> None:
    cloud = missing()
    cloud.azure.interventions.stick_next("one")
    replay("one", "someone", cloud.ports)
    cloud.run(seconds=900, until=lambda: False)
    assert (record(cloud).job.active, record(cloud).lost) == (True, True)
    assert status(cloud, head(cloud))[0] == "pending"


def test_a_later_commit_that_changes_another_cluster_leaves_a_missing_one_as_it_is() -> None:
    cloud = missing()
    commit = push(cloud, files() | {"clusters/two/cluster.yaml": fleet_files.cluster("two")})
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED, "two": Phase.READY}
    assert status(cloud, commit)[0] == "failure"


def test_a_cluster_that_is_being_deleted_by_hand_is_not_ready_any_more() -> None:
    cloud = ready()
    cloud.azure.engine.timings = cloud.azure.engine.timings.__class__(delete_cluster=3000)
    cloud.azure.delete_cluster(ONE)
    sweep(cloud)
    assert ready_condition(record(cloud)) == (False, "ClusterMissing")
    assert "Azure is deleting the cluster" in record(cloud).job.reason


def test_one_read_that_shows_no_cluster_is_not_enough() -> None:
    cloud = ready()
    azure, reads = cloud.ports.azure, list[Any]()

    def once_absent(operation: GetCluster) -> Any:
        reads.append(operation)
        return None if len(reads) == 1 else azure.call(operation)

    on_azure(cloud, GetCluster, once_absent)
    on_azure(cloud, ListClusters, lambda _: DocumentPage([], ""))
    sweep(cloud)
    assert len(reads) == 2
    assert phases(cloud) == {"one": Phase.READY}


def test_a_list_that_lacks_a_cluster_which_exists_leaves_the_cluster_ready() -> None:
    cloud = ready()
    on_azure(cloud, ListClusters, lambda _: DocumentPage([], ""))
    sweep(cloud)
    assert phases(cloud) == {"one": Phase.READY}
    assert [listing.problem for listing in cloud.state.sweep().listings] == [""]


def test_a_list_that_fails_concludes_nothing_and_says_so() -> None:
    cloud = ready()
    delete_by_hand(cloud, ONE)
    azure = cloud.ports.azure

    def refuse(_: ListClusters) -> Any:
        raise Unauthorized("the identity of control may not list")

    on_azure(cloud, ListClusters, refuse)
    sweep(cloud)
    assert phases(cloud) == {"one": Phase.READY}
    (listing,) = cloud.state.sweep().listings
    assert (listing.at, listing.problem) == (
        None,
        "its clusters cannot be listed: Unauthorized: the identity of control may not list",
    )
    on_azure(cloud, ListClusters, azure.call)
    sweep(cloud)
    assert cloud.state.sweep().listings[0].problem == ""
    assert phases(cloud) == {"one": Phase.FAILED}


def test_a_list_whose_second_page_fails_concludes_nothing_of_the_first() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two"), throttle=False)
    cloud.azure.engine.page_size = 1
    cloud.azure.interventions.stop(ONE)
    azure = cloud.ports.azure

    def second_page_fails(operation: ListClusters) -> Any:
        if operation.page:
            raise Unavailable("no answer")
        return azure.call(operation)

    on_azure(cloud, ListClusters, second_page_fails)
    sweep(cloud)
    assert set(phases(cloud).values()) == {Phase.READY}
    on_azure(cloud, ListClusters, azure.call)
    sweep(cloud)
    assert phases(cloud) == {"one": Phase.FAILED, "two": Phase.READY}


def test_a_cluster_whose_job_runs_is_left_to_the_job() -> None:
    cloud = ready()
    delete_by_hand(cloud, ONE)
    push(cloud, files("  tags: {a: b}\n"))
    while not record(cloud).job.active:
        cloud.step()
    active = record(cloud)
    handle(cloud, SweepRequest())
    handle(cloud, SweepRequest(clusters=("one",), absent=True))
    assert record(cloud).job.sequence == active.job.sequence


def test_two_sweeps_at_once_are_harmless() -> None:
    cloud = ready()
    delete_by_hand(cloud, ONE)
    for _ in range(2):
        handle(cloud, SweepRequest())
        handle(cloud, SweepRequest(clusters=("one",), absent=True))
    cloud.run()
    events = [event.reason for event in cloud.state.events("one", 50)]
    assert events.count("Failed") == 1
    assert ready_condition(record(cloud)) == (False, "ClusterMissing")


def test_nothing_of_a_deleted_cluster_is_part_of_the_one_that_takes_its_place() -> None:
    cloud = ready(ENTRA)
    assert record(cloud).observation.api_server is not None
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    found = record(cloud)
    assert (found.observation.verified, found.observation.running, found.observation.api_server) == (
        None,
        None,
        None,
    )


def test_the_advice_names_the_activity_log() -> None:
    assert advice(missing()).startswith("Azure's activity log shows who deleted it.")
