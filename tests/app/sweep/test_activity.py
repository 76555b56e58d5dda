"""Who changed what: a sweep reads the activity log for a new difference, and for nothing else."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.parts import FIRST_PAGE
from shared.app.api.views.drift import drift_of_cluster, drift_view
from shared.app.api.views.why import why_view
from shared.azure.rate_limits import ARM_READ
from shared.cluster.divergence.drift import ASKED_AGAIN
from shared.cluster.failures.errors import FluxUnhealthy, Unauthorized, Unavailable
from shared.cluster.outcomes import Fail
from shared.cluster.queues.messages import SweepRequest
from shared.cluster.record import from_json, to_json
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.ports.azure import DocumentPage, GetCluster, ListClusters
from shared.ports.azure.clusters import ListActivity
from tests.support import fleet_files
from tests.support.activity import ANN, BOB, asked, changes, scaled
from tests.support.one_cluster import ONE, files, pool, pools, ready, record
from tests.support.pipeline_runs import cloud_with, push
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import change_pool_by_hand, handle, sweep, tag_by_hand, use_up_reads

pytestmark = pytest.mark.lives


def test_a_new_difference_has_who_made_it_and_when() -> None:
    cloud = ready(pool(count=2))
    scaled(cloud, 5)
    at = cloud.clock()
    sweep(cloud)
    (found,) = drift_view(cloud.ports, FIRST_PAGE)["clusters"]
    (field,) = found["fields"]
    assert (field["path"], field["changedBy"]) == ("nodePools[apps].count", ANN)
    assert field["changedAt"] is not None
    assert field["changedAt"] < at.isoformat()
    why = why_view("one", cloud.ports)
    assert why is not None
    assert "differs from git in nodePools[apps].count, set in clusters/one/cluster.yaml:" in why["doing"]
    assert "; may have been changed 2026-01-01 00:" in why["doing"]
    assert why["doing"].endswith(f" UTC by {ANN}")
    assert from_json(to_json(record(cloud)), "v1") == record(cloud)


def test_a_replaced_pool_has_who_changed_it_under_its_name_in_azure() -> None:
    cloud = ready(pool(count=2))
    push(cloud, files(pool("Standard_D8s_v5", count=2)))
    cloud.run()
    assert "appsb" in pools(cloud)
    cloud.clock.advance(600)
    with cloud.azure.called_by(ANN):
        change_pool_by_hand(cloud, ONE, "appsb", count=5)
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": ANN}


def test_a_sweep_reads_the_log_once_for_a_new_difference_and_never_without_one() -> None:
    cloud = ready(pool(count=2))
    reads = asked(cloud)
    sweep(cloud)
    assert reads == []
    scaled(cloud, 5)
    sweep(cloud)
    assert len(reads) == 1
    sweep(cloud)
    assert len(reads) == 1
    assert changes(cloud) == {"nodePools[apps].count": ANN}
    with cloud.azure.called_by(BOB):
        tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    assert len(reads) == 2
    assert changes(cloud) == {"nodePools[apps].count": ANN, "tags.own": BOB}


def test_another_value_of_the_same_field_is_a_new_difference() -> None:
    cloud = ready(pool(count=2))
    scaled(cloud, 5)
    sweep(cloud)
    scaled(cloud, 7, BOB)
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": BOB}


def test_many_clusters_of_a_subscription_cost_one_request() -> None:
    cloud = cloud_with(fleet_files.fleet("a", "b", "c"), throttle=False)
    reads = asked(cloud)
    for cluster in cloud.state.clusters():
        tag_by_hand(cloud, cluster.desired.id, own="x")
    sweep(cloud)
    assert len(drift_view(cloud.ports, FIRST_PAGE)["clusters"]) == 3
    assert len(reads) == 1


def test_the_writes_of_a_job_are_nobody_elses_and_earlier_changes_do_not_count() -> None:
    cloud = ready(pool(count=2))
    scaled(cloud, 5, BOB)
    scaled(cloud, 2, BOB)
    cloud.clock.advance(600)
    push(cloud, files(pool(count=3)))
    cloud.run()
    assert pools(cloud)["apps"]["count"] == 3
    cloud.azure.interventions.scale(ONE, "apps", 9)
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": ""}


def test_a_refresh_of_one_cluster_names_who_changed_it_too() -> None:
    cloud = ready(pool(count=2))
    scaled(cloud, 5)
    handle(cloud, SweepRequest(sweep="1", clusters=("one",)))
    assert changes(cloud) == {"nodePools[apps].count": ANN}


def test_a_missing_permission_is_said_once_and_is_no_error() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two"), throttle=False)
    asked(cloud, refuse=Unauthorized("no role"))
    for cluster in cloud.state.clusters():
        tag_by_hand(cloud, cluster.desired.id, own="x")
    sweep(cloud)
    view = drift_view(cloud.ports, FIRST_PAGE)
    assert view["count"] == 2
    assert view["activityLog"] == f"not permitted to read the activity log of {ONE.subscription}"
    assert cloud.state.sweep().listings[0].problem == ""
    own = drift_of_cluster("one", cloud.ports)
    assert own is not None
    assert own["activityLog"] == view["activityLog"]


def test_the_reason_is_kept_of_a_subscription_whose_id_has_capital_letters() -> None:
    cloud = MemoryCloud(throttle=False)
    spelled = "ABCDEF00-0000-0000-0000-00000000000A"
    cloud.azure.engine.subscriptions = (spelled.lower(), spelled)
    content = fleet_files.fleet("one")
    manifest = content["clusters/one/cluster.yaml"].decode()
    manifest = manifest.replace("spec:\n", f"spec:\n  subscriptionId: {spelled}\n", 1)
    push(cloud, content | {"clusters/one/cluster.yaml": manifest.encode()})
    cloud.run()
    asked(cloud, refuse=Unauthorized("no role"))
    tag_by_hand(cloud, record(cloud).desired.id, own="x")
    sweep(cloud)
    reason = f"not permitted to read the activity log of {spelled.lower()}"
    assert drift_view(cloud.ports, FIRST_PAGE)["activityLog"] == reason


def test_a_log_that_has_to_wait_for_the_read_limit_reserves_no_token_for_the_reads_before() -> None:
    cloud = cloud_with(fleet_files.fleet("a", "b", "c"), throttle=False)
    azure, key, full_at = cloud.ports.azure, f"{ONE.subscription}|{ARM_READ.name}", list[datetime]()
    cloud.ports.process.tokens.drop(key)

    def used_up(operation: GetCluster) -> Any:
        if operation.target.name == "c":
            use_up_reads(cloud, ONE, 600)
            bucket = cloud.state.bucket(key)
            assert bucket is not None
            full_at.append(bucket.full_at)
        return azure.call(operation)

    for cluster in cloud.state.clusters():
        if cluster.name == "c":
            tag_by_hand(cloud, cluster.desired.id, own="x")
    on_azure(cloud, GetCluster, used_up)
    handle(cloud, SweepRequest(sweep="1", clusters=("a", "b", "c")))
    bucket = cloud.state.bucket(key)
    assert bucket is not None
    assert (bucket.full_at - full_at[0]) // ARM_READ.interval == 1, "that of the log's own read"


def test_a_permission_that_is_given_later_is_seen_with_the_next_new_difference() -> None:
    cloud = ready(pool(count=2))
    azure = cloud.ports.azure
    asked(cloud, refuse=Unauthorized("no role"))
    scaled(cloud, 5)
    sweep(cloud)
    on_azure(cloud, ListActivity, azure.call)
    with cloud.azure.called_by(BOB):
        tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    assert drift_view(cloud.ports, FIRST_PAGE)["activityLog"] == ""
    assert changes(cloud)["tags.own"] == BOB


def test_a_change_that_the_log_does_not_show_yet_has_who_made_it_with_the_next_sweep() -> None:
    cloud = ready(pool(count=2))
    azure = cloud.ports.azure
    on_azure(cloud, ListActivity, lambda _: DocumentPage((), ""))
    scaled(cloud, 5)
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": ""}
    with cloud.azure.called_by(BOB):
        tag_by_hand(cloud, ONE, own="x")
    on_azure(cloud, ListActivity, azure.call)
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": ANN, "tags.own": BOB}, "Bob wrote after it was seen"


def test_a_second_value_that_the_log_does_not_show_yet_is_not_said_to_be_of_who_wrote_the_first() -> None:
    cloud = ready(pool(count=2))
    scaled(cloud, 5)
    sweep(cloud)
    azure = cloud.ports.azure
    on_azure(cloud, ListActivity, lambda _: DocumentPage((), ""))
    scaled(cloud, 7, BOB)
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": ""}
    on_azure(cloud, ListActivity, azure.call)
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": f"{BOB} or {ANN}"}, "Ann wrote some hours before"


def test_a_change_of_which_the_log_has_nobody_is_asked_for_some_hours_and_no_longer() -> None:
    cloud = ready(pool(count=2))
    reads = asked(cloud)
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    sweep(cloud)
    assert len(reads) == 2
    cloud.sleep(ASKED_AGAIN.total_seconds())
    reads.clear()
    sweep(cloud)
    assert (reads, changes(cloud)) == ([], {"nodePools[apps].count": ""})


def test_a_log_that_had_to_wait_says_so_without_a_time_that_passes() -> None:
    cloud = ready(pool(count=2))
    scaled(cloud, 5)
    azure = cloud.ports.azure

    def last(operation: ListClusters) -> Any:
        use_up_reads(cloud, ONE, 600)
        return azure.call(operation)

    on_azure(cloud, ListClusters, last)
    sweep(cloud)
    reason = f"Azure's read limit left no call to read the activity log of {ONE.subscription}"
    assert drift_view(cloud.ports, FIRST_PAGE)["activityLog"] == reason


def test_a_change_before_a_check_found_the_cluster_unhealthy_has_who_made_it() -> None:
    cloud = ready(pool(count=2))
    scaled(cloud, 5)
    unhealthy = Fail(FluxUnhealthy("a Kustomization is not Ready"))
    cloud.state.save(apply_outcome(record(cloud), unhealthy, now=cloud.clock(), jitter=0))
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": ANN}


def test_a_change_of_a_cluster_that_was_stopped_meanwhile_has_who_made_it() -> None:
    cloud = ready(pool(count=2))
    sweep(cloud)
    scaled(cloud, 5)
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    assert record(cloud).finding == "ClusterStopped"
    cloud.azure.interventions.start(ONE)
    sweep(cloud)
    assert changes(cloud)["nodePools[apps].count"] == f"somebody@example.com or {ANN}"


@pytest.mark.parametrize("problem", [Unavailable("no answer")])
def test_a_log_that_does_not_answer_hides_no_drift(problem: Exception) -> None:
    cloud = ready(pool(count=2))
    asked(cloud, refuse=problem)
    scaled(cloud, 5)
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": ""}
    assert "no answer" in drift_view(cloud.ports, FIRST_PAGE)["activityLog"]
