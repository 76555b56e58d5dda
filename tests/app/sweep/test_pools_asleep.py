"""Clusters whose User node pools sleep at night: what stops, what runs on, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.times import OrderKind, order_sleep
from shared.cluster.failures.errors import InvalidManifest
from shared.cluster.record import READY
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports.azure import GetCluster, PutPool
from tests.support import fleet_files
from tests.support.activity import ANN
from tests.support.one_cluster import ENTRA, ONE, cluster, files, nodes, pool, pools, record
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import calls_of, on_azure
from tests.support.sleepers import on_monday, runs, sleeping, until
from tests.support.sweeps import sweep

AUTOSCALED = "    - {name: burst, vmSize: Standard_D4s_v5, minCount: 1, maxCount: 5}\n"
SPOT = (
    "    - {name: spot, vmSize: Standard_D4s_v5, minCount: 0, maxCount: 5, scaleSetPriority: Spot, "
    "scaleSetEvictionPolicy: Delete}\n"
)
OFF = "    - {name: off, vmSize: Standard_D4s_v5, count: 2, powerState: {code: Stopped}}\n"
APPS = pool(count=3)
IN_POOLS = ", scope: pools"


def asleep_by_night(more: str = "", *, node_pools: str = APPS, extra: str = "") -> MemoryCloud:
    """Return a cloud on a Monday at noon, UTC, whose cluster lets its User pools sleep at night."""
    return on_monday(IN_POOLS + more, extra, pools=node_pools)


def spec(more: str = "", *, node_pools: str = APPS, extra: str = "") -> dict[str, bytes]:
    """Return the files of that fleet."""
    return files(node_pools + sleeping(IN_POOLS + more) + extra)


def power(cloud: MemoryCloud) -> dict[str, tuple[str, int]]:
    """Return whether each pool runs, and its count, as Azure shows them."""
    return {name: (profile["powerState"]["code"], profile["count"]) for name, profile in pools(cloud).items()}


def by_hand(cloud: MemoryCloud, code: str, name: str = "apps") -> None:
    """Stop or start a pool as somebody does in the portal."""
    body: Json = {"properties": {"powerState": {"code": code}}}
    with cloud.azure.called_by(ANN):
        cloud.ports.azure.call(PutPool(ONE, name, body, etag=None))
    cloud.run(10, until=lambda: False)


def test_user_pools_stop_and_start_by_the_schedule_and_the_cluster_stays_ready() -> None:
    cloud = asleep_by_night(node_pools=APPS + AUTOSCALED + SPOT)
    by_day, since = pools(cloud), record(cloud).condition(READY)
    until(cloud, 17, minute=25)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, True)
    assert record(cloud).job.reason == "sleeps until Tue 07:00 (Europe/Helsinki)"
    asleep = ("Stopped", 0)
    assert power(cloud) == {"system": ("Running", 1), "apps": asleep, "burst": asleep, "spot": asleep}
    assert nodes(cloud, "apps") == {}
    until(cloud, 4, 1, 55)
    assert phases(cloud) == {"one": Phase.SLEEPING}
    until(cloud, 5, minute=25)
    assert phases(cloud) == {"one": Phase.READY}
    passing = ("eTag",)
    assert [without(profile, passing) for profile in pools(cloud).values()] == [
        without(profile, passing) for profile in by_day.values()
    ]
    now = record(cloud).condition(READY)
    assert since is not None
    assert now is not None
    assert now.since == since.since


def without(profile: Json, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in profile.items() if name not in names}


def test_a_pool_that_git_has_stopped_stays_so_by_day() -> None:
    cloud = asleep_by_night(node_pools=APPS + OFF)
    until(cloud, 18)
    assert phases(cloud) == {"one": Phase.SLEEPING}
    until(cloud, 5, 1, 30)
    assert (phases(cloud), power(cloud)["off"][0]) == ({"one": Phase.READY}, "Stopped")
    assert power(cloud)["apps"] == ("Running", 3)


@pytest.mark.lives
@pytest.mark.parametrize(
    ("node_pools", "most"), [(APPS, 6), (APPS + AUTOSCALED, 10), (APPS + AUTOSCALED + SPOT, 14)]
)
def test_a_night_costs_six_calls_to_azure_and_four_for_each_further_pool(node_pools: str, most: int) -> None:
    cloud = asleep_by_night(node_pools=node_pools, extra=ENTRA)
    until(cloud, 16, minute=55)
    calls = calls_of(cloud, "azure", "call")
    until(cloud, 5, 1, 30)
    assert phases(cloud) == {"one": Phase.READY}
    assert len(calls) <= most


def test_neither_sweep_nor_check_finds_anything_wrong_at_night() -> None:
    cloud = asleep_by_night()
    until(cloud, 18)
    calls = calls_of(cloud, "azure", "call")
    sweep(cloud)
    cloud.run(seconds=600, until=lambda: False)
    assert (phases(cloud), record(cloud).finding) == ({"one": Phase.SLEEPING}, "")
    assert record(cloud).divergence.drift is None
    assert not any(isinstance(call, GetCluster) for call in calls)


@pytest.mark.lives
def test_a_change_waits_for_the_start_and_is_carried_out_then() -> None:
    cloud = asleep_by_night()
    until(cloud, 18)
    push(cloud, spec(extra="  tags: {a: b}\n"))
    cloud.run(seconds=1200, until=lambda: False)
    assert (phases(cloud), power(cloud)["apps"]) == ({"one": Phase.SLEEPING}, ("Stopped", 0))
    until(cloud, 5, 1, 30)
    assert (phases(cloud), cluster(cloud)["tags"]["a"]) == ({"one": Phase.READY}, "b")
    assert power(cloud)["apps"] == ("Running", 3)


@pytest.mark.lives
def test_a_count_that_git_has_changed_at_night_is_there_in_the_morning() -> None:
    cloud = asleep_by_night()
    until(cloud, 18)
    push(cloud, spec(node_pools=pool(count=5)))
    until(cloud, 5, 1, 30)
    assert (phases(cloud), power(cloud)["apps"]) == ({"one": Phase.READY}, ("Running", 5))


def test_a_change_wakes_pools_where_the_manifest_says_so_and_they_sleep_again() -> None:
    cloud = asleep_by_night(", changes: wake")
    until(cloud, 18)
    push(cloud, spec(", changes: wake", extra="  tags: {a: b}\n"))
    until(cloud, 19)
    assert cluster(cloud)["tags"]["a"] == "b"
    assert (phases(cloud), power(cloud)["apps"]) == ({"one": Phase.SLEEPING}, ("Stopped", 0))


def test_pools_whose_manifest_has_no_sleep_any_more_are_started_at_once() -> None:
    cloud = asleep_by_night()
    until(cloud, 18)
    push(cloud, files(APPS))
    cloud.run(seconds=1200, until=lambda: False)
    assert (phases(cloud), power(cloud)["apps"]) == ({"one": Phase.READY}, ("Running", 3))
    assert not record(cloud).azure.pools_slept


def test_a_scope_that_changes_at_night_counts_from_the_next_sleep_on() -> None:
    cloud = asleep_by_night()
    until(cloud, 18)
    push(cloud, files(APPS + sleeping()))
    cloud.run(seconds=1200, until=lambda: False)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, True)
    until(cloud, 5, 1, 30)
    assert (phases(cloud), power(cloud)["apps"]) == ({"one": Phase.READY}, ("Running", 3))
    until(cloud, 18)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)


def test_a_cluster_whose_pools_sleep_can_be_deleted() -> None:
    cloud = asleep_by_night()
    until(cloud, 18)
    push(cloud, fleet_files.fleet())
    cloud.run(seconds=1200, until=lambda: False)
    assert phases(cloud) == {}


def test_an_order_wakes_pools_and_ends_by_itself() -> None:
    cloud = asleep_by_night()
    until(cloud, 18)
    end = cloud.clock().replace(hour=20)
    assert order_sleep(OrderKind.WAKE, "one", end, "ann", cloud.ports, "a release").status == 202
    until(cloud, 18, minute=30)
    assert (phases(cloud), power(cloud)["apps"]) == ({"one": Phase.READY}, ("Running", 3))
    until(cloud, 20, minute=30)
    assert (phases(cloud), power(cloud)["apps"]) == ({"one": Phase.SLEEPING}, ("Stopped", 0))


# What people and Azure do.


@pytest.mark.parametrize("policy", ["", "  drift: {action: report}\n", "  drift: {action: propose}\n"])
def test_a_pool_that_somebody_stops_by_day_is_started_by_the_next_sweep(policy: str) -> None:
    cloud = asleep_by_night(extra=policy)
    by_hand(cloud, "Stopped")
    sweep(cloud)
    cloud.run(seconds=1200, until=lambda: False)
    assert (phases(cloud), power(cloud)["apps"]) == ({"one": Phase.READY}, ("Running", 3))


def test_a_pool_that_somebody_stops_for_ever_again_is_left_to_a_person() -> None:
    cloud = asleep_by_night()
    for _ in range(4):
        by_hand(cloud, "Stopped")
        sweep(cloud)
        cloud.run(seconds=900, until=lambda: False)
    assert power(cloud)["apps"] == ("Stopped", 0)
    assert record(cloud).divergence.drift is not None


def test_a_pool_that_somebody_starts_at_night_stops_again_with_the_next_sweep() -> None:
    cloud = asleep_by_night()
    until(cloud, 18)
    by_hand(cloud, "Running")
    sweep(cloud)
    cloud.run(seconds=1200, until=lambda: False)
    assert (phases(cloud), power(cloud)["apps"]) == ({"one": Phase.SLEEPING}, ("Stopped", 0))


def test_a_pool_that_somebody_starts_at_night_stops_within_a_minute_where_events_arrive() -> None:
    cloud = asleep_by_night()
    cloud.hear_events()
    until(cloud, 18)
    by_hand(cloud, "Running")
    cloud.run(seconds=300, until=lambda: False)
    assert (phases(cloud), power(cloud)["apps"]) == ({"one": Phase.SLEEPING}, ("Stopped", 0))


def test_a_stop_that_azure_refuses_leaves_the_pools_awake_and_says_so() -> None:
    cloud = asleep_by_night()

    def refused(put: PutPool) -> None:
        raise InvalidManifest("the pool is too busy")

    on_azure(cloud, PutPool, refused)
    until(cloud, 18)
    assert (phases(cloud), power(cloud)["apps"]) == ({"one": Phase.UPDATING}, ("Running", 3))
    assert "stays awake: InvalidManifest: the pool is too busy" in record(cloud).job.reason
    until(cloud, 5, 1, 30)
    assert phases(cloud) == {"one": Phase.READY}


def test_a_stop_that_fails_twice_leaves_the_pool_awake_and_it_is_right_in_the_morning() -> None:
    cloud = asleep_by_night()
    cloud.azure.interventions.deny("one", "AllocationFailed")
    until(cloud, 18)
    assert phases(cloud) == {"one": Phase.UPDATING}
    assert "accepted the stop of apps twice" in record(cloud).job.reason
    cloud.azure.interventions.unblock("one")
    until(cloud, 5, 1, 30)
    assert (phases(cloud), power(cloud)["apps"]) == ({"one": Phase.READY}, ("Running", 3))


@pytest.mark.lives
def test_a_start_that_lacks_capacity_for_long_is_stalled_and_never_given_up() -> None:
    cloud = asleep_by_night(node_pools=APPS + AUTOSCALED)
    until(cloud, 18)
    cloud.azure.interventions.deny("one", "AllocationFailed")
    until(cloud, 7, 1)
    assert phases(cloud) == {"one": Phase.STALLED}
    assert "the start of the node pool apps" in record(cloud).job.reason
    until(cloud, 16)
    assert phases(cloud) == {"one": Phase.STALLED}
    cloud.azure.interventions.unblock("one")
    until(cloud, 16, minute=59)
    assert phases(cloud) == {"one": Phase.READY}
    assert {code for code, _ in power(cloud).values()} == {"Running"}
    assert accepted(cloud)["create-pool", "apps"] == 0
