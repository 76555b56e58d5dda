"""``roadstead doctor --alerts``: whether the alerts of a fleet would reach somebody, with the az stand-in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.azure_deployment import Az
from cli.setup.alerts import alert_obstacles
from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.az_stand_in import SUBSCRIPTION
from tests.support.pipeline_runs import ready
from tests.support.roadstead_command import roadstead
from tests.support.set_up_fleet import FLEET, SetUpFleet, set_up_fleet
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
    fleet: SetUpFleet, *, rules: Mapping[str, Any] | None = None, duty: Mapping[str, Any] | None = TOLD
) -> list[tuple[str, str]]:
    """Return what is found where some rules, or the action group, are otherwise."""
    groups = {} if duty is None else {DUTY: duty}
    monitor = {"rules": {**dict.fromkeys(RULES, WELL), **(rules or {})}, "groups": groups}
    fleet.state.write_text(json.dumps({**fleet.azure(), "monitor": monitor}))
    obstacles = list(alert_obstacles(Az(lambda _: None), FLEET, SUBSCRIPTION))
    assert all(obstacle.remedy for obstacle in obstacles)
    return [(obstacle.what, obstacle.problem) for obstacle in obstacles]


def test_alerts_that_reach_somebody_are_no_finding(fleet: SetUpFleet) -> None:
    assert RULES
    assert found(fleet) == []


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"enabled": True, "actions": {"actionGroups": []}}, "calls no action group"),
        ({"enabled": True}, "calls no action group"),
    ],
)
def test_a_rule_that_calls_nobody_is_found(fleet: SetUpFleet, rule: Mapping[str, Any], said: str) -> None:
    ((what, problem),) = found(fleet, rules={RULES[0]: rule})
    assert (what, said in problem) == (f"alert {RULES[0]}", True)


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
    options = ("--alerts", FLEET, "--wait", "1s", "-o", "json")
    done = roadstead("doctor", *options, ROADSTEAD_URL=url, **dict[str, Any](fleet.env))
    findings = json.loads(done.stdout)["findings"]
    assert done.returncode == 1
    assert ("deployment", "action group duty") in {(found["app"], found["what"]) for found in findings}
