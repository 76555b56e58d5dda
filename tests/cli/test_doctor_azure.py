"""``roadstead doctor --azure``: functions, queues and alerts of a fleet, with the az stand-in."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.azure_deployment import Az
from cli.setup.deployed_checks import CHANGEABLE, FIXED, NAMES, azure_obstacles
from localcloud.memory.memory_cloud import MemoryCloud
from shared.configuration.settings import App
from tests.support.az_stand_in import SUBSCRIPTION
from tests.support.pipeline_runs import ready
from tests.support.roadstead_command import roadstead
from tests.support.set_up_fleet import FLEET, QUEUES, SetUpFleet, app_name, set_up_fleet
from tests.support.templates import EXAMPLE, of_type

pytestmark = pytest.mark.lives

RULES = [found.name for found in of_type("Microsoft.Insights/scheduledQueryRules", EXAMPLE)]
DUTY = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/alerts/providers/Microsoft.Insights/actionGroups/duty"
WELL = {"enabled": True, "actions": {"actionGroups": [DUTY]}}
TOLD = {"enabled": True, "emailReceivers": [{"name": "duty", "status": "Enabled"}], "smsReceivers": []}


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready("one")


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SetUpFleet]:
    """A deployed fleet, in whose environment the Azure CLI is the stand-in."""
    with set_up_fleet(tmp_path) as found:
        for name, value in found.env.items():
            monkeypatch.setenv(name, value)
        yield found


def found(
    fleet: SetUpFleet,
    *,
    rules: Mapping[str, Any] | None = None,
    duty: Mapping[str, Any] | None = TOLD,
    known: Mapping[str, Collection[str]] | None = None,
    **azure: Any,
) -> list[tuple[str, str]]:
    """Return what is found where some rules, the action group, or something else in Azure is otherwise."""
    groups = {} if duty is None else {DUTY: duty}
    monitor = {"rules": {**dict.fromkeys(RULES, WELL), **(rules or {})}, "groups": groups}
    fleet.state.write_text(json.dumps({**fleet.azure(), "monitor": monitor, **azure}))
    obstacles = list(azure_obstacles(Az(lambda _: None), FLEET, SUBSCRIPTION, known or {}))
    assert all(obstacle.remedy for obstacle in obstacles)
    return [(obstacle.what, obstacle.problem) for obstacle in obstacles]


def test_a_fleet_that_is_well_in_azure_has_no_finding(fleet: SetUpFleet) -> None:
    assert RULES
    assert found(fleet, known={"worker": ["ready"]}) == []


WORKER = app_name(App.WORKER)


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ({}, "Azure has indexed none"),
        ({"worker": {}, "dead_jobs": {}}, "Azure has indexed 2 of 4, without changer, dead_changes"),
        (
            {"worker": {"isDisabled": True}, "changer": {}, "dead_jobs": {}, "dead_changes": {}},
            "disabled: worker",
        ),
        ("AuthorizationFailed: you may not", "not known: az rest --method GET failed: AuthorizationFailed"),
    ],
)
def test_functions_that_azure_has_not_indexed_are_found(fleet: SetUpFleet, functions: Any, said: str) -> None:
    known = {"worker": ["worker", "changer", "dead_jobs", "dead_changes"]}
    ((what, problem),) = found(fleet, known=known, functions={WORKER: functions})
    assert (what, said in problem) == (f"functions of {WORKER}", True)


def test_the_queues_are_compared_with_what_the_template_creates() -> None:
    assert set(NAMES) == set(QUEUES)
    for name, properties in QUEUES.items():
        wanted = {**FIXED, **CHANGEABLE, "requiresSession": name != "events"}
        assert {key: properties[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    ("name", "otherwise"),
    [(key, 1 if key == "maxDeliveryCount" else "PT5S") for key in CHANGEABLE] + [(key, 7) for key in FIXED],
)
def test_each_property_of_a_queue_that_is_otherwise_is_found(
    fleet: SetUpFleet, name: str, otherwise: Any
) -> None:
    queues = {**QUEUES, "jobs": {**QUEUES["jobs"], name: otherwise}}
    assert found(fleet, queues=queues) == [
        ("queue jobs", f"{name} is {otherwise}, not {QUEUES['jobs'][name]}"),
    ]


def test_a_queue_that_is_not_there_and_queues_that_may_not_be_read_are_found(fleet: SetUpFleet) -> None:
    queues = {name: properties for name, properties in QUEUES.items() if name != "deletes"}
    ((what, problem),) = found(fleet, queues=queues)
    assert (what, problem.endswith("has no such queue")) == ("queue deletes", True)
    ((what, problem),) = found(fleet, queues="AuthorizationFailed: you may not")
    assert (what[:10], problem[:10]) == ("queues of ", "not known:")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"enabled": True, "actions": {"actionGroups": []}}, "no action group is called"),
        ({"enabled": True}, "no action group is called"),
    ],
)
def test_a_rule_that_calls_nobody_is_found(fleet: SetUpFleet, rule: Mapping[str, Any], said: str) -> None:
    ((what, problem),) = found(fleet, rules={RULES[0]: rule})
    assert (what, said in problem) == ("alerts", True)
    assert problem.startswith(RULES[0])


@pytest.mark.parametrize(
    ("duty", "said"),
    [
        ({"enabled": True, "emailReceivers": []}, "has no receiver"),
        ({**TOLD, "enabled": False}, "the action group is disabled"),
        ({"enabled": True, "emailReceivers": [{"status": "Disabled"}]}, "has unsubscribed"),
        (None, "cannot be read: az rest --method GET failed: AuthorizationFailed"),
    ],
)
def test_an_action_group_that_tells_nobody_is_found_once(
    fleet: SetUpFleet, duty: Mapping[str, Any] | None, said: str
) -> None:
    ((what, problem),) = found(fleet, duty=duty)
    assert (what, said in problem) == ("action group duty", True)


def test_the_command_adds_them_to_what_the_apps_found(fleet: SetUpFleet, url: str) -> None:
    found(fleet, duty={"enabled": True})
    options = ("--azure", FLEET, "--wait", "1s", "-o", "json")
    done = roadstead("doctor", *options, ROADSTEAD_URL=url, **dict[str, Any](fleet.env))
    findings = json.loads(done.stdout)["findings"]
    assert done.returncode == 1
    assert ("deployment", "action group duty") in {(found["app"], found["what"]) for found in findings}
