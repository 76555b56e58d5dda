"""A fleet on Azure DevOps: a pull request with its plan, its votes and its merge, over the wire."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import Any

import httpx

from localcloud.runtime.options import Options
from tests.support import fleet_files, promotions
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start

DEVOPS = Options(
    create_seconds=1,
    plan_schedule="*/2 * * * * *",
    extra={"GIT_HOST": "azure-devops", "POLL_SECONDS": "0.5"},
)


class Project:
    """The repository of a cloud as a person with a token sees it."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        organization, _, rest = operator.cloud.remote.partition("/example/")
        name = rest.rpartition("/")[2]
        self._web = operator.cloud.urls.github
        self._api = f"{organization}/example/_apis/git/repositories/{name}"
        identity = httpx.get(
            operator.cloud.settings["IDENTITY_ENDPOINT"],
            params={"resource": "499b84ac-1321-427f-aa17-267ca6975798", "api-version": "2019-08-01"},
            headers={"X-IDENTITY-HEADER": operator.cloud.settings["IDENTITY_HEADER"]},
            trust_env=False,
        )
        self._headers = {"Authorization": f"Bearer {identity.json()['access_token']}"}

    def get(self, path: str, **query: str) -> Any:
        found = httpx.get(
            f"{self._api}{path}",
            params={"api-version": "7.1", **query},
            headers=self._headers,
            trust_env=False,
        )
        assert found.status_code == 200, found.text
        return found.json()

    def does(self, what: str, **given: Any) -> Any:
        done = httpx.post(f"{self._web}/_local/{what}", json=given, trust_env=False)
        assert done.status_code in (200, 201), done.text
        return done.json()

    def status(self, commit: str) -> str:
        found = self.get(f"/commits/{commit}/statuses", latestOnly="true")["value"]
        assert all(status["context"]["genre"] == "roadstead" for status in found)
        return str(found[0]["state"]) if found else ""

    def comments(self, number: int) -> list[str]:
        threads = self.get(f"/pullRequests/{number}/threads")["value"]
        return [str(thread["comments"][0]["content"]) for thread in threads]


def push_to_branch(operator: Operator, branch: str, files: dict[str, bytes]) -> None:
    who = ("-c", "user.name=Operator", "-c", "user.email=operator@example.com")
    for arguments in (
        ["fetch", "--quiet", "origin", "main"],
        ["checkout", "--quiet", "-b", branch, "origin/main"],
        ["add", "--all"],
        ["commit", "--quiet", "-m", branch],
        ["push", "--quiet", "origin", branch],
    ):
        if arguments[0] == "add":
            operator.checkout.replace_all(files)
        subprocess.run(["git", "-C", str(operator.checkout.folder), *who, *arguments], check=True)


def test_a_pull_request_has_its_plan_as_a_thread_and_a_status_and_its_merge_creates_a_cluster(
    start: Start,
) -> None:
    operator = start(DEVOPS)
    project = Project(operator)
    first = operator.push(fleet_files.fleet("one"))
    operator.wait(lambda: project.status(first) == "succeeded", "the first commit is applied")
    assert operator.phases() == {"one": "Ready"}
    push_to_branch(operator, "two", fleet_files.fleet("one", "two"))
    opened = project.does("pulls", head="two", base="main", title="Add two")
    number = opened["pullRequestId"]
    operator.wait(lambda: bool(project.comments(number)), "its plan is a thread")
    (comment,) = project.comments(number)
    assert "1 create" in comment
    (status,) = project.get(f"/pullRequests/{number}/statuses")["value"]
    assert (status["state"], status["context"]) == ("succeeded", {"genre": "roadstead", "name": "plan"})
    project.does("reviews", number=number, login="reviewer", vote=10)
    merged = project.does("merges", number=number, squash=True)["lastMergeCommit"]["commitId"]
    operator.wait(lambda: project.status(merged) == "succeeded", "the merge is applied")
    assert operator.phases() == {"one": "Ready", "two": "Ready"}
    lacks = operator.api.get("health")["lacks"]
    assert [line.partition(":")[0] for line in lacks] == ["check runs of our own", "issues", "issue forms"]
    kinds = [sent["event"]["eventType"] for sent in deliveries(operator)]
    assert kinds == [
        "git.push",
        "git.push",
        "git.pullrequest.created",
        "git.push",
        "git.pullrequest.updated",
        "git.pullrequest.merged",
    ]


def test_a_team_approves_a_delete_by_a_vote_and_nobody_else_does(start: Start) -> None:
    operator = start(replace(DEVOPS, extra={**DEVOPS.extra, "APPROVAL_TEAMS": "example/approvers"}))
    project = Project(operator)
    first = operator.push(fleet_files.fleet("one", "two", "three", "four"))
    operator.wait(lambda: project.status(first) == "succeeded", "the first commit is applied")

    def merged(branch: str, files: dict[str, bytes], login: str) -> str:
        push_to_branch(operator, branch, files)
        number = project.does("pulls", head=branch, base="main", title=branch)["pullRequestId"]
        project.does("reviews", number=number, login=login, vote=10)
        return str(project.does("merges", number=number)["lastMergeCommit"]["commitId"])

    commit = merged("half", fleet_files.fleet("one", "two"), "reviewer")
    operator.wait(lambda: project.status(commit) == "succeeded", "a member has approved")
    assert operator.phases() == {"one": "Ready", "two": "Ready"}
    later = merged("all", fleet_files.fleet(), "contributor")
    operator.wait(lambda: project.status(later) == "failed", "nobody has approved")
    plan = operator.plan(later)
    assert plan is not None
    assert plan["reviews"].endswith("(contributor@example.com is no member)")
    assert operator.phases() == {"one": "Ready", "two": "Ready"}


def test_a_promotion_is_a_pull_request_with_its_plan_and_its_merge_changes_production(start: Start) -> None:
    operator = start(DEVOPS)
    project = Project(operator)
    first = operator.push(promotions.files(test="1.36"))
    operator.wait(lambda: project.status(first) == "succeeded", "the first commit is applied")
    operator.api.promote("development", "production", ["version"], "tested")

    def opened() -> list[int]:
        found = project.get("/pullrequests", **{"searchCriteria.status": "active"})["value"]
        ref = f"refs/heads/{promotions.BRANCH}"
        return [pull["pullRequestId"] for pull in found if pull["sourceRefName"] == ref]

    operator.wait(lambda: bool(opened()), "it is proposed")
    (number,) = opened()
    operator.wait(
        lambda: any("2 update" in text for text in project.comments(number)), "its plan is a thread"
    )
    merged = project.does("merges", number=number)["lastMergeCommit"]["commitId"]
    operator.wait(lambda: project.status(merged) == "succeeded", "the merge is applied")
    assert promotions.running(operator.api) == {"1.36"}
    operator.wait(lambda: not promotions.is_there(operator.cloud.remote), "its branch is deleted")


def test_a_service_hook_has_a_push_planned_before_any_timer_looks(start: Start) -> None:
    hourly = replace(DEVOPS, plan_schedule="0 0 * * * *")
    operator = start(hourly)
    commit = operator.push(fleet_files.fleet("one"))
    operator.wait(lambda: operator.plan(commit) is not None, "the push is planned")
    operator.wait(lambda: operator.phases() == {"one": "Ready"}, "it is Ready")
    (sent,) = [sent for sent in deliveries(operator) if sent["event"]["eventType"] == "git.push"]
    assert sent["status"] == 202
    forged = httpx.post(
        f"{operator.cloud.urls.functions}/api/webhook",
        json=sent["event"],
        auth=("roadstead", "another password"),
        trust_env=False,
    )
    assert (forged.status_code, operator.api.get("clusters").get("problem")) == (401, "")


def deliveries(operator: Operator) -> list[dict[str, Any]]:
    found = httpx.get(f"{operator.cloud.urls.github}/_local/deliveries", trust_env=False)
    return list(found.json())
