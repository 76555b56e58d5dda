"""A fleet on GitLab: a merge request has its plan, and an approval releases a delete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from localcloud.runtime.options import Options
from tests.support import fleet_files, promotions
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.merge_request_author import GitLabProject, MergeRequest

GITLAB = {"GIT_HOST": "gitlab", "POLL_SECONDS": "0.5", "APPROVAL_TEAMS": "example/approvers"}


@contextmanager
def on_gitlab(start: Start) -> Iterator[tuple[Operator, GitLabProject]]:
    """Start a cloud whose app reads GitLab, which delivers its webhook; a timer looks often, too."""
    operator = start(Options(create_seconds=1, plan_schedule="*/2 * * * * *", extra=GITLAB))
    project = GitLabProject(operator)
    yield operator, project
    project.close()


def test_a_merge_request_has_its_plan_and_its_merge_makes_a_cluster(start: Start) -> None:
    with on_gitlab(start) as (operator, project):
        first = operator.push(fleet_files.fleet("one"))
        project.wait_for_status(first, "success")
        request = MergeRequest(project, "grow", fleet_files.fleet("one", "two"))
        note = request.wait_for("create")
        assert "two" in note
        assert project.wait_for_status(request.head, "success").endswith("1 create, 1 unchanged")
        commit = request.merge()
        status = project.wait_for_status(commit, "success")
        assert status == "success: 2 of 2 clusters in sync (1 create, 1 unchanged)"
        assert operator.phases() == {"one": "Ready", "two": "Ready"}
        answers = {event: status for event, status in project.deliveries() if status is not None}
        assert answers.keys() == {"Push Hook", "Merge Request Hook"}
        assert all(200 <= status < 300 for status in answers.values())
        health = operator.api.get("health")
        assert not any(line.startswith("commit statuses:") for line in health["lacks"])
        asked = {call["path"].partition("?")[0] for call in operator.cloud.requests("gitlab")}
        assert not [path for path in asked if path.startswith("/repos/")], "GitLab's API is spoken"


@pytest.mark.long
def test_an_approval_of_the_team_releases_a_delete(start: Start) -> None:
    with on_gitlab(start) as (operator, project):
        project.wait_for_status(operator.push(fleet_files.fleet("one", "two", "three", "four")), "success")
        request = MergeRequest(project, "shrink", fleet_files.fleet("one", "two"))
        request.wait_for("example/approvers")
        project.approve(request.number, "contributor")
        project.approve(request.number, "reviewer")
        project.wait_for_status(request.merge(), "success")
        assert sorted(operator.phases()) == ["one", "two"]
        (act,) = [act for act in operator.api.get("audit")["acts"] if act["action"] == "approve"]
        assert act["by"] == "reviewer on GitLab"
        assert act["address"].endswith(f"/example/fleet/-/merge_requests/{request.number}")


@pytest.mark.long
def test_a_promotion_is_a_merge_request_with_its_plan_and_its_merge_changes_production(start: Start) -> None:
    with on_gitlab(start) as (operator, project):
        project.wait_for_status(operator.push(promotions.files(test="1.36")), "success")
        operator.api.promote("development", "production", ["version"], "tested")
        operator.wait(lambda: bool(project.opened(promotions.BRANCH)), "it is proposed")
        number = project.opened(promotions.BRANCH)[0]
        operator.wait(lambda: any("2 update" in note for note in project.notes(number)), "its plan is a note")
        merged = project.call("PUT", f"/merge_requests/{number}/merge")["merge_commit_sha"]
        project.wait_for_status(merged, "success")
        assert promotions.running(operator.api) == {"1.36"}
        operator.wait(lambda: not promotions.is_there(operator.cloud.remote), "its branch is deleted")
