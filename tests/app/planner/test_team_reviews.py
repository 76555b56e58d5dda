"""Deletes that need approval are approved by a review of a named team, of exactly what was merged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.git.world.people import CONTRIBUTOR, REVIEWER
from shared.app.api.acts.approval import approve
from shared.app.planner.approvals import approved_request
from shared.cluster.queues.messages import ReviewRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.language.resolve.repository_layout import cluster_path as manifest
from shared.ports import Capability, PullAuthors
from tests.support import fleet_files
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around, fails_once
from tests.support.reviewed_pulls import REMOVED, TEAM, ReviewedFleet

pytestmark = pytest.mark.lives

ALL = {*REMOVED, "kept"}


@pytest.mark.parametrize("squash", [False, True])
def test_a_review_of_the_team_before_the_merge_approves_its_deletes(squash: bool) -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    review = fleet.review(body="They are retired.")
    commit = fleet.merge(squash=squash)
    assert fleet.left == {"kept"}
    approval = fleet.plan_record(commit).approval
    assert approval is not None
    assert (approval.by, approval.clusters) == ("reviewer on GitHub", REMOVED)
    assert approval.reason.endswith(f"#pullrequestreview-{review} (They are retired.)")
    (act,) = fleet.cloud.state.acts(5)
    assert (act.action, act.target, act.by, act.by_id) == (
        "approve",
        commit,
        "reviewer on GitHub",
        f"github:{REVIEWER.id}",
    )
    assert (act.address[-len(f"{review}") :], act.clusters, act.result) == (f"{review}", REMOVED, "accepted")
    events = fleet.cloud.state.events("one", 50)
    assert any("reviewer on GitHub: approved pull request #1 at" in event.message for event in events)


def test_on_a_host_without_reviews_a_delete_waits_for_a_person_and_no_review_is_read_or_promised() -> None:
    fleet = ReviewedFleet()
    fleet.cloud.git_host.lacks = frozenset({Capability.REVIEWS})
    fleet.propose()
    fleet.review()
    commit = fleet.merge()
    fleet.announce(commit)
    assert (fleet.left, fleet.calls) == (ALL, [])
    (cause,) = {item.hold.cause for item in fleet.plan_record(commit).plan.items if item.hold}
    assert TEAM not in cause
    assert approve(commit, REMOVED, "ada", fleet.cloud.ports).status == 202
    fleet.cloud.run()
    assert fleet.left == {"kept"}


def test_a_review_after_the_merge_approves_them_when_its_webhook_arrives() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    commit = fleet.merge()
    assert fleet.left == ALL
    assert "no approving review by acme/approvers of the merged commit" in fleet.said(commit)
    fleet.review()
    fleet.cloud.run(seconds=1200)
    assert fleet.left == ALL
    assert fleet.announce(commit) == 202
    assert fleet.left == {"kept"}
    assert len(fleet.cloud.state.acts(5)) == 1


def test_without_the_setting_no_review_approves_anything_and_none_is_read() -> None:
    fleet = ReviewedFleet(teams=())
    fleet.propose()
    fleet.review()
    commit = fleet.merge()
    assert fleet.announce(commit) == 200
    assert (fleet.left, fleet.calls, fleet.said(commit)) == (ALL, [], "")


def test_a_webhook_alone_approves_nothing() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    commit = fleet.merge()
    assert fleet.announce(commit) == 202
    assert fleet.left == ALL


def refused(fleet: ReviewedFleet, commit: str, why: str) -> None:
    """Check that a fleet still has its clusters, why, and that the command approves."""
    assert (fleet.left, why in fleet.said(commit)) == (ALL, True), fleet.said(commit)
    assert fleet.cloud.state.acts(5) == []
    held = fleet.plan_record(commit).plan.deletes_needing_approval
    assert approve(commit, held, "ada", fleet.cloud.ports).status == 202
    fleet.cloud.run()
    assert fleet.left == ALL - held


def test_a_review_of_an_earlier_commit_does_not_count() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    fleet.review()
    fleet.commit()
    refused(fleet, fleet.merge(), "that of reviewer is of an earlier commit")


def test_a_review_that_was_dismissed_does_not_count() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    fleet.cloud.repository.pulls.reviews.dismiss(fleet.review())
    refused(fleet, fleet.merge(), "no approving review")


def test_a_reviewer_who_requested_changes_later_does_not_approve() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    fleet.review()
    fleet.review(event="REQUEST_CHANGES")
    refused(fleet, fleet.merge(), "no approving review")


def test_a_comment_after_an_approval_leaves_it() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    fleet.review()
    fleet.review(event="COMMENT")
    fleet.merge()
    assert fleet.left == {"kept"}


def test_somebody_outside_the_team_does_not_approve() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    fleet.review("contributor")
    refused(fleet, fleet.merge(), "contributor is no member")


def test_a_member_who_left_the_team_does_not_approve() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    fleet.review()
    fleet.cloud.repository.pulls.teams.members[TEAM] = ("contributor",)
    refused(fleet, fleet.merge(), "reviewer is no member")


def test_a_member_who_requests_changes_outweighs_another_who_approves() -> None:
    fleet = ReviewedFleet()
    fleet.cloud.repository.pulls.teams.members[TEAM] = ("reviewer", "contributor")
    fleet.propose()
    fleet.review("contributor", event="REQUEST_CHANGES")
    fleet.review()
    refused(fleet, fleet.merge(), "contributor of acme/approvers requests changes")


def test_a_member_of_any_of_the_teams_approves() -> None:
    fleet = ReviewedFleet(teams=("acme/others", TEAM))
    fleet.cloud.repository.pulls.teams.members["acme/others"] = ("contributor",)
    fleet.propose()
    fleet.review()
    fleet.merge()
    assert fleet.left == {"kept"}


def test_a_delete_of_an_earlier_commit_is_not_approved_by_a_later_pull_request() -> None:
    fleet = ReviewedFleet()
    fleet.plan(fleet.cloud.repository.commit(dict.fromkeys(map(manifest, REMOVED))))
    fleet.propose("kept")
    fleet.review()
    refused(fleet, fleet.merge(), "it does not itself remove one, two")


def test_a_merge_that_removes_more_than_its_pull_request_is_not_approved() -> None:
    """Somebody pushes a merge commit with a change of its own: GitHub shows the pull request as merged."""
    fleet = ReviewedFleet()
    fleet.propose("one")
    fleet.review()
    git = fleet.cloud.repository
    onto, topic = git.head("main"), git.head("topic")
    merged = git.merge(onto, topic)
    assert merged is not None
    git.reset(merged)
    commit = git.commit({"clusters/two/cluster.yaml": None})
    git.pulls.close_as_merged(fleet.number, onto=onto, commit=commit)
    fleet.plan(commit)
    refused(fleet, commit, "it does not itself remove two")


def test_a_commit_after_the_merge_needs_an_approval_of_its_own() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    fleet.review()
    git = fleet.cloud.repository
    fleet.cloud.repository.pulls.merged_into_base(fleet.number)
    commit = git.commit({"README.md": b"pushed directly"})
    fleet.plan(commit)
    refused(fleet, commit, "no pull request into main was merged as this commit")


def test_a_commit_of_the_pull_request_that_is_not_its_merge_does_not_count() -> None:
    """Somebody sets the branch to a commit of the merged branch, which GitHub lists with its pull request."""
    fleet = ReviewedFleet()
    fleet.propose()
    git = fleet.cloud.repository
    removal = git.head("topic")
    fleet.commit()
    fleet.review()
    git.pulls.merged_into_base(fleet.number)
    git.reset(removal)
    fleet.plan(removal)
    refused(fleet, removal, "no pull request into main was merged as this commit")


def test_a_pull_request_into_another_branch_does_not_count() -> None:
    fleet = ReviewedFleet()
    git = fleet.cloud.repository
    git.reset(git.head("main"), "next")
    git.reset(git.head("main"), "topic")
    git.commit(dict.fromkeys(map(manifest, REMOVED)), branch="topic")
    fleet.number = git.pulls.open("Remove clusters", "topic", "next").number
    fleet.review()
    commit = git.pulls.merged_into_base(fleet.number).merge_commit
    git.reset(commit)
    fleet.plan(commit)
    refused(fleet, commit, "no pull request into main was merged as this commit")


def test_a_pull_request_of_another_repository_does_not_count() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    fleet.review()
    merged_as = fleet.cloud.ports.git_host.merged_as
    around(
        fleet.cloud,
        "git_host",
        merged_as=lambda commit: [replace(p, repository=2) for p in merged_as(commit)],
    )
    refused(fleet, fleet.merge(), "no pull request into main was merged as this commit")


def test_an_old_review_does_not_delete_a_later_cluster_of_the_same_name() -> None:
    """A branch that is set back to an old merge shows its commit again, and its reviews."""
    fleet = ReviewedFleet()
    git, before = fleet.cloud.repository, fleet.cloud.repository.head("main")
    fleet.propose()
    fleet.review()
    commit = fleet.merge()
    assert fleet.left == {"kept"}
    push(fleet.cloud, {**git.files(before), "README.md": b"again"})
    fleet.cloud.run()
    assert fleet.left == ALL
    git.reset(commit)
    fleet.cloud.run(seconds=1200)
    assert fleet.cloud.state.fleet().commit == commit
    assert fleet.left == ALL
    assert "that of reviewer is older than a cluster that it would delete" in fleet.said(commit)


def test_an_old_review_does_not_count_after_the_branch_left_the_merge_and_returned() -> None:
    """The merge was undone before it was carried out; only a new review approves it again."""
    fleet = ReviewedFleet()
    git, before = fleet.cloud.repository, fleet.cloud.repository.head("main")
    fleet.propose()
    fleet.review()
    commit = git.pulls.merged_into_base(fleet.number).merge_commit
    fleet.cloud.clock.advance(3600)
    fleet.plan(git.push({**git.files(before), "README.md": b"not yet"}))
    git.reset(commit)
    fleet.cloud.run(seconds=1200)
    assert (fleet.cloud.state.fleet().commit, fleet.left) == (commit, ALL)
    assert "that of reviewer is older than the plan of another commit" in fleet.said(commit)
    fleet.review()
    fleet.announce(commit)
    assert fleet.left == {"kept"}


def test_a_merge_was_undone_also_when_the_plan_of_the_commit_before_needed_a_second_attempt() -> None:
    fleet = ReviewedFleet()
    git, before = fleet.cloud.repository, fleet.cloud.repository.head("main")
    fleet.propose()
    commit = fleet.merge()
    fleet.cloud.clock.advance(600)
    fleet.review()
    fleet.cloud.clock.advance(600)
    fails_once(fleet.cloud, "state", "save_plan")
    git.reset(before)
    fleet.plan(before)
    assert fleet.cloud.state.fleet().commit == before
    fleet.cloud.clock.advance(3600)
    git.reset(commit)
    fleet.cloud.run(seconds=3600)
    assert (fleet.cloud.state.fleet().commit, fleet.left) == (commit, ALL)
    assert "that of reviewer is older than the plan of another commit" in fleet.said(commit)


def test_with_approval_by_others_somebody_who_wrote_nothing_of_it_approves() -> None:
    fleet = ReviewedFleet(by_others=True)
    fleet.propose()
    fleet.review()
    fleet.merge()
    assert fleet.left == {"kept"}


def test_with_approval_by_others_who_wrote_a_part_of_it_does_not_approve() -> None:
    fleet = ReviewedFleet(by_others=True)
    fleet.propose()
    fleet.commit(author="Reviewer@example.com")
    fleet.review()
    commit = fleet.merge()
    assert (fleet.left, "reviewer wrote a part of it" in fleet.said(commit)) == (ALL, True)


def test_with_approval_by_others_who_is_named_as_a_co_author_does_not_approve() -> None:
    fleet = ReviewedFleet(by_others=True)
    fleet.propose()
    message = "More\n\nCo-authored-by: R <3+reviewer@users.noreply.github.com>"
    fleet.cloud.repository.commit({"README.md": b"more"}, branch="topic", message=message)
    fleet.review()
    commit = fleet.merge()
    assert (fleet.left, "reviewer wrote a part of it" in fleet.said(commit)) == (ALL, True)


def test_with_approval_by_others_an_author_without_an_account_may_be_the_reviewer() -> None:
    fleet = ReviewedFleet(by_others=True)
    fleet.propose(author="somebody@example.com")
    fleet.review()
    commit = fleet.merge()
    assert (fleet.left, "a commit of it has no account" in fleet.said(commit)) == (ALL, True)


def test_with_approval_by_others_who_opened_it_does_not_approve() -> None:
    fleet = ReviewedFleet(by_others=True)
    fleet.propose()
    fleet.review()
    nobody = PullAuthors(frozenset({CONTRIBUTOR.id}), complete=True)
    around(fleet.cloud, "git_host", pull_authors=lambda _: nobody)
    merged_as = fleet.cloud.ports.git_host.merged_as
    around(
        fleet.cloud,
        "git_host",
        merged_as=lambda commit: [replace(p, author=REVIEWER.id) for p in merged_as(commit)],
    )
    commit = fleet.merge()
    assert (fleet.left, "reviewer wrote a part of it" in fleet.said(commit)) == (ALL, True)


def test_a_rename_is_approved_by_a_review_too() -> None:
    fleet = ReviewedFleet()
    git = fleet.cloud.repository
    git.reset(git.head("main"), "topic")
    renamed = fleet_files.fleet("three")["clusters/three/cluster.yaml"]
    files = {"clusters/two/cluster.yaml": None, "clusters/three/cluster.yaml": renamed}
    git.commit(files, branch="topic")
    fleet.number = git.pulls.open("Rename", "topic", "main").number
    fleet.review()
    fleet.merge()
    assert fleet.left == {"one", "three", "kept"}
    assert {record.phase for record in fleet.cloud.state.clusters()} == {Phase.READY}


def test_a_review_reads_the_clusters_that_it_is_about_and_not_the_fleet() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    commit = fleet.merge()
    fleet.review()
    whole = list[str]()

    def clusters() -> list[ClusterRecord]:
        whole.append("all of them")
        return list(fleet.cloud.state.clusters())

    around(fleet.cloud, "state", clusters=clusters)
    approved = approved_request(ReviewRequest(commit=commit), fleet.cloud.ports)
    assert approved is not None
    assert whole == []
