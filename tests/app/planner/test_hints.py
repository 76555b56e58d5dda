"""Deliveries that nobody signs: each is a hint, and what is read counts."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.intake.azure_devops_webhook import project_and_name
from shared.app.intake.webhook import (
    MAX_HINT_BYTES,
    DeliveryRefusal,
    IgnoredDelivery,
    PullChange,
    Push,
    ReviewDelivery,
)
from shared.app.outbox import HINT_SECONDS
from shared.cluster.queues.messages import PreviewRequest
from shared.ports.state import PullPlanRecord
from tests.support import fleet_files
from tests.support.host_deliveries import (
    DEVOPS_PULL,
    DEVOPS_PUSH,
    GITLAB_PULL,
    GITLAB_PUSH,
    HOSTS,
    KEY,
    Host,
)
from tests.support.pipeline_runs import ready
from tests.support.replaced_ports import around
from tests.support.webhook_deliveries import COMMIT

DEVOPS, GITLAB = HOSTS["azure-devops"], HOSTS["gitlab"]
MERGED = "eef717f69257a6333f221566c1c987dc94cc0d72"


def merge_request(event: str = "Merge Request Hook", **changes: Any) -> Any:
    request = {**GITLAB_PULL["object_attributes"], **changes}
    known = {name: value for name, value in request.items() if value != "absent"}
    return GITLAB.received({**GITLAB_PULL, "object_attributes": known}, event=event)


def pull_request(event: str, **changes: Any) -> Any:
    return DEVOPS.received({**DEVOPS_PULL, "eventType": event, "resource": DEVOPS_PULL["resource"] | changes})


def _counted(cloud: MemoryCloud, name: str, calls: list[str]) -> Any:
    def call(*given: Any) -> Any:
        calls.append(name)
        return getattr(cloud.git_host, name)(*given)

    return call


def test_a_forged_push_with_the_right_password_costs_one_read_of_the_branch() -> None:
    cloud = ready("one")
    cloud.clock.advance(100)
    calls = list[str]()
    names = ("read_head", "is_descendant", "tree", "blob", "archive")
    around(cloud, "git_host", **{name: _counted(cloud, name, calls) for name in names})
    forged = DEVOPS.received(DEVOPS.changed("push", "commit", "f" * 40))
    assert accept(forged, cloud.ports).status == 202
    cloud.run(seconds=100, until=lambda: False)
    assert calls == ["read_head"]
    assert cloud.state.fleet().waiting == ""


def test_a_flood_of_hints_is_one_message_in_some_seconds_and_the_last_of_them_is_read() -> None:
    cloud = ready("one")
    cloud.clock.advance(100)
    began = cloud.clock()
    for number in range(200):
        accept(DEVOPS.received(DEVOPS.changed("push", "commit", f"{number + 1:040x}")), cloud.ports)
        if number == 150:
            commit = cloud.repository.push(fleet_files.fleet("one", "two"))
        cloud.clock.advance(0.05)
    counts = cloud.broker.counts("plans")
    assert counts.active + counts.scheduled <= (cloud.clock() - began).total_seconds() / HINT_SECONDS + 1
    cloud.run(seconds=60)
    assert cloud.state.fleet().commit == commit


def test_a_flood_of_hints_with_numbers_that_nobody_knows_is_one_message_in_some_seconds() -> None:
    cloud = ready("one")
    cloud.clock.advance(100)
    git = cloud.repository
    git.reset(git.head("main"), "two")
    head = git.commit(dict(fleet_files.fleet("one", "two")), branch="two")
    opened = git.pulls.open("Add two", "two", "main").number
    calls = list[str]()
    around(cloud, "git_host", pull=_counted(cloud, "pull", calls))
    began = cloud.clock()
    for number in (*range(1000, 1200), opened):
        for status in ("active", "abandoned"):
            found = pull_request("git.pullrequest.updated", status=status, pullRequestId=number)
            assert accept(found, cloud.ports).status == 202
        cloud.clock.advance(0.1)
    counts = cloud.broker.counts("previews")
    most = (cloud.clock() - began).total_seconds() / PreviewRequest.WINDOW + 1
    assert counts.active + counts.scheduled <= most
    cloud.run(seconds=120, until=lambda: False)
    record = cloud.state.pull(opened)
    assert (record.head if record else "") == head
    assert len(calls) <= 5, "the numbers that nobody has are not asked for"


def test_a_hint_on_a_pull_request_that_has_a_plan_is_a_message_of_its_own() -> None:
    cloud = ready("one")
    cloud.state.save_pull(PullPlanRecord(7, COMMIT, COMMIT, cloud.clock(), "Add two"))
    accept(pull_request("git.pullrequest.updated", status="active"), cloud.ports)
    counts = cloud.broker.counts("previews")
    assert counts.active + counts.scheduled == 2, "its plan, and the end of its tries"


@pytest.mark.parametrize("host", [DEVOPS, GITLAB])
def test_a_hint_that_is_too_large_is_not_parsed_and_has_the_branch_read(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers, body = host.sent(host.push, secret=host.secrets[-1])
    body += b" " * MAX_HINT_BYTES
    with monkeypatch.context() as patched:
        patched.setattr("json.loads", None)
        found = host.read(headers, body, secrets=host.secrets, repository="example/fleet", branch="main")
    assert isinstance(found, Push)
    assert (found.commit, found.signed) == ("", False)
    assert accept(found, MemoryCloud().ports).status == 202
    signed = GITLAB.received(json.dumps(GITLAB_PUSH).encode() + b" " * MAX_HINT_BYTES)
    assert isinstance(signed, Push)
    assert signed.commit == COMMIT


def test_a_repository_that_has_taken_the_name_over_has_another_id() -> None:
    cloud = ready("one")
    theirs = DEVOPS.changed("push", "commit", COMMIT)
    theirs["resource"]["repository"] = {**theirs["resource"]["repository"], "id": str(UUID(int=2))}
    found = accept(DEVOPS.received(theirs), cloud.ports)
    assert found.status == 200
    assert "with the id 2 is not the fleet's, whose id is 1" in found.body["ignored"]
    ours = accept(DEVOPS.received(DEVOPS_PUSH), cloud.ports)
    assert ours.status == 202


def test_a_push_without_details_has_the_branch_read_and_planned() -> None:
    for resource in ({"resource": None}, {"resource": {"pushId": 14, "url": "https://dev.azure.com/x"}}, {}):
        cloud = ready("one")
        cloud.clock.advance(100)
        commit = cloud.repository.push(fleet_files.fleet("one", "two"))
        bare = {name: value for name, value in DEVOPS_PUSH.items() if name != "resource"}
        found = DEVOPS.received({**bare, **resource})
        assert found == Push(found.delivery, found.digest, "", signed=False)  # type: ignore[union-attr]
        assert accept(found, cloud.ports).status == 202
        cloud.run(seconds=20)
        assert cloud.state.fleet().commit == commit


def test_the_buttons_that_send_a_sample_get_a_success() -> None:
    sample = {"name": "Fabrikam-Fiber-Git", "project": {"name": "Fabrikam-Fiber-Git"}}
    pushed = DEVOPS.changed("push", "repository", "x")
    pushed["resource"]["repository"] = sample
    assert DEVOPS.received(pushed) == IgnoredDelivery(
        "the repository Fabrikam-Fiber-Git/Fabrikam-Fiber-Git is not example/fleet"
    )
    assert merge_request(action="absent") == IgnoredDelivery("a merge request without an action is a test")
    without = GITLAB.received({**GITLAB_PUSH, "commits": [], "total_commits_count": 0})
    assert isinstance(without, Push)


@pytest.mark.parametrize(
    ("event", "status", "action"),
    [
        ("git.pullrequest.created", "active", "synchronize"),
        ("git.pullrequest.updated", "active", "synchronize"),
        ("git.pullrequest.updated", "abandoned", "closed"),
        ("git.pullrequest.merged", "completed", "closed"),
        ("git.pullrequest.updated", None, "synchronize"),
    ],
)
def test_an_event_of_azure_devops_says_that_a_pull_request_changed(
    event: str, status: str | None, action: str
) -> None:
    found = pull_request(event, status=status)
    assert isinstance(found, PullChange)
    assert (found.number, found.head, found.action) == (7, "", action)


def test_a_vote_on_a_completed_pull_request_may_approve() -> None:
    found = pull_request("git.pullrequest.updated", status="completed")
    assert isinstance(found, ReviewDelivery)
    assert found.commit == MERGED
    bare = pull_request("git.pullrequest.updated", status="completed", lastMergeCommit=None)
    assert isinstance(bare, PullChange)


def test_a_test_merge_of_azure_devops_needs_no_plan() -> None:
    found = pull_request("git.pullrequest.merged")
    assert found == IgnoredDelivery("a test merge of an active pull request needs no plan")


def test_an_event_without_a_pull_request_says_what_the_subscription_lacks() -> None:
    found = DEVOPS.received({**DEVOPS_PULL, "resource": None})
    assert found == IgnoredDelivery("it names no pull request; have the subscription send all details")


@pytest.mark.parametrize(
    "given", ["Basic", "Basic ", "Basic !", "Basic bmV3", "Bearer new", "new", "Basic /w=="]
)
def test_what_is_no_basic_authentication_is_refused(given: str) -> None:
    _, body = DEVOPS.sent(DEVOPS_PUSH)
    found = DEVOPS.read(
        {"Authorization": given}, body, secrets=("new",), repository="example/fleet", branch="main"
    )
    assert isinstance(found, DeliveryRefusal)
    assert found.status == 401


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("contoso/Example/_git/Fleet", ("example", "fleet")),
        ("contoso/_git/fleet", ("contoso", "fleet")),
        ("_git/fleet", ("fleet", "fleet")),
        ("contoso/my%20project/_git/fleet", ("my project", "fleet")),
        ("contoso/example/fleet", ("example", "fleet")),
    ],
)
def test_the_names_of_a_repository_are_in_its_address(path: str, names: tuple[str, str]) -> None:
    assert project_and_name(path) == names


@pytest.mark.parametrize(
    ("changes", "action"),
    [
        ({"action": "open"}, "opened"),
        ({"action": "reopen"}, "reopened"),
        ({"action": "close", "state": "closed"}, "closed"),
        ({"action": "merge", "state": "merged"}, "closed"),
        ({"action": "update", "oldrev": "b" * 40}, "synchronize"),
    ],
)
def test_an_action_on_a_merge_request_is_one_on_a_pull_request(changes: dict[str, str], action: str) -> None:
    found = merge_request(**changes)
    assert isinstance(found, PullChange)
    assert (found.action, found.repository) == (action, 1)


def test_an_update_without_new_commits_needs_no_plan_and_a_new_target_does() -> None:
    assert merge_request(action="update") == IgnoredDelivery(
        "a merge request with the action update needs no plan"
    )
    target = {"target_branch": {"previous": "next", "current": "main"}}
    request = {**GITLAB_PULL["object_attributes"], "action": "update"}
    moved = {**GITLAB_PULL, "object_attributes": request, "changes": target}
    found = GITLAB.received(moved, event="Merge Request Hook")
    assert isinstance(found, PullChange)
    assert found.action == "synchronize"


@pytest.mark.parametrize("action", ["approved", "unapproved", "approval", "unapproval"])
def test_an_approval_of_what_was_merged_is_read(action: str) -> None:
    found = merge_request(action=action, state="merged", merge_commit_sha=MERGED)
    assert isinstance(found, ReviewDelivery)
    assert found.commit == MERGED
    assert isinstance(merge_request(action=action), IgnoredDelivery)
    assert isinstance(merge_request(action=action, state="merged"), DeliveryRefusal)


def test_a_token_of_gitlab_makes_a_hint_and_its_signature_an_announcement() -> None:
    hint = GITLAB.received(GITLAB_PUSH, secret=GITLAB.secrets[1])
    assert isinstance(hint, Push)
    assert not hint.signed
    sent = GITLAB.sent(GITLAB_PUSH)
    assert isinstance(GITLAB.read(*sent, secrets=(KEY,), repository="example/fleet", branch="main"), Push)


def test_a_signing_token_that_is_sent_as_a_secret_token_opens_nothing() -> None:
    headers = {"X-Gitlab-Event": "Push Hook", "Idempotency-Key": "d1", "X-Gitlab-Token": KEY}
    _, body = GITLAB.sent(GITLAB_PUSH)
    found = GITLAB.read(headers, body, secrets=(KEY,), repository="example/fleet", branch="main")
    assert isinstance(found, DeliveryRefusal)
    assert found.status == 401
    assert "is in the field of the secret token" in found.reason


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=0"}, "GitHub sent this, and GIT_HOST is"),
        ({"Authorization": "Basic eDpuZXc="}, "set the webhook's signing token in GitLab"),
    ],
)
def test_a_delivery_of_another_host_is_named_as_such(headers: dict[str, str], reason: str) -> None:
    found = GITLAB.read(headers, b"{}", secrets=(KEY,), repository="example/fleet", branch="main")
    assert isinstance(found, DeliveryRefusal)
    assert found.status == 401
    assert reason in found.reason


def test_what_gitlab_has_signed_is_sent_again_under_no_other_id() -> None:
    headers, body = GITLAB.sent(GITLAB_PUSH)
    for name in ("webhook-id", "webhook-timestamp"):
        forged = {**headers, name: "1767225601"}
        found = GITLAB.read(forged, body, secrets=(KEY,), repository="example/fleet", branch="main")
        assert isinstance(found, DeliveryRefusal), name
    again = {**headers, "Idempotency-Key": "another"}
    first = GITLAB.received(GITLAB_PUSH)
    second = GITLAB.read(again, body, secrets=(KEY,), repository="example/fleet", branch="main")
    assert first == second


def test_a_branch_that_goes_back_and_forth_is_pushed_twice() -> None:
    cloud = MemoryCloud()
    answers = [
        accept(GITLAB.received(GITLAB_PUSH, identity=name), cloud.ports).status for name in ("a", "b", "a")
    ]
    assert answers == [202, 202, 200]


def test_a_repository_that_was_renamed_is_another_one_until_the_setting_names_it() -> None:
    found = GITLAB.received(GITLAB.changed("push", "repository", "example/renamed"))
    assert found == IgnoredDelivery("the project example/renamed is not example/fleet")
    assert isinstance(DEVOPS.received(DEVOPS.changed("push", "repository", "renamed")), IgnoredDelivery)
    fork = merge_request(source_project_id=99)
    assert isinstance(fork, PullChange)
    assert fork.head == COMMIT
