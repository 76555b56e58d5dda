"""The measurements run, and show what they are for."""

from __future__ import annotations

import json
from datetime import time
from pathlib import Path

import pytest

from bench.cost import NAMESPACE, Usage
from bench.cost import measure as measure_cost
from bench.deletes import measure as measure_deletes
from bench.events import WHO, hearing, scale, show, storm, tag
from bench.handover import IN_TURN, PARTS
from bench.handover import measure as measure_handover
from bench.lane import measure as measure_lane
from bench.nights import measure as measure_nights
from bench.operations import measure as measure_operations
from bench.platform import change as change_platform
from bench.platform_plan import Planner, base
from bench.rollout import CREATION, Work, lower_bound, roll_out
from bench.stages import Work as Staged
from bench.start import APP, EMPTY, Case, libraries, measure, own_size, size_of
from bench.sweep import fleet_of, stop_some, tag_some
from bench.sweep import measure as measure_sweep
from bench.turns import measure as measure_turns
from localcloud.azure.world.access.directory import FUNCTION_APP
from localcloud.runtime.options import ROOT
from shared.cluster.divergence.drift import ASKED_AGAIN
from shared.cluster.pace import SMALL_CHANGE

pytestmark = pytest.mark.lives


def test_an_edit_by_hand_costs_one_read_whatever_the_fleet_and_what_the_app_does_costs_none() -> None:
    few, many = ([show(hearing(clusters), 1, edit) for edit in (scale, tag)] for clusters in (10, 100))
    for shown in (*few, *many):
        assert (shown.by, shown.azure) == (WHO, {"get_cluster": 1})
        assert shown.seconds <= 60
    assert [shown.records for shown in many] <= [shown.records for shown in few]
    own, foreign = storm(hearing(50), 1000, FUNCTION_APP.id, 50), storm(hearing(50), 1000, WHO, 1)
    assert (own.comparisons, foreign.comparisons) == (0, 1)


def test_a_rollout_meets_no_refusal_and_is_not_faster_than_the_buckets_allow() -> None:
    work = Work(70, 3)
    alone, whole = roll_out(Work(1, 1)), roll_out(work)
    assert (whole.ready, whole.refused) == (70, [])
    assert alone.seconds >= CREATION
    needed = lower_bound(work, alone)
    assert needed <= whole.seconds < 1.2 * needed


def test_a_platform_commit_writes_a_pin_for_each_cluster_and_a_larger_fleet_reads_git_as_often() -> None:
    few, many = (change_platform(Staged(clusters, 4, 1)) for clusters in (20, 80))
    assert many.git == few.git
    assert many.git.total() <= 30
    for found, clusters in ((few, 20), (many, 80)):
        assert (found.applied, found.kubeconfigs, found.refused) == (clusters, 0, 0)
        assert found.inside.others["apply GitRepository"] == clusters
        assert found.inside.passes <= 2 * clusters
        assert found.inside.verifying.total() <= 5 * found.inside.passes


def test_folders_that_clusters_share_are_built_once_before_and_once_after_a_commit() -> None:
    planner = Planner(60, 3)
    _, result = planner.plan({**planner.files, **base("2")})
    assert result == "60 update, 60 of the platform, 0 on hold"
    assert planner.built == 6


@pytest.mark.parametrize("scope", ["cluster", "pools"])
def test_a_night_costs_six_requests_to_azure_for_each_cluster_beyond_the_lists(scope: str) -> None:
    week = measure_nights(3, scope, days=2)
    for night in week.nights:
        assert (night.slept, len(night.clusters)) == (3, 3)
        assert max(night.clusters.values()) <= 6
    assert week.ready == 3
    assert week.ran < (0.6 if scope == "cluster" else 0.75) * week.hours


def test_a_delete_reads_eight_records_in_a_fleet_of_any_size_and_a_creation_no_more() -> None:
    (_, few), (created, many) = measure_deletes(10), measure_deletes(30)
    assert (created.clusters, many.clusters) == (30, 15)
    assert many.records["cluster"] / 15 == few.records["cluster"] / 5
    assert 0 < created.records["cluster"] / 30 <= many.records["cluster"] / 15 <= 8


def test_a_sweep_makes_no_call_but_those_of_the_lists_and_reads_only_records_that_differ() -> None:
    cloud = fleet_of(250, 3)
    first = measure_sweep(cloud)
    assert (first.azure, first.found) == ({"list_clusters": first.pages}, 0)
    assert first.calls["cluster"] + first.calls["clusters"] + first.calls["clusters_named"] == 0
    tagged = tag_some(cloud)
    second = measure_sweep(cloud)
    asked = {"list_clusters": first.pages, "list_activity": 3}  # one for each subscription with new drift
    assert (second.azure, second.found, second.drifted) == (asked, 0, tagged)
    assert (second.calls["cluster"], second.calls["save"]) == (tagged, tagged)
    assert measure_sweep(cloud).azure == asked, "the log is late, and nobody is known yet"
    cloud.clock.advance(ASKED_AGAIN.total_seconds())
    again = measure_sweep(cloud)
    assert again.azure == {"list_clusters": first.pages}
    assert (again.calls["cluster"], again.calls["save"]) == (tagged, 0)
    stopped = stop_some(cloud)
    third = measure_sweep(cloud)
    assert (third.azure, third.found) == (asked, stopped), "and one for each with a stopped cluster"
    assert (third.calls["cluster"], third.calls["save"]) == (stopped, stopped)


def test_a_hand_over_in_parts_takes_less_time_and_its_messages_end_long_before_the_time_limit() -> None:
    limit = time.fromisoformat(json.loads((ROOT / "host.json").read_text())["functionTimeout"])
    one_after_the_other, parts = measure_handover(60, 50, IN_TURN), measure_handover(60, 50, PARTS)
    assert sum(parts.virtual) < sum(one_after_the_other.virtual) / 4
    slow = measure_handover(1000, 400, PARTS)
    assert len(slow.virtual) > 1
    assert slow.longest < (60 * limit.minute + limit.second) / 2


def test_a_busy_month_costs_more_than_an_idle_one_and_an_idle_one_calls_nothing_in_azure() -> None:
    measured = measure_cost(6)
    idle, busy = measured.idle(), measured.busy()
    assert idle.used["azure"] == idle.used["bus"] == 0
    watched = measured.watched()
    assert NAMESPACE < idle.dollars() < watched.dollars() < busy.dollars()
    assert watched.used["bus"] > 0, "the notifier, sweeps and checks have messages"
    sweep, check = measured.rounds
    assert (sweep.used["azure"], check.used["azure"]) == (1, 6), "a page of a list; each cluster's kubeconfig"
    assert all(usage.used["azure"] > 0 for usage in (measured.created, measured.few, measured.deleted))
    assert Usage().dollars() == NAMESPACE


def test_a_small_change_beside_a_large_one_takes_at_most_twice_as_long_as_on_a_quiet_fleet() -> None:
    found, alike = (measure_lane(30, 1, sessions=1, small_change=most) for most in (SMALL_CHANGE, 0))
    assert found.worst <= 2 < alike.worst
    assert found.refused == {}


def test_a_start_is_measured_against_an_app_with_one_timer() -> None:
    root = Path(__file__).parent.parent
    empty, app = measure([Case(EMPTY, root), Case(APP, root)], runs=1)
    assert 0 < empty.seconds < app.seconds
    assert 0 < empty.memory < app.memory


def test_the_unpacked_package_has_at_most_110_megabytes() -> None:
    root = Path(__file__).parent.parent
    assert 20e6 < sum(map(size_of, libraries(root))) + own_size(root) <= 110e6


def test_a_new_cluster_costs_few_operations_on_the_state_and_two_messages() -> None:
    found = measure_operations(1)
    assert found.messages["changes"] == 2
    worker = sum(
        count for (_, caller), count in found.operations.items() if "worker" in caller or "lease" in caller
    )
    assert worker <= 25


def test_the_end_of_a_cluster_reads_summaries_and_the_record_that_starts_and_saves_no_plan() -> None:
    found = measure_turns(25)
    assert (found.next_starts.started, found.none_starts.started) == (1, 0)
    assert found.none_starts.records == {"fleet": 1, "rollout": 1, "summaries": 25}
    read = found.next_starts.records
    assert (read["clusters"], read["clusters_named"], read["summaries"], read["save_plan"]) == (0, 1, 50, 0)
