"""``roadstead setup subscription``: providers, roles and events of one more target subscription."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.azure_deployment import OF_TARGETS
from cli.errors import ExitCode
from tests.support.set_up_fleet import FLEET, Run, SetUpFleet, set_up_fleet
from tests.support.templates import EXAMPLE, INFRA, of_type

pytestmark = pytest.mark.lives

TARGET = "00000000-0000-0000-0000-000000000009"
GIVEN = {"fleet": FLEET, "targetSubscriptions": ["00000000-0000-0000-0000-000000000001"], "secrets": ["a"]}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SetUpFleet]:
    """A deployed fleet, next to whose parameter file the templates stand."""
    with set_up_fleet(tmp_path) as found:
        for template in INFRA.glob("*.bicep"):
            shutil.copy(template, tmp_path)
        yield found


def added(fleet: SetUpFleet, /, **more: object) -> Run:
    """Run the command with a parameter file, which the stand-in reads as JSON, to its end."""
    text = json.dumps({name: {"value": value} for name, value in {**GIVEN, **more}.items()})
    (fleet.folder / "fleet.bicepparam").write_text(text)
    run = fleet.run("setup", "subscription", TARGET, "fleet.bicepparam")
    run.end()
    return run


def test_the_apps_have_their_roles_and_azure_reports_to_the_queue_of_the_fleet(fleet: SetUpFleet) -> None:
    run = added(fleet, readActivityLog=True, tags={"team": "platform"})
    assert run.end() == 0, run.err
    azure = fleet.azure()
    assert set(azure["providers"][TARGET]) == set(OF_TARGETS)
    access, events = azure["access"][TARGET]["access"], azure["access"][TARGET]["events"]
    assert access["identities"] == {
        app: f"principal of id-roadstead-{FLEET}-{app}" for app in ("control", "worker", "deleter")
    }
    assert (access["readActivityLog"], access["federates"]) == (True, False)
    queues = {found.id for found in of_type("Microsoft.ServiceBus/namespaces/queues", EXAMPLE)}
    assert events["queueId"] in queues
    assert events["tags"] == {"team": "platform", "roadstead-fleet": FLEET}
    assert "Add it to targetSubscriptions in fleet.bicepparam" in run.out
    assert f"'{TARGET}'" in run.out


def test_a_second_run_changes_nothing_and_knows_that_the_parameter_is_there(fleet: SetUpFleet) -> None:
    added(fleet)
    before = fleet.azure()
    again = added(fleet, targetSubscriptions=[TARGET])
    assert again.end() == 0, again.err
    assert fleet.azure() == before
    assert "has 00000000-0000-0000-0000-000000000009 in targetSubscriptions" in again.out


def test_options_say_what_a_parameter_file_would(fleet: SetUpFleet) -> None:
    role = "00000000-0000-0000-0000-000000000005"
    given = {"readActivityLog": True, "federatedIdentities": [{}], "assignableRoles": [role]}
    added(fleet, tags={"team": "platform"}, **given)
    before = fleet.azure()
    options = ("--allow", "readActivityLog", "--allow", "federatedIdentities", "--assignable-role", role)
    run = fleet.run(
        *("setup", "subscription", TARGET, "--fleet", FLEET, "--infra", "."),
        *(*options, "--tag", "team=platform"),
    )
    assert run.end() == 0, run.err
    assert fleet.azure() == before
    assert "Add it to targetSubscriptions in the parameter file of the fleet" in run.out
    assert f"--name roadstead-{FLEET}-access" in fleet.log()


@pytest.mark.parametrize(
    "wrong",
    [[], ["fleet.bicepparam", "--fleet", FLEET], ["none.bicepparam"], ["--fleet", FLEET, "--tag", "team"]],
)
def test_either_the_file_or_the_name_of_the_fleet_is_given(fleet: SetUpFleet, wrong: list[str]) -> None:
    (fleet.folder / "fleet.bicepparam").write_text("{}")
    assert fleet.run("setup", "subscription", TARGET, *wrong).end() == ExitCode.USAGE
    assert fleet.azure()["access"] == {}


def test_without_events_nothing_reports(fleet: SetUpFleet) -> None:
    added(fleet, hearAzureEvents=False)
    assert set(fleet.azure()["access"][TARGET]) == {"access"}


def test_a_fleet_that_is_not_deployed_gets_no_role(fleet: SetUpFleet) -> None:
    run = added(fleet, fleet="nothing")
    assert run.end() == ExitCode.FAILED
    assert "there is no identity id-roadstead-nothing-control" in run.err
    assert fleet.azure()["access"] == {}
