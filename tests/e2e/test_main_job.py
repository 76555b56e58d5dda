"""The main job over the wire on each git host: a pull request, an approval and a promotion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import httpx
import pytest

from localcloud.demo.story import ON_DEVOPS, ON_GITHUB
from localcloud.runtime.options import DEVOPS, Options
from tests.support import fleet_files, promotions
from tests.support.fleet_operator import Operator
from tests.support.host_projects import OnAzureDevOps, OnGitHub, OnGitLab
from tests.support.local_cloud_start import Start


@dataclass(frozen=True)
class Story:
    """A host: how people see it, what it delivers, and what ``roadstead health`` says that it lacks."""

    name: str
    project: type[OnGitHub | OnGitLab | OnAzureDevOps]
    delivered: Set[str]
    lacks: Sequence[str] = ("check runs of our own",)


STORIES = {
    "github": Story("GitHub", OnGitHub, {"push", "pull_request", "pull_request_review"}),
    "gitlab": Story(
        "GitLab", OnGitLab, {"Push Hook", "Merge Request Hook"}, ("check runs of our own", "issue forms")
    ),
    DEVOPS: Story(
        "Azure DevOps",
        OnAzureDevOps,
        {"git.push", *(f"git.pullrequest.{end}" for end in ("created", "updated", "merged"))},
        ("check runs of our own", "issues", "issue forms"),
    ),
}


def options(host: str, schedule: str = "*/2 * * * * *") -> Options:
    """Return a cloud with the fleet on a host, whose timer looks often, for what no delivery announces."""
    given = {"GIT_HOST": host, "POLL_SECONDS": "0.5", "APPROVAL_TEAMS": "example/approvers"}
    return Options(create_seconds=1, plan_schedule=schedule, extra=given)


@pytest.mark.long
@pytest.mark.parametrize("host", STORIES)
def test_a_pull_request_a_promotion_and_an_approval_do_what_they_say(start: Start, host: str) -> None:
    story, operator = STORIES[host], start(options(host))
    project = story.project(operator)
    files = promotions.files(test="1.36")
    files["fleet.yaml"] = files["fleet.yaml"].replace(b"count: 9 ", b"count: 1 ")
    if host == DEVOPS:  # Flux reads the fleet repository: its address there has another form
        files["fleet.yaml"] = files["fleet.yaml"].replace(ON_GITHUB.encode(), ON_DEVOPS.encode())
    first = operator.push(files)
    project.wait_for_status(first, project.succeeded)

    # A pull request has its plan, and its merge creates a cluster.
    files |= {"clusters/one/cluster.yaml": fleet_files.cluster("one")}
    proposed = project.push("grow", files)
    number = project.open("grow")
    project.wait_for_text(number, "1 create")
    planned = project.succeeded, "1 create, 4 unchanged; Flux changes on 1"
    operator.wait(lambda: project.status(proposed) == planned, f"{proposed[:8]} has its plan as a status")
    merged = project.merge(number)
    said = project.wait_for_status(merged, project.succeeded)
    assert said == "5 of 5 clusters in sync (1 create, 4 unchanged)"
    linked = project.pages(proposed, number) | project.pages(merged, number)
    assert linked == {f"/pulls/{number}", f"/plans/{merged}"}
    assert {page: opened(operator, page) for page in linked} == dict.fromkeys(linked, 200)
    assert operator.phases() == dict.fromkeys((*promotions.TEST, *promotions.PROD, "one"), "Ready")

    # A promotion is a pull request with its plan, and its merge changes production.
    asked = {"from": "development", "to": "production", "what": ["version"], "reason": "tested"}
    operator.api.post("promotions", asked)
    operator.wait(lambda: bool(project.opened(promotions.BRANCH)), "it is proposed")
    (number,) = project.opened(promotions.BRANCH)
    project.wait_for_text(number, "2 update")
    project.wait_for_status(project.merge(number), project.succeeded)
    assert promotions.running(operator.api) == {"1.36"}
    operator.wait(lambda: not promotions.is_there(operator.cloud.remote), "its branch is deleted")

    # Two deletes are more than the budget: the approval of a member of the team releases them.
    files["environments/production.yaml"] = promotions.environment("production", "1.36")
    files = without(files, promotions.TEST)
    project.push("shrink", files)
    number = project.open("shrink")
    project.wait_for_text(number, "example/approvers")
    project.approve(number, "contributor")
    project.approve(number, "reviewer")
    project.wait_for_status(project.merge(number), project.succeeded)
    left = dict.fromkeys((*promotions.PROD, "one"), "Ready")
    assert operator.phases() == left
    (act,) = [act for act in operator.api.get("audit")["acts"] if act["action"] == "approve"]
    assert act["by"] == f"{project.account.format('reviewer')} on {story.name}"
    assert str(number) in act["address"]

    # That of anybody else does not.
    project.push("empty", without(files, promotions.PROD))
    number = project.open("empty")
    project.wait_for_text(number, "example/approvers")
    project.approve(number, "contributor")
    merged = project.merge(number)
    project.wait_for_status(merged, project.failed)
    plan = operator.plan(merged)
    assert plan is not None
    assert plan["reviews"].endswith(f"({project.account.format('contributor')} is no member)")
    assert operator.phases() == left

    assert project.kinds() == story.delivered
    lacks = [line.partition(":")[0] for line in operator.api.get("health")["lacks"]]
    assert lacks == list(story.lacks)
    project.close()


def opened(operator: Operator, page: str) -> int:
    """Return the status of a page that a Reader opens, who signs in for it."""
    back = {"person": "reader", "post_login_redirect_uri": page}
    with httpx.Client(follow_redirects=True, trust_env=False) as browser:
        shown = browser.get(f"{operator.cloud.urls.functions}/.auth/login/aad/callback", params=back)
        assert shown.url.path == page
        return shown.status_code


def without(files: Mapping[str, bytes], clusters: Sequence[str]) -> dict[str, bytes]:
    gone = {f"clusters/{name}/cluster.yaml" for name in clusters}
    return {path: text for path, text in files.items() if path not in gone}


@pytest.mark.long
def test_a_service_hook_of_azure_devops_has_a_push_planned_before_any_timer_looks(start: Start) -> None:
    operator = start(options(DEVOPS, "0 0 * * * *"))
    project = OnAzureDevOps(operator)
    commit = operator.push(fleet_files.fleet("one"))
    operator.wait(lambda: operator.plan(commit) is not None, "the push is planned")
    operator.wait(lambda: operator.phases() == {"one": "Ready"}, "it is Ready")
    (sent,) = [sent for sent in project.deliveries() if sent["event"] == "git.push"]
    assert sent["status"] == 202
    forged = httpx.post(
        f"{operator.cloud.urls.functions}/api/webhook",
        json=sent["payload"],
        auth=("roadstead", "another password"),
        trust_env=False,
    )
    assert (forged.status_code, operator.api.get("clusters").get("problem")) == (401, "")
    project.close()
