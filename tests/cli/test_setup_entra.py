"""``roadstead setup entra``: the app registration, twice, with and without the rights of an administrator."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.errors import ExitCode
from cli.setup.entra import REDIRECT
from shared.app.api.access import Role
from tests.support.set_up_fleet import FLEET, Run, SetUpFleet, set_up_fleet
from tests.support.templates import INFRA

pytestmark = pytest.mark.lives(5)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SetUpFleet]:
    """A deployed fleet, and the files of the registration in the folder infra."""
    with set_up_fleet(tmp_path) as found:
        (tmp_path / "infra").mkdir()
        for file in INFRA.glob("entra-*.json"):
            shutil.copy(file, tmp_path / "infra")
        yield found


def entra(fleet: SetUpFleet, *options: str, name: str = FLEET) -> Run:
    """Run the command to its end."""
    run = fleet.run("setup", "entra", name, *options)
    run.end()
    return run


def application(fleet: SetUpFleet) -> Any:
    """Return the only application of the directory."""
    (found,) = fleet.azure()["directory"]["applications"]
    return found


def test_the_registration_has_what_the_files_say_and_the_address_of_the_app(fleet: SetUpFleet) -> None:
    run = entra(fleet)
    assert run.end() == 0, run.err
    found, wanted = application(fleet), json.loads((INFRA / "entra-app.json").read_text())
    clients = json.loads((INFRA / "entra-azure-cli.json").read_text())["api"]["preAuthorizedApplications"]
    assert found["displayName"] == f"Roadstead {FLEET}"
    assert found["appRoles"] == wanted["appRoles"]
    assert found["identifierUris"] == [f"api://{found['appId']}"]
    assert found["api"] == {**wanted["api"], "preAuthorizedApplications": clients}
    assert found["web"]["implicitGrantSettings"] == wanted["web"]["implicitGrantSettings"]
    (redirect,) = found["web"]["redirectUris"]
    assert redirect.startswith("https://")
    assert redirect.endswith(REDIRECT)
    assert [entry["appId"] for entry in fleet.azure()["directory"]["servicePrincipals"]] == [found["appId"]]
    assert f"param entraClientId = '{found['appId']}'" in run.out
    assert f"adminconsent?client_id={found['appId']}" in run.out


def test_a_second_run_changes_nothing_and_keeps_what_others_added(fleet: SetUpFleet) -> None:
    entra(fleet, "--give", "Admin=ada@example.com")
    state = fleet.azure()
    state["directory"]["applications"][0]["web"]["redirectUris"].append("https://another.example.com/back")
    fleet.state.write_text(json.dumps(state))
    assert entra(fleet, "--give", "Admin=ada@example.com").end() == 0
    assert fleet.azure() == state


def test_what_somebody_took_away_comes_back(fleet: SetUpFleet) -> None:
    entra(fleet)
    before = fleet.azure()["directory"]
    state = fleet.azure()
    app = state["directory"]["applications"][0]
    app["appRoles"].pop()
    app["api"]["preAuthorizedApplications"] = []
    app["web"]["implicitGrantSettings"] = {"enableIdTokenIssuance": False}
    app["identifierUris"] = []
    fleet.state.write_text(json.dumps(state))
    assert entra(fleet).end() == 0
    assert fleet.azure()["directory"] == before


def test_before_the_deployment_there_is_no_address_and_the_deployment_adds_it(fleet: SetUpFleet) -> None:
    state = fleet.azure()
    fleet.state.write_text(json.dumps({**state, "fleet": None}))
    run = entra(fleet)
    assert "Then deploy the fleet with it" in run.out
    assert "redirectUris" not in application(fleet)["web"]
    for _ in range(2):
        fleet.deploy(entraClientId=application(fleet)["appId"])
        (redirect,) = application(fleet)["web"]["redirectUris"]
        assert redirect.endswith(REDIRECT)


@pytest.mark.parametrize(
    ("denied", "request_"),
    [
        ("POST applications", "register the application Roadstead example (role Application Developer)"),
        ("PATCH applications", "change the application Roadstead example"),
        ("POST servicePrincipals", "az ad sp create --id 00000000-"),
        ("POST appRoleAssignedTo", "give ada@example.com the role Approver"),
    ],
)
def test_what_needs_an_administrator_is_a_request_and_the_command_goes_on_from_there(
    fleet: SetUpFleet, denied: str, request_: str
) -> None:
    fleet.denies = denied
    run = entra(fleet, "--give", "Approver=ada@example.com")
    assert run.end() == ExitCode.FAILED
    assert "An administrator of the directory has to do this" in run.out
    assert request_ in run.out
    fleet.denies = ""
    assert entra(fleet, "--give", "Approver=ada@example.com").end() == 0
    (assigned,) = fleet.azure()["directory"]["assigned"]
    roles = {role["id"]: role["value"] for role in application(fleet)["appRoles"]}
    assert (roles[assigned["appRoleId"]], assigned["principalId"]) == (
        Role.APPROVER,
        "object of ada@example.com",
    )


def test_wrong_words_are_refused_before_anything_is_done(fleet: SetUpFleet) -> None:
    assert entra(fleet, "--give", "Approver").end() == ExitCode.USAGE
    assert entra(fleet, name="it's").end() == ExitCode.USAGE
    run = entra(fleet, "--give", "Captain=ada@example.com")
    assert (run.end(), "there is no role Captain: it is one of Admin, Approver" in run.err) == (1, True)
    run = entra(fleet, "--infra", "elsewhere")
    assert (run.end(), "give the folder infra with --infra" in run.err) == (1, True)
