"""Clusters that somebody stops, breaks or tags: a sweep reports it, and takes it back when it is over."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import refresh, replay, take_over
from shared.app.api.views.clusters import cluster_detail, fleet_view
from shared.app.sweep.activity import ActivityLog
from shared.app.sweep.conclusions import Sources, conclude_from_list
from shared.cluster.queues.messages import SweepRequest
from shared.cluster.record_parts import Phase
from tests.support.fleet_files import all_at_once
from tests.support.one_cluster import ONE, advice, cluster, files, pool, ready, record
from tests.support.pipeline_runs import accepted, phases, push, status
from tests.support.sweeps import handle, in_sync, ready_condition, sweep

pytestmark = pytest.mark.lives


def state_of_commit(cloud: MemoryCloud) -> str:
    return status(cloud, cloud.repository.head("main"))[0]


def test_a_stopped_cluster_is_not_ready_until_it_runs_again() -> None:
    cloud = ready()
    written = dict(accepted(cloud))
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    assert ready_condition(record(cloud)) == (False, "ClusterStopped")
    assert advice(cloud).startswith("Start the cluster with `az aks start`; `roadstead refresh one`")
    assert state_of_commit(cloud) == "failure"
    cloud.azure.interventions.start(ONE)
    sweep(cloud)
    assert (phases(cloud), ready_condition(record(cloud))) == ({"one": Phase.READY}, (True, "Done"))
    assert (record(cloud).finding, record(cloud).lost) == ("", False)
    assert state_of_commit(cloud) == "success"
    assert dict(accepted(cloud)) == written, "a sweep writes nothing to Azure"


def test_a_second_sweep_of_a_stopped_cluster_changes_nothing_more() -> None:
    cloud = ready()
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    before = record(cloud)
    sweep(cloud)
    assert record(cloud).etag == before.etag


def test_a_record_that_was_written_after_the_list_is_not_compared_with_it() -> None:
    cloud = ready()
    cloud.azure.interventions.stop(ONE)
    listed = cluster(cloud)
    for minutes in (1, 3, 9):
        written = cloud.state.save(replace(record(cloud), updated=cloud.clock() + timedelta(minutes=minutes)))
        sources, activity = Sources("", cloud.ports), ActivityLog(cloud.ports, {})
        assert not conclude_from_list("one", listed, cloud.clock(), sources, activity, cloud.ports)
        assert record(cloud) == written


def failed_by_hand(cloud: MemoryCloud, *, in_pool: bool) -> None:
    cloud.azure.interventions.fail_next("one", "QuotaExceeded", "no vCPUs are left")
    if in_pool:
        cloud.azure.put_pool(ONE, "apps", {"properties": {"count": 5, "vmSize": "Standard_D4s_v5"}})
    else:
        cloud.azure.patch_cluster(ONE, {"tags": {**cluster(cloud)["tags"], "a": "b"}})


@pytest.mark.parametrize(
    ("in_pool", "what"), [(False, "the cluster is Failed"), (True, "the node pool apps")]
)
def test_an_operation_of_somebody_else_that_failed_is_shown(in_pool: bool, what: str) -> None:
    cloud = ready(pool())
    failed_by_hand(cloud, in_pool=in_pool)
    sweep(cloud)
    assert ready_condition(record(cloud)) == (False, "ClusterFailed")
    assert what in record(cloud).job.reason
    assert record(cloud).job.reason.endswith("no vCPUs are left")
    assert in_sync(record(cloud)) == (None, "ClusterFailed")


def test_an_operation_that_runs_is_no_finding() -> None:
    cloud = ready()
    cloud.azure.interventions.stick_next("one")
    cloud.azure.patch_cluster(ONE, {"tags": {**cluster(cloud)["tags"], "a": "b"}})
    sweep(cloud)
    assert phases(cloud) == {"one": Phase.READY}


def contest(cloud: MemoryCloud) -> None:
    tags = {**cluster(cloud)["tags"], "roadstead-contested-by": "0a0b0c0d@staging"}
    cloud.azure.patch_cluster(ONE, {"tags": tags})


def contested() -> MemoryCloud:
    cloud = ready()
    contest(cloud)
    sweep(cloud)
    return cloud


def test_nothing_says_whether_a_contested_cluster_is_as_git_has_it_until_a_sweep_compares_it_again() -> None:
    cloud = contested()
    assert in_sync(record(cloud)) == (None, "ClusterContested")
    tags = {key: value for key, value in cluster(cloud)["tags"].items() if key != "roadstead-contested-by"}
    cloud.azure.patch_cluster(ONE, {"tags": tags})
    sweep(cloud)
    assert in_sync(record(cloud)) == (True, "Done")


def test_nothing_says_whether_a_cluster_is_as_git_has_it_whose_job_waits_for_a_takeover() -> None:
    cloud = ready()
    contest(cloud)
    push(cloud, files("  tags: {a: b}\n"))
    cloud.run(seconds=600)
    assert record(cloud).contested
    assert in_sync(record(cloud)) == (None, "ClusterContested")
    assert take_over("one", "someone", cloud.ports).status == 202
    cloud.run()
    assert in_sync(record(cloud)) == (True, "Done")


def test_a_contest_tag_on_an_idle_cluster_is_noticed_and_a_takeover_decides() -> None:
    cloud = contested()
    assert ready_condition(record(cloud)) == (False, "ClusterContested")
    assert "another installation: 0a0b0c0d" in record(cloud).job.reason
    detail = cluster_detail("one", cloud.ports)
    assert detail is not None
    assert detail["awaitsTakeover"]  # type: ignore[typeddict-item]
    assert fleet_view(cloud.ports)["problem"].startswith("clusters that are not written to")
    assert take_over("one", "someone", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert fleet_view(cloud.ports)["problem"] == ""
    sweep(cloud)
    assert phases(cloud) == {"one": Phase.READY}


def test_a_contest_that_the_other_app_gives_up_is_over_with_the_next_sweep() -> None:
    cloud = contested()
    tags = {key: value for key, value in cluster(cloud)["tags"].items() if key != "roadstead-contested-by"}
    cloud.azure.patch_cluster(ONE, {"tags": tags})
    sweep(cloud)
    assert phases(cloud) == {"one": Phase.READY}
    assert not record(cloud).contested


@pytest.mark.parametrize("tag", ["roadstead-fleet", "roadstead-cluster"])
def test_a_cluster_with_other_tags_in_the_place_of_ours_is_not_ready(tag: str) -> None:
    cloud = ready()
    cloud.azure.patch_cluster(ONE, {"tags": {**cluster(cloud)["tags"], tag: "other"}})
    sweep(cloud)
    assert ready_condition(record(cloud)) == (False, "ClusterContested")


def test_a_commit_that_changes_a_stopped_cluster_starts_a_job_which_waits_for_the_start() -> None:
    cloud = ready()
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    push(cloud, all_at_once(files("  tags: {a: b}\n")))
    cloud.run(seconds=600)
    assert (record(cloud).finding, record(cloud).phase) == ("", Phase.UPDATING)
    cloud.azure.interventions.start(ONE)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_record_that_was_written_a_moment_ago_is_left_to_the_next_sweep() -> None:
    cloud = ready()
    cloud.azure.interventions.stop(ONE)
    current = record(cloud)
    cloud.state.save(replace(current, updated=cloud.clock()))
    handle(cloud, SweepRequest())
    assert phases(cloud) == {"one": Phase.READY}
    sweep(cloud)
    assert phases(cloud) == {"one": Phase.FAILED}


def without_tags(cloud: MemoryCloud) -> None:
    cloud.azure.patch_cluster(ONE, {"tags": {}})


def test_a_cluster_without_our_tags_waits_for_them_and_not_for_a_takeover_which_would_be_refused() -> None:
    cloud = ready()
    tags = cluster(cloud)["tags"]
    without_tags(cloud)
    sweep(cloud)
    assert ready_condition(record(cloud)) == (False, "ClusterContested")
    assert take_over("one", "someone", cloud.ports).status == 409
    assert advice(cloud) == "Restore the tags that the message names, then run `roadstead refresh one`."
    assert "expected the tags" in record(cloud).job.reason
    cloud.azure.patch_cluster(ONE, {"tags": tags})
    assert refresh(["one"], "someone", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_job_that_meets_its_own_cluster_without_our_tags_does_not_ask_for_another_name() -> None:
    cloud = ready()
    tags = cluster(cloud)["tags"]
    without_tags(cloud)
    push(cloud, files("  tags: {a: b}\n"))
    cloud.run(seconds=600)
    assert record(cloud).job.reason.startswith("NotOwned: ")
    assert advice(cloud) == "Restore the tags that the message names, then run `roadstead replay one`."
    cloud.azure.patch_cluster(ONE, {"tags": tags})
    assert replay("one", "someone", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
