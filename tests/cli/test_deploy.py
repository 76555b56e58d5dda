"""``roadstead deploy``, twice, with a stand-in for the Azure CLI."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli.azure_deployment import (
    LONGEST_NAME,
    OF_TARGETS,
    ORDER,
    OWN,
    SCALING,
    WARM,
    Deployment,
    apps_among,
    deployment_name,
    errors_in,
)
from cli.errors import ExitCode
from tests.support.az_stand_in import SUBSCRIPTION
from tests.support.deployment_place import SECRETS, TARGET, Place
from tests.support.roadstead_command import roadstead
from tests.support.templates import EVERYTHING, EXISTING, GIVEN, MAIN, REQUIRED, outputs, resources

pytestmark = pytest.mark.lives


def test_a_deployment_registers_creates_publishes_and_says_what_is_next(place: Place) -> None:
    done = place.deploy()
    assert done.returncode == 0, done.stderr
    stored, apps = place.stored(), outputs(REQUIRED)["functionAppNames"]
    assert set(stored["providers"][SUBSCRIPTION]) == {*OWN, *OF_TARGETS}
    assert set(stored["providers"][TARGET]) == set(OF_TARGETS)
    assert set(stored["code"]) == set(apps)
    assert outputs(REQUIRED)["webhookUrl"] in done.stdout
    published = done.stdout.partition("Deployed.")[2]
    assert (
        "Have each app examine itself, once you can sign in:\n  roadstead doctor --azure one --url "
        in published
    )
    assert "push a commit, and watch it in the console, " in published
    assert "Warm instances" not in done.stdout


def test_a_deployment_says_what_warm_instances_are_billed_for(place: Place) -> None:
    place.printed = outputs(EVERYTHING)
    done = place.deploy()
    assert f"Warm instances are billed for {outputs(EVERYTHING)[WARM]:,} GB-s a month" in done.stdout


def test_before_a_deployment_warm_instances_have_their_price_too(place: Place) -> None:
    path = place.folder / "fleet.bicepparam"
    given = json.loads(path.read_text()) | {"alwaysReady": {"value": {"http": 1, "planner": 0, "worker": 1}}}
    path.write_text(json.dumps(given))
    done = place.deploy("--what-if")
    assert "Warm instances are billed for 10,512,000 GB-s a month, whatever they do" in done.stdout
    assert "by the meter Always Ready Baseline: $42 a month" in done.stdout
    assert "at the list price of East US. Other regions have other prices" in done.stdout


def test_the_command_counts_warm_instances_as_the_template_does() -> None:
    assert MAIN["variables"]["scaling"] == SCALING
    spread = {"alwaysReady": {"http": 1, "worker": 2}, "zoneRedundant": True}
    found = Deployment(Path(), SUBSCRIPTION, "westeurope", spread, Path())
    assert found.warm == (3 + 2 * (SCALING - 2)) * 2 * 2_628_000


def test_who_receives_gets_the_code_before_who_sends(place: Place) -> None:
    place.deploy()
    published = [command for command in place.commands() if command.startswith("functionapp deploy ")]
    names = apps_among(outputs(REQUIRED)["functionAppNames"])
    assert ORDER == ("deleter", "worker", "control")
    assert [re.findall(r"--name (\S+)", command) for command in published] == [[names[app]] for app in ORDER]


def test_each_fleet_of_a_subscription_has_a_deployment_of_its_own(place: Place) -> None:
    place.deploy()
    (created,) = [command for command in place.commands() if command.startswith("deployment sub create")]
    assert "--name roadstead-one " in created
    long = "a" * 62
    names = [deployment_name(f"{long}{end}", part) for end in "bc" for part in ("", "access")]
    assert len({*names}) == len(names)
    assert max(map(len, names)) == LONGEST_NAME


def test_a_step_is_printed_before_it_runs(place: Place) -> None:
    done = place.deploy()
    for command in place.commands():
        assert f"az {command.partition(' --')[0]}" in done.stdout
    assert done.stdout.index("provider register") < done.stdout.index("deployment sub create")


def test_a_second_run_changes_nothing(place: Place) -> None:
    place.deploy()
    before = place.stored()
    place.commands()
    assert place.deploy().returncode == 0
    assert place.stored() == before
    assert not any(command.startswith("provider register") for command in place.commands())


def test_a_second_run_leaves_the_secrets_that_it_has_no_value_for(place: Place) -> None:
    place.deploy()
    before = place.stored()
    place.give({"github-token": ""})
    assert place.deploy().returncode == 0
    assert place.stored() == before


def test_what_if_writes_nothing(place: Place) -> None:
    done = place.deploy("--what-if")
    assert done.returncode == 0, done.stderr
    assert place.commands() == []
    assert place.stored() is None
    assert "Nothing was changed" in done.stdout
    assert f"registered first in {TARGET}: {', '.join(sorted(OF_TARGETS))}.\n" in done.stdout


def test_no_secret_is_printed(place: Place) -> None:
    done = place.deploy()
    assert "x" * 30 not in done.stdout + done.stderr


def test_a_step_that_fails_says_what_azure_said_and_how_to_go_on(place: Place) -> None:
    place.give({})
    done = place.deploy()
    assert done.returncode == ExitCode.FAILED
    assert "SecretNotFound: github-token, github-webhook-secret" in done.stderr
    assert "run the same command again" in done.stderr
    assert "\N{REPLACEMENT CHARACTER}" not in done.stderr
    place.give(dict.fromkeys(SECRETS, "x" * 30))
    assert place.deploy().returncode == 0


@pytest.mark.parametrize("more", [(), ("--what-if",)])
def test_a_region_without_the_plan_of_the_apps_is_refused_before_anything_is_registered(
    place: Place, more: tuple[str, ...]
) -> None:
    done = place.deploy("--location", "mars", *more)
    assert (done.returncode, place.stored()) == (ExitCode.FAILED, None)
    assert "mars has no Flex Consumption, the plan of the apps; choose another --location" in done.stderr
    assert "What was done" not in done.stderr, "nothing was"
    assert place.deploy("--location", "West Europe", *more).returncode == ExitCode.OK


def test_a_value_for_a_secret_that_is_not_named_is_refused_before_anything_is_registered(
    place: Place,
) -> None:
    place.give({"github-tokn": "x" * 30})
    done = place.deploy()
    assert (done.returncode, place.stored()) == (ExitCode.FAILED, None)
    assert "secretValues has github-tokn, and secrets does not; name it in both" in done.stderr
    assert "x" * 30 not in done.stdout + done.stderr


def test_without_the_azure_cli_or_a_package_the_command_says_so(place: Place) -> None:
    arguments = ("deploy", "fleet.bicepparam", "--location", "westeurope")
    done = roadstead(*arguments, "--package", "code.zip", cwd=place.folder, PATH="/nowhere")
    assert (done.returncode, "(az) cannot be run" in done.stderr) == (ExitCode.FAILED, True)
    done = roadstead(*arguments, cwd=place.folder, **place.env)
    assert (done.returncode, "make package" in done.stderr) == (ExitCode.USAGE, True)


def test_the_providers_are_those_of_what_the_templates_create() -> None:
    """Resource Manager has Authorization and Resources in every subscription."""
    always = {"Microsoft.Authorization", "Microsoft.Resources"}
    for given in GIVEN:
        for found in resources(given):
            provider = found.type.split("/")[0]
            assert provider in {*OWN, *OF_TARGETS, *always}, found.type
    assert set(OWN) - {found.type.split("/")[0] for found in resources(EXISTING)} == {"Microsoft.App"}


def test_a_long_refusal_names_its_cause_and_what_to_do(place: Place) -> None:
    place.deploy()
    cause = {"code": "QuotaExceeded", "message": f"Current Limit: 0. {'More of the provider. ' * 60}"}
    wrapped = {"code": "DeploymentFailed", "message": "See the details. " * 60, "details": [cause]}
    place.state.write_text(json.dumps({**place.stored(), "refused": wrapped}))
    done = place.deploy()
    assert done.returncode == ExitCode.FAILED
    said = done.stderr.splitlines()[-1]
    assert said.startswith("roadstead: az deployment sub create failed: QuotaExceeded: Current Limit: 0.")
    assert said.endswith("What was done stays; run the same command again to go on.")
    assert len(said) < 700


@pytest.mark.parametrize("said", ["", "{", "az: no JSON", '{"error": 5}', '{"details": "x"}', "[]"])
def test_what_the_azure_cli_says_otherwise_is_shown_as_it_is(said: str) -> None:
    assert len(errors_in(said)) == 1
