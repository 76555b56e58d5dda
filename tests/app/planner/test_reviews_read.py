"""How the planner reads reviews: with few calls, and again where GitHub may be late or does not answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.memory.crashes import Crash
from shared.app.api.acts.approval import approve
from shared.app.api.views.plans import plan_view
from shared.app.api.views.why import why_view
from shared.app.planner import planner
from shared.cluster.failures.errors import Terminal, Unauthorized, Unavailable
from shared.cluster.history import LIVE, Act
from shared.cluster.queues.messages import PlanRequest, ReviewRequest
from shared.ports import MergedPull
from tests.support.console_pages import shown
from tests.support.pipeline_runs import status
from tests.support.replaced_ports import around, frozen
from tests.support.reviewed_pulls import REMOVED, ReviewedFleet

pytestmark = pytest.mark.lives

ALL = {*REMOVED, "kept"}
READ = ["merged_as", "reviews", "removed_files", "team_members"]


def test_an_approval_costs_one_call_for_each_list_and_no_other_plan_asks() -> None:
    fleet = ReviewedFleet()
    fleet.plan(fleet.cloud.repository.commit({"README.md": b"holds nothing"}))
    assert fleet.calls == []
    fleet.propose()
    fleet.review()
    fleet.merge()
    assert fleet.calls == READ


def test_a_plan_without_an_approving_review_costs_two_calls_and_two_more_half_a_minute_later() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    commit = fleet.merge()
    assert fleet.calls == ["merged_as", "reviews"] * 2
    planner.handle(PlanRequest(again=True), fleet.cloud.ports)
    fleet.cloud.run(seconds=7200)
    assert fleet.calls == ["merged_as", "reviews"] * 3
    assert fleet.plan_record(commit).review is not None


def test_a_pull_request_that_github_lists_late_is_found_by_the_second_reading() -> None:
    fleet = ReviewedFleet()
    merged_as = fleet.cloud.ports.git_host.merged_as
    answers: list[Callable[[str], object]] = [lambda _: list[MergedPull]()]
    around(fleet.cloud, "git_host", merged_as=lambda c: answers.pop()(c) if answers else merged_as(c))
    fleet.propose()
    fleet.review()
    fleet.merge()
    assert (answers, fleet.left) == ([], {"kept"})


def test_a_flood_of_reviews_costs_one_reading_every_ten_seconds() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    commit = fleet.merge()
    fleet.calls.clear()
    for number in range(200):
        fleet.announce_only(commit, f"r{number}")
    fleet.cloud.run(seconds=60)
    assert len(fleet.calls) <= 4
    assert fleet.left == ALL


def test_a_review_of_what_is_not_planned_or_holds_nothing_costs_no_call() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    commit = fleet.merge()
    approve(commit, REMOVED, "ada", fleet.cloud.ports)
    fleet.cloud.run()
    fleet.calls.clear()
    assert (fleet.announce("c" * 40, "other"), fleet.announce(commit)) == (200, 202)
    assert fleet.calls == []


def test_reviews_that_cannot_be_read_hold_and_are_read_again() -> None:
    fleet = ReviewedFleet()
    reviews, held = fleet.cloud.ports.git_host.reviews, list[set[str]]()

    def broken(number: int) -> object:
        held.append(fleet.left)
        if len(held) < 3:
            raise Unavailable("GitHub did not answer")
        return reviews(number)

    around(fleet.cloud, "git_host", reviews=broken)
    fleet.propose()
    fleet.review()
    fleet.merge()
    assert (held, fleet.left) == ([ALL] * 3, {"kept"})


def test_a_missing_permission_holds_names_itself_and_is_tried_again_within_hours() -> None:
    fleet = ReviewedFleet()
    members = fleet.cloud.ports.git_host.team_members

    def refused(_: str) -> object:
        raise Unauthorized("Resource not accessible by integration; give the GitHub App Members: read")

    around(fleet.cloud, "git_host", team_members=refused)
    fleet.propose()
    fleet.review()
    commit = fleet.merge()
    fleet.cloud.run(seconds=3600)
    assert fleet.left == ALL
    why = (
        "the reviews could not be read: Unauthorized: Resource not accessible by integration; give the GitHub"
    )
    assert fleet.said(commit).startswith(why)
    plan, cluster = plan_view(commit, fleet.cloud.ports), why_view("one", fleet.cloud.ports)
    assert plan is not None
    assert cluster is not None
    assert plan["reviews"].startswith(why)
    assert why[1:] in cluster["suggestedAction"]
    assert why in shown(fleet.cloud.ports, f"/plans/{commit}").text
    around(fleet.cloud, "git_host", team_members=members)
    fleet.cloud.run(seconds=7200, until=lambda: fleet.left == {"kept"})
    assert fleet.left == {"kept"}


def test_an_error_that_no_retry_helps_is_not_retried_before_an_hour() -> None:
    fleet = ReviewedFleet()
    asked: list[str] = []

    def broken(commit: str) -> object:
        asked.append(commit)
        raise Terminal("no")

    around(fleet.cloud, "git_host", merged_as=broken)
    fleet.propose()
    fleet.merge()
    fleet.cloud.run(seconds=3000, until=lambda: False)
    assert len(asked) == 1
    fleet.cloud.run(seconds=4000, until=lambda: False)
    assert len(asked) == 2


@pytest.mark.parametrize("method", ["reviews", "removed_files", "team_members"])
def test_lists_that_are_too_long_approve_nothing(method: str) -> None:
    fleet = ReviewedFleet()
    around(fleet.cloud, "git_host", **{method: lambda _: None})
    fleet.propose()
    fleet.review()
    commit = fleet.merge()
    assert (fleet.left, "too many" in fleet.said(commit)) == (ALL, True)


def test_the_hold_says_that_a_review_of_the_team_approves() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    commit = fleet.merge()
    one = next(item for item in fleet.plan_record(commit).plan.items if item.cluster == "one")
    approving = "roadstead approve or an approving review of its pull request by acme/approvers releases"
    assert approving in one.reason
    cluster = why_view("one", fleet.cloud.ports)
    assert cluster is not None
    action = f"`roadstead approve {commit[:8]}` or an approving review of its pull request by acme/approvers"
    assert cluster["suggestedAction"].startswith(action)
    assert status(fleet.cloud, commit)[0] == "failure"


def test_a_review_that_arrives_while_its_merge_is_being_planned_is_not_lost() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    said = list[int]()

    def late(number: int) -> object:
        around(fleet.cloud, "git_host", reviews=reviews)
        found = reviews(number)
        fleet.review()
        said.append(fleet.announce_only(fleet.cloud.repository.head("main"), "late"))
        return found

    reviews = fleet.cloud.ports.git_host.reviews
    around(fleet.cloud, "git_host", reviews=late)
    fleet.merge()
    assert (said, fleet.left) == ([202], {"kept"})


def test_reviews_are_still_read_hours_later() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    commit = fleet.merge()
    fleet.cloud.clock.advance(timedelta(days=3).total_seconds())
    fleet.review()
    fleet.announce(commit)
    assert fleet.left == {"kept"}


@pytest.mark.parametrize("reads", [0, 150])
def test_a_crash_after_the_act_and_before_the_plan_records_the_act_once(reads: int) -> None:
    fleet = ReviewedFleet()
    save_plan = fleet.cloud.ports.state.save_plan

    def crashes(_: object) -> None:
        around(fleet.cloud, "state", save_plan=save_plan)
        for number in range(1, reads + 1):
            at = fleet.cloud.clock() + timedelta(milliseconds=number)
            fleet.cloud.state.save_act(Act(id=str(number), at=at, action=LIVE, target="kept", by="ann"))
        raise Crash

    fleet.propose()
    fleet.review()
    around(fleet.cloud, "state", save_plan=crashes)
    commit = fleet.merge()
    assert fleet.left == {"kept"}
    acts = fleet.cloud.state.acts(reads + 5)
    assert [act.target for act in acts if act.action != LIVE] == [commit]


@pytest.mark.parametrize("planned_again", [False, True])
def test_a_report_while_the_reviews_are_read_is_kept(*, planned_again: bool) -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    commit = fleet.merge()
    state, before = fleet.cloud.state, fleet.plan_record(commit)

    def reported() -> None:
        if planned_again:
            state.save_plan(replace(before, plan=replace(before.plan, problems=("another plan",))))
        read = fleet.plan_record(commit)
        state.save_report(replace(read, reported="pending: meanwhile", reports=7))

    frozen(fleet.cloud, "git_host", "reviews", reported)
    fleet.cloud.clock.advance(60)
    request = ReviewRequest(commit=commit)
    planner.handle(request, fleet.cloud.ports)
    after = fleet.plan_record(commit)
    assert (after.reported, after.reports) == ("pending: meanwhile", 7)
    assert after.review is not None
    assert before.review is not None
    assert (after.review.at > before.review.at) is not planned_again
    assert bool(after.plan.problems) is planned_again
