"""Each app examines itself, and every fault of it is found, with a message and a remedy of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from localcloud.azure.wire.authorization import allows
from shared.app.api.acts.fleet import ask_apps
from shared.app.examination import APPS, SENDS, examine
from shared.azure.availability.permissions import RIGHTS
from shared.cluster.failures.errors import (
    Unreadable,
)
from shared.configuration.settings import App
from shared.ports import ApprovalRules, Ports
from tests.support.app_faults import (
    FAULTS,
    IDENTITIES,
    OF_ONE_APP,
    Fault,
    Induced,
    clock_is_off,
    delivered,
    examined,
    examined_as,
    exported,
    found,
    granted,
    queue_refuses,
    refusing,
    with_probes,
)
from tests.support.deployed_rights import actions, senders
from tests.support.pipeline_runs import ready
from tests.support.replaced_ports import Around

pytestmark = pytest.mark.lives


def test_nothing_is_wrong_with_apps_that_are_well() -> None:
    assert found(examined()) == []


def found_of(app: str, fault: Induced, said: str) -> set[tuple[str, str]]:
    """Return what is said of an app with a fault: of this app alone, and of this fault."""
    everything = found(examined({app: fault}))
    assert any(said in problem for _, _, problem in everything), (app, said, everything)
    for whose, _, problem in everything:
        assert app in (whose, *problem.split()) or f"{app}," in problem, (app, said, everything)
    return {(what, problem) for _, what, problem in everything}


@pytest.mark.lives
@pytest.mark.parametrize("app", APPS)
def test_each_of_at_least_thirty_faults_of_an_app_is_found_with_a_message_of_its_own(app: str) -> None:
    told = {text for fault, said in FAULTS.values() for text in found_of(app, fault, said)}
    assert len(FAULTS) >= 30
    assert len(told) >= 30


GOOD: Mapping[str, Fault] = {
    "a webhook that came again": delivered((3, 503), (3, 202), (1, 202)),
    "a webhook of the day before": delivered((30, 500)),
    "no webhook": delivered(),
    "more than is asked for": granted(contents="write"),
    "the exports of two days ago": exported("2020-01-01", "2999-01-01"),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_no_problem_is_no_finding(name: str) -> None:
    assert found(examined({"control": examined_as(GOOD[name])})) == []


def test_a_permission_is_missed_only_where_the_fleet_uses_it() -> None:
    with_teams = replace(ready("one").ports.config, approvals=ApprovalRules(teams=("acme/leads",)))

    def teams(ports: Ports) -> Ports:
        return granted(members="", issues="", contents="read")(replace(ports, config=with_teams))

    assert found(examined({"control": examined_as(granted(members="", issues="", contents="read"))})) == []
    problems = [problem for _, _, problem in found(examined({"control": examined_as(teams)}))]
    assert any("lacks Members: read" in problem for problem in problems)
    assert not any("Issues" in problem or "Contents" in problem for problem in problems)


@pytest.mark.parametrize(
    ("app", "fault", "said"),
    [(app, fault, said) for app, _, fault, said in OF_ONE_APP],
    ids=[f"{app}: {name}" for app, name, _, _ in OF_ONE_APP],
)
def test_a_fault_that_one_app_can_have_is_found(app: str, fault: Fault, said: str) -> None:
    assert found_of(app, examined_as(fault), said)


def test_what_an_app_needs_in_a_subscription_is_in_its_role() -> None:
    for app, needs in RIGHTS.items():
        assert [need for need in needs if not allows(actions(App(app)), need)] == []


def test_a_problem_that_lasts_keeps_its_time_and_one_that_has_ended_is_gone() -> None:
    cloud = examined({"worker": examined_as(queue_refuses("deletes"))})
    (first,) = cloud.state.examinations()[-1].findings
    cloud.clock.advance(600)
    examine("worker", queue_refuses("deletes")(with_probes(cloud.ports)))
    (row,) = [row for row in cloud.state.examinations() if row.app == "worker"]
    assert [finding.since for finding in row.findings] == [first.since]
    examine("worker", with_probes(cloud.ports))
    (row,) = [row for row in cloud.state.examinations() if row.app == "worker"]
    assert row.findings == ()


def test_each_app_answers_on_a_queue_of_its_own_also_with_a_wrong_clock_and_in_a_pause() -> None:
    cloud = ready("one")
    assert ask_apps("ann", cloud.ports).status == 202
    cloud.with_ports(clock_is_off(60))
    for _ in APPS:
        cloud.step()
    rows = {row.app: row for row in cloud.state.examinations()}
    assert rows.keys() == APPS.keys()
    assert all(row.findings[0].what == "clock" for row in rows.values())


def test_an_app_asks_the_queues_to_which_its_identity_may_send() -> None:
    deployed = {
        app: {queue for queue in ("plans", "previews", "jobs", "changes", "deletes") if app in senders(queue)}
        for app in APPS
    }
    assert {app: set(queues) for app, queues in SENDS.items()} == deployed


@pytest.mark.parametrize("app", APPS)
def test_an_app_examines_itself_though_the_record_of_the_fleet_is_of_a_newer_version(app: str) -> None:
    cloud = ready("one")
    state: Any = Around(cloud.state, fleet=refusing(Unreadable("FleetRecord has the form 2")))
    config = replace(cloud.ports.config, identities=IDENTITIES)
    ports = replace(cloud.ports, config=config, state=state)
    examine(app, ports)
    (found,) = cloud.state.examinations()
    assert found.app == app
