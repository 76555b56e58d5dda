"""Clusters that sleep at night, over hours of virtual time: what stops and starts them, what meets them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts import fleet
from shared.app.api.acts.times import OrderKind, order_sleep
from shared.app.api.views.why import why_view
from shared.azure.rate_limits import AKS_OTHER
from shared.cluster.failures.errors import InvalidManifest
from shared.cluster.record import READY
from shared.cluster.record_parts import Phase
from shared.ports.azure import GetCluster, StopCluster
from shared.ports.state.clusters import CLUSTERS
from simulation.newer_forms import NewerTable
from tests.support import fleet_files
from tests.support.activity import ANN
from tests.support.limited_clusters import emptied
from tests.support.one_cluster import ENTRA, ONE, cluster, files, ready, record, suspended
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import calls_of, on_azure
from tests.support.sleepers import on_monday, runs, sleeping, until
from tests.support.sweeps import sweep

pytestmark = pytest.mark.lives


def test_a_cluster_is_stopped_and_started_by_its_schedule_and_stays_ready_all_the_time() -> None:
    cloud = on_monday()
    since = record(cloud).condition(READY)
    until(cloud, 16, minute=55)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)
    until(cloud, 17, minute=15)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)
    assert record(cloud).job.reason == "sleeps until Tue 07:00 (Europe/Helsinki)"
    until(cloud, 4, 1, 55)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)
    until(cloud, 5, minute=15)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)
    now = record(cloud).condition(READY)
    assert since is not None
    assert now is not None
    assert now.since == since.since


def test_a_night_costs_six_calls_to_azure() -> None:
    cloud = on_monday(extra=ENTRA)
    until(cloud, 16, minute=55)
    calls = calls_of(cloud, "azure", "call")
    until(cloud, 5, 1, 30)
    assert len(calls) <= 6


def test_a_cluster_for_whose_stop_azure_has_no_token_left_waits_without_a_read() -> None:
    cloud = on_monday()
    until(cloud, 16, minute=59)
    for share in (AKS_OTHER, AKS_OTHER.set_aside):
        emptied(cloud, share, 600)
    calls = calls_of(cloud, "azure", "call")
    until(cloud, 17, minute=5)
    assert "waits for Azure's limit" in record(cloud).job.reason
    assert calls == []
    until(cloud, 17, minute=20)
    assert (phases(cloud), [type(call) for call in calls].count(StopCluster)) == ({"one": Phase.SLEEPING}, 1)


def test_an_early_start_has_the_cluster_ready_when_people_arrive() -> None:
    cloud = on_monday(", startEarly: 30m")
    until(cloud, 4, 1, 45)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)


def test_times_that_nobody_saw_are_made_up_for() -> None:
    cloud = on_monday()
    cloud.clock.advance(timedelta(hours=10).total_seconds())
    until(cloud, 22, minute=15)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)
    cloud.clock.advance(timedelta(hours=60).total_seconds())
    cloud.run(seconds=1200, until=lambda: False)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)


def test_a_sweep_and_a_check_find_nothing_wrong_with_a_cluster_that_sleeps() -> None:
    cloud = on_monday()
    until(cloud, 18)
    sweep(cloud)
    cloud.run(seconds=600, until=lambda: False)
    assert (phases(cloud), record(cloud).finding) == ({"one": Phase.SLEEPING}, "")
    assert record(cloud).divergence.drift is None


def test_a_change_waits_for_the_start_and_is_carried_out_then() -> None:
    cloud = on_monday()
    until(cloud, 18)
    push(cloud, files(sleeping() + "  tags: {a: b}\n"))
    cloud.run(seconds=1200, until=lambda: False)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)
    why = why_view("one", cloud.ports)
    assert why is not None
    assert "sleeps until Tue 07:00 (Europe/Helsinki)" in why["doing"]
    assert why["rollout"] is not None
    assert "is set aside, because it is suspended, asleep" in why["rollout"]["waits"]
    until(cloud, 5, 1, 30)
    assert (phases(cloud), cluster(cloud)["tags"]["a"]) == ({"one": Phase.READY}, "b")


def test_a_change_wakes_a_cluster_whose_manifest_says_so_and_it_sleeps_again() -> None:
    cloud = on_monday(", changes: wake")
    until(cloud, 18)
    push(cloud, files(sleeping(", changes: wake") + "  tags: {a: b}\n"))
    until(cloud, 19)
    assert cluster(cloud)["tags"]["a"] == "b"
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)
    assert (accepted(cloud)["stop", "one"], accepted(cloud)["start", "one"]) == (2, 1)


def test_a_change_wakes_a_cluster_that_sleeps_for_longer_than_three_days() -> None:
    holidays = ", holidays: [2026-01-13, 2026-01-14, 2026-01-15, 2026-01-16]"
    cloud = on_monday(holidays)
    until(cloud, 18)
    push(cloud, files(sleeping(holidays) + "  tags: {a: b}\n"))
    until(cloud, 19)
    assert cluster(cloud)["tags"]["a"] == "b"
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)


def test_a_cluster_whose_manifest_has_no_sleep_any_more_is_started_at_once() -> None:
    cloud = on_monday()
    until(cloud, 18)
    push(cloud, files())
    cloud.run(seconds=1200, until=lambda: False)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)


def test_a_cluster_that_sleeps_can_be_deleted() -> None:
    cloud = on_monday()
    until(cloud, 18)
    push(cloud, fleet_files.fleet())
    cloud.run(seconds=1200, until=lambda: False)
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetCluster(ONE)) is None


def test_a_stop_by_hand_by_day_is_undone_by_the_next_sweep() -> None:
    cloud = on_monday()
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    cloud.run(seconds=1200, until=lambda: False)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)


def test_a_stop_by_hand_of_a_cluster_without_a_schedule_stays_a_finding() -> None:
    cloud = ready()
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    cloud.run(seconds=1200, until=lambda: False)
    assert (record(cloud).finding, runs(cloud)) == ("ClusterStopped", False)


def test_a_start_by_hand_at_night_is_undone_by_the_next_sweep() -> None:
    cloud = on_monday()
    until(cloud, 18)
    cloud.azure.interventions.start(ONE)
    sweep(cloud)
    cloud.run(seconds=1200, until=lambda: False)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)


def test_a_start_by_hand_at_night_is_undone_within_a_minute_where_events_arrive() -> None:
    cloud = on_monday()
    cloud.hear_events()
    until(cloud, 18)
    with cloud.azure.called_by(ANN):
        cloud.azure.interventions.start(ONE)
    cloud.run(seconds=300, until=lambda: False)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)


def test_a_record_that_cannot_be_read_keeps_no_other_cluster_awake() -> None:
    cloud, names = MemoryCloud(throttle=False), ("a", "b")
    manifests = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=sleeping()) for name in names
    }
    push(cloud, fleet_files.fleet() | manifests)
    until(cloud, 12)
    table = cloud.state.tables[CLUSTERS]
    first = next(entity for entity in table.query("", until="~") if entity["RowKey"] == "a")
    NewerTable(table).put(first.place[0], {"a": first.properties})
    until(cloud, 18)
    assert [(record.name, record.phase) for record in cloud.state.clusters()] == [("b", Phase.SLEEPING)]


def test_a_suspended_cluster_is_left_as_it_is() -> None:
    cloud = on_monday()
    push(cloud, files(sleeping() + suspended(cloud, 100)))
    until(cloud, 18)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SUSPENDED}, True)


def test_a_stop_that_azure_refuses_leaves_the_cluster_awake_and_says_so() -> None:
    cloud = on_monday()

    def refused(stop: StopCluster) -> None:
        raise InvalidManifest("the webhook policy applies to nodes")

    on_azure(cloud, StopCluster, refused)
    since = record(cloud).condition(READY)
    until(cloud, 18)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.UPDATING}, True)
    assert record(cloud).condition(READY) == since
    assert record(cloud).needs_action
    assert "stays awake: InvalidManifest: the webhook policy applies to nodes" in record(cloud).job.reason
    until(cloud, 5, 1, 30)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)


def test_a_commit_changes_a_cluster_that_azure_refuses_to_stop() -> None:
    cloud = on_monday()

    def refused(stop: StopCluster) -> None:
        raise InvalidManifest("the webhook policy applies to nodes")

    on_azure(cloud, StopCluster, refused)
    until(cloud, 18)
    push(cloud, files(sleeping() + "  tags: {a: b}\n"))
    until(cloud, 18, minute=30)
    assert cluster(cloud)["tags"]["a"] == "b"


def test_a_cluster_that_is_started_is_not_shown_as_one_that_sleeps() -> None:
    cloud = on_monday()
    until(cloud, 5, 1)
    cloud.run(seconds=900, until=lambda: bool(record(cloud).job.step.last_write))
    assert record(cloud).job.reason == "Azure is starting the cluster"
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.UPDATING}, False)


def test_a_start_that_lacks_capacity_is_repeated_until_there_is_some() -> None:
    cloud = on_monday()
    until(cloud, 18)
    cloud.azure.interventions.fail_next("one", "AllocationFailed")
    until(cloud, 5, 1, 3)
    assert not runs(cloud)
    assert "OutOfCapacity" in record(cloud).job.reason
    until(cloud, 5, minute=30)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)


def test_a_start_that_lacks_capacity_for_long_is_stalled_and_never_given_up() -> None:
    cloud = on_monday()
    until(cloud, 18)
    cloud.azure.interventions.deny("one", "AllocationFailed")
    until(cloud, 7, 1)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.STALLED}, False)
    until(cloud, 16)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.STALLED}, False)
    cloud.azure.interventions.unblock("one")
    until(cloud, 16, minute=59)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)


def test_a_week_with_an_upgrade_has_the_cluster_awake_in_the_hours_of_work_alone() -> None:
    cloud, asleep = on_monday(), 0
    for hour in range(7 * 24):
        if hour == 60:  # the night from Wednesday to Thursday
            push(cloud, files(sleeping() + '  kubernetesVersion: "1.37"\n'))
        cloud.run(seconds=3600, until=lambda: False)
        asleep += not runs(cloud)
    assert asleep == 4 * 12 + 60
    assert (phases(cloud), cluster(cloud)["properties"]["currentKubernetesVersion"][:4]) == (
        {"one": Phase.READY},
        "1.37",
    )


def test_a_pause_of_the_fleet_stops_and_starts_no_cluster() -> None:
    cloud = on_monday()
    assert fleet.pause("a test", None, "ann", cloud.ports).status == 200
    until(cloud, 18)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)
    assert fleet.resume("ann", cloud.ports).status == 200
    until(cloud, 18, minute=30)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)


# What operators order.


def order(cloud: MemoryCloud, kind: OrderKind, hours: float | None = None) -> int:
    end = None if hours is None else cloud.clock() + timedelta(hours=hours)
    return order_sleep(kind, "one", end, "ann", cloud.ports, "a demo").status


def test_an_order_to_wake_ends_by_itself() -> None:
    cloud = on_monday()
    until(cloud, 18)
    assert order(cloud, OrderKind.WAKE, 2) == 202
    until(cloud, 18, minute=30)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)
    until(cloud, 20, minute=30)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)


def test_an_order_to_sleep_ends_with_the_next_start_of_the_schedule() -> None:
    cloud = on_monday()
    assert order(cloud, OrderKind.SLEEP) == 202
    until(cloud, 12, minute=30)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)
    assert record(cloud).job.reason == "sleeps until Tue 07:00 (Europe/Helsinki), ordered by ann"
    until(cloud, 5, 1, 30)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)


def test_an_order_to_postpone_keeps_the_cluster_awake() -> None:
    cloud = on_monday()
    assert order(cloud, OrderKind.POSTPONE, 8) == 202
    until(cloud, 19, minute=55)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)
    until(cloud, 20, minute=30)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)


@pytest.mark.parametrize(
    ("kind", "hours", "by_night"),
    [
        (OrderKind.WAKE, None, False),
        (OrderKind.SLEEP, None, True),
        (OrderKind.POSTPONE, 1, True),
        (OrderKind.POSTPONE, -1, False),
        (OrderKind.SLEEP, 400 * 24, False),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(
    kind: OrderKind, hours: float | None, by_night: bool
) -> None:
    cloud = on_monday()
    until(cloud, 18 if by_night else 13)
    before = record(cloud)
    assert order(cloud, kind, hours) == 409
    assert record(cloud) == before


def test_a_cluster_whose_manifest_has_no_sleep_takes_no_order() -> None:
    assert order(ready(), OrderKind.SLEEP, 2) == 409
