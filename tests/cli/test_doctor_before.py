"""What the doctor finds before a deployment, with a stand-in for the Azure CLI."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from cli.azure_deployment import OF_TARGETS, OWN
from cli.errors import ExitCode
from tests.support.az_stand_in import SUBSCRIPTION
from tests.support.deployment_place import REFUSED, TARGET, Place
from tests.support.roadstead_command import roadstead

pytestmark = pytest.mark.lives


def before(place: Place, *more: str) -> tuple[int, list[dict[str, str]]]:
    """Return the exit code and the findings of the doctor before a deployment."""
    options = ("--before", "fleet.bicepparam", "--location", "westeurope", "-o", "json", *more)
    done = roadstead("doctor", *options, cwd=place.folder, **place.env)
    return done.returncode, json.loads(done.stdout)["findings"] if done.stdout else []


def test_before_a_deployment_what_a_subscription_has_not_registered_is_one_finding(place: Place) -> None:
    code, found = before(place)
    assert code == ExitCode.FAILED
    wanted = {SUBSCRIPTION: sorted((*OWN, *OF_TARGETS)), TARGET: sorted(OF_TARGETS)}
    assert {finding["what"].rpartition(" ")[2]: finding["problem"] for finding in found} == {
        own: f"{', '.join(names)}: not registered there; roadstead deploy registers them"
        for own, names in wanted.items()
    }
    assert place.stored() is None


def test_the_command_of_the_finding_registers_them_all_and_the_next_doctor_finds_nothing(
    place: Place,
) -> None:
    for finding in before(place)[1]:
        command = finding["remedy"].strip("`")
        subprocess.run(["bash", "-c", command], env={**os.environ, **place.env}, check=True)
    assert before(place) == (ExitCode.OK, [])


def test_each_refusal_of_the_preflight_is_a_finding_with_what_mends_it(place: Place) -> None:
    place.deploy()
    place.state.write_text(json.dumps({**place.stored(), "refused": REFUSED}))
    code, found = before(place)
    assert code == ExitCode.FAILED
    by_code = {finding["what"].removeprefix("preflight "): finding for finding in found}
    assert by_code.keys() == {
        "RequestDisallowedByPolicy",
        "StorageAccountAlreadyTaken",
        "AuthorizationFailed",
        "SubscriptionIsOverQuotaForSku",
        "Odd",
    }
    assert "exemption" in by_code["RequestDisallowedByPolicy"]["remedy"]
    assert "resourceNames" in by_code["StorageAccountAlreadyTaken"]["remedy"]
    assert "Owner" in by_code["AuthorizationFailed"]["remedy"]
    assert by_code["SubscriptionIsOverQuotaForSku"]["problem"] == "Current Limit: 0"
    assert len({finding["remedy"] for finding in found}) == len(found)


def test_a_region_without_the_plan_of_the_apps_is_found(place: Place) -> None:
    place.deploy()
    code, (found,) = before(place, "--location", "mars")
    assert (code, found["what"]) == (ExitCode.FAILED, "region")
    assert "eastus, westeurope" in found["remedy"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--before", "none.bicepparam", "--location", "x"], "none.bicepparam is no file"),
        (["--before", "fleet.bicepparam"], "--before needs --location"),
    ],
)
def test_the_doctor_says_what_it_needs_before_a_deployment(
    place: Place, arguments: list[str], message: str
) -> None:
    done = roadstead("doctor", *arguments, cwd=place.folder, **place.env)
    assert (done.returncode, message in done.stderr) == (ExitCode.USAGE, True)
