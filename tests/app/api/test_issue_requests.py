"""A cluster by an issue: the form, who may, hostile texts, and one answer whatever comes twice."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cli import templates
from localcloud.github.wire.github_server import GitHubServer
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts import issue_requests
from shared.app.api.acts.issue_requests import FORGOTTEN, MARKER, find_missed, handle
from shared.app.intake.accept import accept
from shared.app.intake.github_webhook import read_delivery
from shared.app.intake.issue_form import HEADINGS, LONGEST, is_form, read_form
from shared.app.intake.webhook import Delivery, DeliveryRefusal, IgnoredDelivery, NewIssue
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.messages import IssueRequest
from shared.language.model.fleet_rules import SelfServiceRule
from tests.support.replaced_ports import Dies, around
from tests.support.rollbacks import open_pulls
from tests.support.self_service import fleet
from tests.support.webhook_deliveries import sign

RULE = (
    "{github: [Contributor, acme/approvers], classes: [small], environments: [development], "
    "locations: [eastus]}"
)
ANSWERS = {
    "name": "test-aks",
    "class": "small",
    "environment": "development",
    "lifetime": "8h",
    "location": "eastus",
    "reason": "a load test",
}


def text(**answers: str) -> str:
    """Return what GitHub makes of the answers to the form."""
    filled = {**ANSWERS, **answers}
    return "\n\n".join(f"### {HEADINGS[name]}\n\n{filled[name] or '_No response_'}" for name in HEADINGS)


def opened(cloud: MemoryCloud, body: str, login: str = "contributor", account: int = 4) -> int:
    """Open an issue as somebody, and let what follows end."""
    number = cloud.repository.pulls.issues.create("A cluster, please", body, login).number
    deliver(cloud, number, body, login, account)
    return number


def deliver(cloud: MemoryCloud, number: int, body: str, login: str = "contributor", account: int = 4) -> None:
    digest = hashlib.sha256(f"{number}{body}".encode()).hexdigest()
    accept(NewIssue("d", digest, number, login, account, body), cloud.ports)
    cloud.run()


def answer(cloud: MemoryCloud, number: int) -> str:
    """Return the one answer of an issue, which is closed."""
    issue = cloud.repository.pulls.issues.get(number)
    assert issue is not None
    assert (issue.state, len(issue.comments)) == ("closed", 1)
    assert issue.comments[0].startswith(MARKER)
    return issue.comments[0]


def test_an_issue_with_the_form_opens_the_pull_request_is_answered_and_closed() -> None:
    cloud = fleet(RULE)
    number = opened(cloud, text())
    (pull,) = open_pulls(cloud)
    assert "a load test" in pull.body
    assert f"/pull/{pull.number} adds the cluster `test-aks`" in answer(cloud, number)
    assert "Who merges it: a person" in answer(cloud, number)
    manifest = cloud.repository.files(cloud.repository.head(pull.head))["clusters/test-aks/cluster.yaml"]
    assert b'{requested-by: "github.contributor", requested-by-id: "github-4"}' in manifest
    (act,) = [act for act in cloud.state.acts(10, None) if act.action == "request"]
    assert (act.by, act.client, act.result) == ("github.contributor", f"issue {number}", "accepted")


def test_a_member_of_a_team_that_the_rule_names_may_ask() -> None:
    cloud = fleet(RULE)
    assert "adds the cluster" in answer(cloud, opened(cloud, text(), "reviewer", 3))


def test_a_team_that_is_gone_names_nobody_and_keeps_nobody_else_from_asking() -> None:
    cloud = fleet(RULE.replace("Contributor", "acme/gone"), RULE)
    issue = cloud.repository.pulls.issues.get(opened(cloud, text(), "mallory", 66))
    assert issue is not None
    assert (issue.state, issue.comments, open_pulls(cloud)) == ("open", (), [])
    assert "adds the cluster" in answer(cloud, opened(cloud, text(), "reviewer", 3))


def test_an_issue_of_somebody_whom_no_rule_names_is_left_as_it_is() -> None:
    cloud = fleet(RULE)
    number = opened(cloud, text(), "mallory", 66)
    issue = cloud.repository.pulls.issues.get(number)
    assert issue is not None
    assert (issue.state, issue.comments, open_pulls(cloud)) == ("open", (), [])


@pytest.mark.lives
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (text(name="../../fleet"), "Name of the cluster: must be"),
        (text(**{"class": "large"}), "it is for the classes small"),
        (text(environment="production"), "it is for the environments development"),
        (text(lifetime="never"), "Lifetime: must be"),
        (text(lifetime="300d"), "a cluster lasts 24h at most"),
        (text(location="westeurope"), "it is for the regions eastus"),
        (text(reason=""), "say why in reason"),
        (text(name="a\n\n### Class\n\nlarge"), "this is not what the form writes"),
        (text(reason="x" * LONGEST), "this is not what the form writes"),
        (f"### {HEADINGS['name']}\n\none", "this is not what the form writes"),
    ],
)
def test_what_is_wrong_is_answered_with_the_reason_and_asks_for_nothing(body: str, why: str) -> None:
    cloud = fleet(RULE)
    said = answer(cloud, opened(cloud, body))
    assert why in said.replace("\u200b", "").replace("\\", "")
    assert "open another one with the form" in said
    assert open_pulls(cloud) == []


def test_a_hostile_text_mentions_nobody_and_links_nowhere() -> None:
    cloud = fleet(RULE)
    said = answer(cloud, opened(cloud, text(name="@everyone [x](https://evil.example) <!-- -->")))
    assert ("@everyone" in said, "[x](" in said, said.count("<!--")) == (False, False, 1)


def test_headings_in_the_reason_are_a_part_of_the_reason() -> None:
    cloud = fleet(RULE)
    opened(cloud, text(reason="why\n\n### Class\n\nlarge"))
    (pull,) = open_pulls(cloud)
    manifest = cloud.repository.files(cloud.repository.head(pull.head))["clusters/test-aks/cluster.yaml"]
    assert b'class: "small"' in manifest


def test_a_delivery_that_comes_again_or_an_edit_answers_nothing_twice() -> None:
    cloud = fleet(RULE)
    number = opened(cloud, text())
    deliver(cloud, number, text())
    deliver(cloud, number, text(name="second-aks"))  # as with a forged or a replayed text
    assert len(open_pulls(cloud)) == 1
    answer(cloud, number)


def test_a_message_that_fails_at_any_call_is_repeated_until_there_is_one_answer() -> None:
    for method in ("comment", "comment_issue", "close_issue", "open_pull"):
        cloud = fleet(RULE)
        real, calls = getattr(cloud.ports.git_host, method), list[str]()

        def fails(*given: Any, real: Any = real, calls: list[str] = calls, **named: Any) -> Any:
            calls.append("call")
            if len(calls) == 1:
                raise Unavailable("the host is away")
            return real(*given, **named)

        around(cloud, "git_host", **{method: fails})
        number = opened(cloud, text())
        cloud.run(seconds=3600)
        assert "adds the cluster" in answer(cloud, number) or method == "open_pull", method
        assert len(calls) >= 1


def test_a_crash_after_the_answer_closes_the_issue_the_next_time() -> None:
    cloud = fleet(RULE)
    number = cloud.repository.pulls.issues.create("A cluster, please", text(), "contributor").number
    request = IssueRequest(number=number, login="contributor", account=4, body=text())
    ports = cloud.ports

    def dies(_: int) -> None:
        raise Dies

    around(cloud, "git_host", close_issue=dies)
    with pytest.raises(Dies):
        handle(request, cloud.ports)
    handle(request, ports)
    assert "adds the cluster" in answer(cloud, number)


def test_an_issue_that_was_deleted_is_let_go() -> None:
    cloud = fleet(RULE)
    number = cloud.repository.pulls.issues.create("A cluster, please", text(), "contributor").number
    cloud.repository.pulls.issues.delete(number)
    deliver(cloud, number, text())
    assert cloud.ports.state.fleet().commit


def missed(cloud: MemoryCloud, body: str = text(), login: str = "contributor") -> int:
    """Open an issue whose webhook is lost, and let the timer look."""
    number = cloud.repository.pulls.issues.create("A cluster, please", body, login).number
    find_missed(cloud.ports)
    cloud.run()
    return number


def test_an_issue_whose_webhook_was_lost_is_found_and_answered_once() -> None:
    cloud = fleet(RULE)
    number = missed(cloud)
    find_missed(cloud.ports)
    deliver(cloud, number, text())  # late
    assert "adds the cluster `test-aks`" in answer(cloud, number)
    assert len(open_pulls(cloud)) == 1


def test_an_issue_that_has_its_answer_and_is_opened_again_stays_open() -> None:
    cloud = fleet(RULE)
    issues, number = cloud.repository.pulls.issues, missed(cloud)
    assert "adds the cluster `test-aks`" in answer(cloud, number)
    issues.change(number, state="open", state_reason="reopened")
    find_missed(cloud.ports)
    cloud.run()
    issue = issues.get(number)
    assert issue is not None
    assert (issue.state, len(issue.comments)) == ("open", 1)


def test_a_found_issue_whose_text_was_edited_is_refused_and_asks_for_nothing() -> None:
    cloud = fleet(RULE)
    number = cloud.repository.pulls.issues.create(
        "A cluster, please", text(reason="mine"), "contributor"
    ).number
    cloud.repository.pulls.issues.edit(number, text())
    find_missed(cloud.ports)
    cloud.run()
    assert "it was edited before Roadstead read it" in answer(cloud, number)
    assert open_pulls(cloud) == []


@pytest.mark.parametrize(
    ("login", "body"),
    [("mallory", text()), ("contributor", "It does not work"), ("robot[bot]", text())],
)
def test_an_issue_of_somebody_else_or_without_the_form_is_left_as_it_is_by_the_timer_too(
    login: str, body: str
) -> None:
    cloud = fleet(RULE)
    issue = cloud.repository.pulls.issues.get(missed(cloud, body, login))
    assert issue is not None
    assert (issue.state, issue.comments, open_pulls(cloud)) == ("open", (), [])


def test_an_issue_of_long_ago_is_left_as_it_is() -> None:
    cloud = fleet(RULE)
    number = cloud.repository.pulls.issues.create("A cluster, please", text(), "contributor").number
    cloud.clock.advance(FORGOTTEN.total_seconds() + 60)
    find_missed(cloud.ports)
    cloud.run()
    issue = cloud.repository.pulls.issues.get(number)
    assert issue is not None
    assert (issue.state, issue.comments) == ("open", ())


def test_a_fleet_whose_rules_name_nobody_of_github_reads_no_issue() -> None:
    cloud = fleet(RULE.replace("github: [Contributor, acme/approvers], ", ""))
    around(cloud, "git_host", newest_issues=lambda: pytest.fail("it was read"))
    find_missed(cloud.ports)


def test_a_team_is_read_once_for_all_issues() -> None:
    cloud = fleet(RULE.replace("Contributor, ", ""))
    real, read = cloud.ports.git_host.team_members, list[str]()

    def members(team: str) -> Any:
        read.append(team)
        return real(team)

    for number in range(3):
        cloud.repository.pulls.issues.create("A cluster, please", text(), f"stranger-{number}")
    around(cloud, "git_host", team_members=members)
    find_missed(cloud.ports)
    assert read == ["acme/approvers"]


@given(st.text(max_size=300))
def test_any_text_is_read_or_is_of_another_form(body: str) -> None:
    read_form(body)
    is_form(body)


@given(
    st.fixed_dictionaries({name: st.from_regex(r"[a-z0-9 #_.-]{1,30}", fullmatch=True) for name in HEADINGS})
)
def test_the_answers_to_the_form_are_read_as_they_were_given(answers: dict[str, str]) -> None:
    found = read_form(text(**answers))
    assert found is not None
    assert found == {name: answer.strip() for name, answer in answers.items()}


def event(**changes: Any) -> bytes:
    user = {"login": "octocat", "id": 9, "type": "User"}
    issue = {"number": 3, "body": text(), "user": user}
    body = {"action": "opened", "issue": issue, "repository": {"full_name": "example/fleet"}}
    return json.dumps(body | changes).encode()


def read(body: bytes) -> Delivery:
    headers = {"X-Hub-Signature-256": sign(body), "X-GitHub-Event": "issues", "X-GitHub-Delivery": "d"}
    return read_delivery(headers, body, secrets=["new"], repository="example/fleet", branch="main")


def test_an_issue_that_a_person_opens_with_the_form_is_read_and_nothing_else() -> None:
    found = read(event())
    assert isinstance(found, NewIssue)
    assert (found.number, found.login, found.account, found.body) == (3, "octocat", 9, text())
    bot = {"number": 3, "body": text(), "user": {"login": "x[bot]", "id": 9, "type": "Bot"}}
    other = {"number": 3, "body": "It does not work", "user": {"login": "octocat", "id": 9, "type": "User"}}
    for changes in ({"action": "edited"}, {"action": "reopened"}, {"issue": bot}, {"issue": other}):
        assert isinstance(read(event(**changes)), IgnoredDelivery), changes
    assert isinstance(read(event(issue={})), DeliveryRefusal)


def test_the_local_github_delivers_the_issue_that_somebody_opens(tmp_path: Path) -> None:
    with GitHubServer(
        tmp_path, token="local", webhook_secret="new", webhook_url="http://127.0.0.1:9"
    ) as server:
        server.create_repository("example/fleet")
        body = {"repository": "example/fleet", "login": "contributor", "title": "A cluster", "body": text()}
        assert httpx.post(f"{server.url}/_local/issues", json=body).status_code == 201
        (delivery,) = server.hooks.deliveries()
        found = read_delivery(
            delivery.headers, delivery.body, secrets=["new"], repository="example/fleet", branch="main"
        )
        assert isinstance(found, NewIssue)
        assert (found.login, found.account, read_form(found.body)) == ("contributor", 4, ANSWERS)


def test_the_form_that_the_command_writes_asks_what_is_read() -> None:
    rule = SelfServiceRule.model_validate(yaml.safe_load(RULE))
    form = yaml.safe_load(templates.request_form([rule]))
    assert {entry["id"]: entry["attributes"]["label"] for entry in form["body"]} == HEADINGS
    options = {entry["id"]: entry["attributes"].get("options") for entry in form["body"]}
    assert (options["class"], options["environment"]) == (["small"], ["development"])
    assert issue_requests.OTHER_FORM
