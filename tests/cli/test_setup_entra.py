"""``roadstead setup entra``: the app registration, twice, with and without the rights of an administrator."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.errors import ExitCode
from cli.setup.entra import REDIRECT, remember_in_file
from shared.app.api.access import Role
from tests.support.set_up_fleet import FLEET, Run, SetUpFleet, set_up_fleet
from tests.support.templates import INFRA

pytestmark = pytest.mark.lives


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


AZD = """#!/bin/sh
echo "$@" >> azd.log
case "$1 $2" in
  "env new") mkdir -p .azure && echo '{}' > .azure/config.json ;;
  "env get-values") cat azd.json ;;
esac
"""


def with_azd(fleet: SetUpFleet, values: dict[str, str] | None = None) -> list[str]:
    """Register the sign-in where azd has an environment with these values, or none; return its commands."""
    (fleet.folder / "azure.yaml").touch()
    program = fleet.folder / "bin" / "azd"
    program.write_text(AZD)
    program.chmod(0o755)
    if values is not None:
        (fleet.folder / ".azure").mkdir(exist_ok=True)
        (fleet.folder / ".azure" / "config.json").write_text("{}")
        (fleet.folder / "azd.json").write_text(json.dumps(values))
    (fleet.folder / "azd.log").write_text("")
    run = entra(fleet)
    assert run.end() == 0, run.err
    return (fleet.folder / "azd.log").read_text().splitlines()


def test_azd_has_the_client_id_in_its_environment_which_is_created_where_there_is_none(
    fleet: SetUpFleet,
) -> None:
    given = with_azd(fleet)
    client = application(fleet)["appId"]
    answers = [f"env set ROADSTEAD_FLEET {FLEET}", f"env set ROADSTEAD_ENTRA_CLIENT_ID {client}"]
    assert given == [f"env new {FLEET} --no-prompt", *answers]
    assert with_azd(fleet, {"ROADSTEAD_FLEET": FLEET}) == ["env get-values --output json", *answers]
    assert with_azd(fleet, {}) == ["env get-values --output json", *answers]


def test_the_environment_of_another_fleet_stays_as_it_is(fleet: SetUpFleet) -> None:
    assert with_azd(fleet, {"ROADSTEAD_FLEET": "another"}) == ["env get-values --output json"]


def test_a_deployment_registers_the_sign_in_and_writes_it_into_the_parameter_file(fleet: SetUpFleet) -> None:
    for file in INFRA.glob("entra-*.json"):
        shutil.copy(file, fleet.folder)
    for _ in range(2):
        fleet.deploy(options=("--entra",))
        client = application(fleet)["appId"]
        text = (fleet.folder / "fleet.bicepparam").read_text()
        assert text.count(f"param entraClientId = '{client}'\n") == text.count("entraClientId") == 1
        (redirect,) = application(fleet)["web"]["redirectUris"]
        assert redirect.endswith(REDIRECT)


def test_the_client_id_of_the_example_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "fleet.bicepparam"
    shutil.copy(INFRA / "example.bicepparam", file)
    remember_in_file(file, "an-id")
    before = (INFRA / "example.bicepparam").read_text().splitlines()
    changed = [line for line in file.read_text().splitlines() if line not in before]
    assert changed == ["param entraClientId = 'an-id'"]


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
