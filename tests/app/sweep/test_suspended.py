"""Suspended clusters: sweeps report how they differ from git, as of others, and correct nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import refresh
from shared.app.api.parts import FIRST_PAGE
from shared.app.api.views.drift import drift_of_cluster, drift_view
from shared.app.outbox import request_whole_sweep
from shared.cluster.record_parts import Phase
from shared.language.model.notification_kinds import NotificationKind
from shared.notifications.notification import Notification
from tests.support.activity import ANN
from tests.support.one_cluster import ONE, cluster, files, ready, record, suspended
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import around
from tests.support.sweeps import LATER, delete_by_hand, drifted, in_sync, tag_by_hand

pytestmark = pytest.mark.lives

OWN = "  tags: {cost: a}\n"
CORRECT = "  drift: {action: correct}\n"
EXEMPTION = """\
  drift:
    rules:
      - name: winter
        fields: [stoppedCluster]
        action: ignore
        owner: team-a
        reason: no season
        expires: "2026-12-31"
"""


def in_suspension(extra: str = OWN, hours: int = 6) -> MemoryCloud:
    """Return a cloud whose cluster was Ready, and is suspended."""
    cloud = ready(extra)
    push(cloud, files(extra + suspended(cloud, hours)))
    cloud.run(seconds=600)
    assert phases(cloud) == {"one": Phase.SUSPENDED}
    return cloud


def sweep(cloud: MemoryCloud) -> None:
    """Let a sweep run to its end, some minutes later; the suspension goes on."""
    cloud.clock.advance(LATER)
    cloud.azure.complete_due()
    request_whole_sweep(cloud.ports)
    cloud.run(seconds=120)


def test_drift_is_reported_with_both_values_its_place_an_event_and_a_notification() -> None:
    cloud = in_suspension()
    notifications = list[Notification]()
    around(cloud, "state", add_notification=notifications.append)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    view = drift_of_cluster("one", cloud.ports)
    assert view is not None
    (shown,) = view["clusters"]
    (field,) = shown["fields"]
    assert (field["path"], field["git"], field["live"]) == ("tags.cost", '"a"', '"b"')
    assert field["source"].startswith("clusters/one/cluster.yaml:")
    assert in_sync(record(cloud)) == (False, "Drifted")
    assert [(notification.kind, notification.over) for notification in notifications] == [
        (NotificationKind.DRIFT, False)
    ]
    assert "Drifted" in [event.reason for event in cloud.state.events("one", 50)]
    assert phases(cloud) == {"one": Phase.SUSPENDED}


def test_drift_that_somebody_undoes_is_over_during_the_suspension() -> None:
    cloud = in_suspension()
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    tag_by_hand(cloud, ONE, cost="a")
    sweep(cloud)
    assert (drifted(record(cloud)), in_sync(record(cloud))) == ({}, (True, "Done"))


def test_nothing_is_corrected_before_the_suspension_ends_whatever_the_policy_says() -> None:
    cloud = in_suspension(OWN + CORRECT)
    tag_by_hand(cloud, ONE, cost="b")
    before = accepted(cloud)
    for _ in range(3):
        sweep(cloud)
        cloud.run(seconds=1800)
    assert (phases(cloud), accepted(cloud)) == ({"one": Phase.SUSPENDED}, before)
    drift = record(cloud).divergence.drift
    assert drift is not None
    assert [(field.action, field.note) for field in drift.fields] == [
        ("report", "not corrected in a suspension")
    ]
    cloud.run(seconds=6 * 3600)
    assert phases(cloud) == {"one": Phase.READY}
    assert (cluster(cloud)["tags"]["cost"], drifted(record(cloud))) == ("a", {})


def test_the_job_goes_on_at_its_time_however_often_a_sweep_saves_its_record() -> None:
    cloud = in_suspension(hours=2)
    for cost in "bcd":
        tag_by_hand(cloud, ONE, cost=cost)
        sweep(cloud)
    cloud.run(seconds=2 * 3600)
    assert (phases(cloud), cluster(cloud)["tags"]["cost"]) == ({"one": Phase.READY}, "a")


def test_a_cluster_that_is_missing_or_stopped_is_not_in_sync_and_stays_suspended() -> None:
    cloud = in_suspension()
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    assert (in_sync(record(cloud)), phases(cloud)) == ((False, "ClusterStopped"), {"one": Phase.SUSPENDED})
    cloud.azure.interventions.start(ONE)
    sweep(cloud)
    assert (in_sync(record(cloud)), phases(cloud)) == ((True, "Done"), {"one": Phase.SUSPENDED})
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    assert (in_sync(record(cloud)), phases(cloud)) == ((False, "ClusterMissing"), {"one": Phase.SUSPENDED})
    assert record(cloud).job.active
    assert accepted(cloud)["create", "one"] == 1


def found(cloud: MemoryCloud) -> tuple[list[str], int]:
    """Return what the drift of the fleet says of whole clusters, and how many clusters it counts."""
    view = drift_view(cloud.ports, FIRST_PAGE)
    of_cluster = drift_of_cluster("one", cloud.ports)
    assert of_cluster is not None
    assert {**of_cluster, "comparedAt": view["comparedAt"]} == view, "the fleet is as old as its oldest list"
    return [summary["finding"] for summary in view["clusters"]], view["count"]


def test_the_drift_of_the_fleet_shows_one_that_is_missing_or_stopped_until_it_is_back() -> None:
    cloud = in_suspension()
    assert found(cloud) == ([], 0)
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    (finding,), number = found(cloud)
    assert (finding.partition("; stopped ")[0], number) == ("ClusterStopped: somebody stopped the cluster", 1)
    cloud.azure.interventions.start(ONE)
    sweep(cloud)
    assert found(cloud) == ([], 0)
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    (finding,), number = found(cloud)
    assert finding.startswith("ClusterMissing: the cluster no longer exists in Azure")
    assert number == 1


def test_one_that_is_missing_or_stopped_is_announced_and_so_is_its_end() -> None:
    cloud = in_suspension()
    notifications = list[Notification]()
    around(cloud, "state", add_notification=notifications.append)
    with cloud.azure.called_by(ANN):
        cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    sweep(cloud)
    cloud.azure.interventions.start(ONE)
    sweep(cloud)
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    lost = [notification for notification in notifications if notification.kind is NotificationKind.LOST]
    stopped, missing = ("ClusterStopped", False), ("ClusterMissing", False)
    assert [(notification.reason, notification.over) for notification in lost] == [
        stopped,
        ("", True),
        stopped,
        missing,
    ]
    assert len({notification.id for notification in lost}) == 4
    assert lost[0].detail.startswith("ClusterStopped: somebody stopped the cluster; stopped 2026-01-01 0")
    assert lost[0].detail.endswith("; it is suspended")
    cloud.run(seconds=3600)
    assert phases(cloud) == {"one": Phase.SUSPENDED}
    assert [
        notification for notification in notifications if notification.kind is NotificationKind.LOST
    ] == lost


def at_work(cloud: MemoryCloud) -> None:
    """Let Azure begin a change of the cluster that takes longer than a sweep."""
    timings = cloud.azure.engine.timings
    cloud.azure.engine.timings = replace(timings, update_cluster=6000)
    cloud.azure.patch_cluster(ONE, {"tags": {**cluster(cloud)["tags"], "cost": "b"}})
    cloud.azure.engine.timings = timings


def stopped_and_at_work_again(cloud: MemoryCloud) -> None:
    """Let a sweep find that somebody stopped the cluster, and Azure work on it once it is started again."""
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    cloud.azure.interventions.start(ONE)
    cloud.azure.complete_due()
    at_work(cloud)


def test_one_that_is_back_is_not_said_to_be_stopped_while_azure_works_on_it() -> None:
    cloud = in_suspension(hours=24)
    notifications = list[Notification]()
    around(cloud, "state", add_notification=notifications.append)
    stopped_and_at_work_again(cloud)
    sweep(cloud)
    assert (in_sync(record(cloud)), found(cloud)) == ((None, "NotCompared"), ([], 0))
    lost = [notification for notification in notifications if notification.kind is NotificationKind.LOST]
    assert [(notification.reason, notification.over) for notification in lost] == [
        ("ClusterStopped", False),
        ("", True),
    ]
    cloud.clock.advance(6000)
    sweep(cloud)
    assert (in_sync(record(cloud)), list(drifted(record(cloud)))) == ((False, "Drifted"), ["tags.cost"])
    assert [
        notification for notification in notifications if notification.kind is NotificationKind.LOST
    ] == lost


def test_one_that_an_exemption_has_stopped_is_not_reported_when_it_is_back() -> None:
    cloud = in_suspension(OWN + EXEMPTION, hours=24)
    notifications = list[Notification]()
    around(cloud, "state", add_notification=notifications.append)
    stopped_and_at_work_again(cloud)
    refresh(["one"], "someone", cloud.ports)
    cloud.run(seconds=300)
    assert (found(cloud), [notification for notification in notifications if not notification.over]) == (
        ([], 0),
        [],
    )


def test_it_is_refreshed_by_name() -> None:
    cloud = in_suspension()
    tag_by_hand(cloud, ONE, cost="b")
    cloud.clock.advance(600)
    assert refresh(["one"], "someone", cloud.ports).status == 202
    cloud.run(seconds=300)
    assert "tags.cost" in drifted(record(cloud))
