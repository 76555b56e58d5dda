"""The first page of the console: what needs a person, how urgent it is, where, and who acts."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import fleet_view
from shared.frozen import replace
from shared.ports.state.fleet import Pause
from tests.support import fleet_files
from tests.support.console_fleet import busy_fleet
from tests.support.console_pages import shown
from tests.support.notified import with_failures
from tests.support.pipeline_runs import cloud_with, push

pytestmark = pytest.mark.lives


def test_clusters_that_failed_for_the_same_reason_are_one_entry_with_all_of_them_counted() -> None:
    names = [f"c{number:02}" for number in range(25)]
    made = with_failures(*names)
    (cause,) = fleet_view(made.ports)["attention"]
    assert (cause["clusterCount"], cause["clusters"]) == (25, names[:20])
    assert "25 clusters: Failed, for the same reason" in shown(made.ports, "/").text
    assert "c19 and 5 more" in shown(made.ports, "/").text


def test_a_fleet_in_which_all_is_well_needs_nobody() -> None:
    made = cloud_with(fleet_files.fleet("one"))
    assert "Needs a person Nothing." in shown(made.ports, "/").text


def test_a_fleet_of_which_nothing_was_planned_says_how_to_begin() -> None:
    text = shown(MemoryCloud().ports, "/").text
    assert "No commit was planned yet" in text
    assert "Push a fleet to main of example/fleet: roadstead init writes one." in text


def test_what_is_urgent_comes_first_and_an_approval_after_it() -> None:
    text = shown(busy_fleet(1).ports, "/").text
    assert text.index("shop-weu-1: Failed") < text.index("approval needed")


def test_an_entry_says_where_its_clusters_are_and_the_title_how_many_entries_there_are() -> None:
    page = shown(busy_fleet(1).ports, "/")
    assert "shop-weu-1: Failed production in westeurope, 2026-01-01 00:" in page.text
    assert "(3) Fleet - example - Roadstead" in page.text
    assert "example 2 urgent" in page.text


def test_a_problem_in_a_manifest_is_the_author_s_although_its_cluster_goes_on() -> None:
    made, files_of = MemoryCloud(), fleet_files.fleet("one")
    push(made, files_of)
    made.run()
    push(made, {**files_of, "clusters/one/cluster.yaml": fleet_files.cluster("one", extra="  bogus: 1\n")})
    made.run()
    text = shown(made.ports, "/").text
    assert "1 problem in the manifests of the newest commit" in text
    assert "stays as it was at the last valid commit. Who acts: who writes the manifests" in text


def test_nobody_is_sent_to_resume_a_rollout_that_only_a_replay_or_a_skip_sets_going() -> None:
    """``roadstead rollout resume`` is refused where nobody paused: see ``why_not``."""
    text = shown(busy_fleet(1).ports, "/").text
    assert "paused: failure budget spent" in text
    assert "Who acts: an Operator, who retries, or an Approver, who skips" in text
    assert "who resumes it" not in text


def test_what_stops_the_fleet_is_a_sentence_with_who_ends_it() -> None:
    made = cloud_with({**fleet_files.fleet("one"), "fleet.yaml": b"spec: ["})
    made.state.save_fleet(replace(made.state.fleet(), pause=Pause("ann", made.clock(), "a holiday")))
    text = shown(made.ports, "/").text
    assert " Paused by ann since" in text
    assert " fleet.yaml:2:1: not valid YAML" in text, "a name stays as it is"
    assert "Who acts: who runs Roadstead, or wrote the commit" in text
