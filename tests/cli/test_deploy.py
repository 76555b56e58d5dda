"""``roadstead deploy`` and the hooks of azd, twice, with a stand-in for the Azure CLI."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

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
from tests.support import az_stand_in
from tests.support.az_stand_in import SUBSCRIPTION
from tests.support.roadstead_command import roadstead
from tests.support.templates import EVERYTHING, EXISTING, GIVEN, MAIN, REQUIRED, outputs, resources

pytestmark = pytest.mark.lives

ROOT = Path(__file__).parent.parent.parent
TARGET = "00000000-0000-0000-0000-000000000003"
SECRETS = ["github-token", "github-webhook-secret"]


class Place:
    """A folder with a parameter file, a package, and the stand-in as ``az`` on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state, self.printed = folder, folder / "state.json", outputs(REQUIRED)
        program = folder / "bin" / "az"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {az_stand_in.__file__} "$@"\n')
        program.chmod(0o755)
        (folder / "code.zip").write_bytes(b"code")
        self.give(dict.fromkeys(SECRETS, "x" * 30))

    @property
    def env(self) -> dict[str, str]:
        """Return the environment in which ``az`` is the stand-in."""
        printed = {name: {"value": value} for name, value in self.printed.items()}
        return {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "AZ_STATE": str(self.state),
            "AZ_OUTPUTS": json.dumps(printed),
        }

    def give(self, values: dict[str, str]) -> None:
        """Write the parameter file; the stand-in reads it as JSON."""
        given = {
            "fleet": "one",
            "secrets": SECRETS,
            "secretValues": values,
            "targetSubscriptions": [SUBSCRIPTION, TARGET],
        }
        text = json.dumps({name: {"value": value} for name, value in given.items()})
        (self.folder / "fleet.bicepparam").write_text(text)

    def deploy(self, *more: str) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        arguments = ("deploy", "fleet.bicepparam", "--location", "westeurope", "--package", "code.zip", *more)
        return roadstead(*arguments, cwd=self.folder, **self.env)

    def hook(self, name: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a hook of azd."""
        command = [sys.executable, str(ROOT / "infra" / "hooks" / f"{name}.py")]
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **self.env, **more},
            capture_output=True,
            text=True,
            check=False,
        )

    def answer(self, **values: str) -> None:
        """Keep what azd was answered in an environment, as it does."""
        (self.folder / ".azure" / "mine").mkdir(parents=True)
        config = json.dumps({"infra": {"parameters": values}})
        (self.folder / ".azure" / "mine" / "config.json").write_text(config)

    def commands(self) -> list[str]:
        """Return the commands since the last time that wrote to Azure, or would."""
        log = Path(f"{self.state}.log")
        found = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        writing = ("provider register", "deployment sub create", "functionapp deploy ")
        return [command for command in found if command.startswith(writing)]

    def stored(self) -> Any:
        """Return what the subscription has."""
        return json.loads(self.state.read_text()) if self.state.exists() else None


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a place in which nothing is deployed."""
    return Place(tmp_path)


def test_a_deployment_registers_creates_publishes_and_says_what_is_next(place: Place) -> None:
    done = place.deploy()
    assert done.returncode == 0, done.stderr
    stored, apps = place.stored(), outputs(REQUIRED)["functionAppNames"]
    assert set(stored["providers"][SUBSCRIPTION]) == {*OWN, *OF_TARGETS}
    assert set(stored["providers"][TARGET]) == set(OF_TARGETS)
    assert set(stored["code"]) == set(apps)
    assert outputs(REQUIRED)["webhookUrl"] in done.stdout
    assert "push a commit, and watch it in the console, " in done.stdout
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


# The hooks of azd


def test_the_hook_before_provisioning_registers_once(place: Place) -> None:
    environment = {"AZURE_SUBSCRIPTION_ID": SUBSCRIPTION, "ROADSTEAD_TARGETS": json.dumps([TARGET])}
    assert place.hook("prepare", **environment).returncode == 0
    before = place.stored()
    assert (set(before["providers"][SUBSCRIPTION]), set(before["providers"][TARGET])) == (
        set(OWN),
        set(OF_TARGETS),
    )
    place.commands()
    assert place.hook("prepare", **environment).returncode == 0
    assert (place.stored(), place.commands()) == (before, [])


OF_AZD = {"AZURE_SUBSCRIPTION_ID": SUBSCRIPTION, "AZURE_ENV_NAME": "mine", "AZURE_LOCATION": "westeurope"}


def test_the_hook_before_provisioning_checks_the_region_and_has_azure_validate_what_azd_knows(
    place: Place,
) -> None:
    done = place.hook("prepare", **OF_AZD)
    assert (done.returncode, "azd asks for fleet, githubRepository" in done.stdout) == (0, True), done.stderr
    assert "deployment sub validate" not in done.stdout
    place.answer(fleet="one", githubRepository="example/fleet")
    done = place.hook("prepare", **OF_AZD)
    assert (done.returncode, "--name roadstead-one" in done.stdout) == (0, True), done.stderr
    place.state.write_text(json.dumps({**place.stored(), "refused": REFUSED}))
    done = place.hook("prepare", **OF_AZD)
    assert done.returncode == 1
    assert "preflight RequestDisallowedByPolicy: Resource 'kv' was disallowed" in done.stderr
    assert "ask its owner for an exemption" in done.stderr
    done = place.hook("prepare", **OF_AZD | {"AZURE_LOCATION": "mars"})
    assert (done.returncode, "mars has no Flex Consumption" in done.stderr) == (1, True)


def test_the_hook_before_provisioning_says_which_list_of_azd_is_none(place: Place) -> None:
    done = place.hook("prepare", **OF_AZD, ROADSTEAD_TARGETS=f"[{TARGET}]")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "ROADSTEAD_TARGETS" in done.stderr
    assert 'write it like ["00000000-0000-0000-0000-000000000000"]' in done.stderr


def test_the_hook_before_provisioning_waits_for_a_subscription(place: Place) -> None:
    done = place.hook("prepare", AZURE_SUBSCRIPTION_ID="")
    assert (done.returncode, place.stored(), "no subscription yet" in done.stdout) == (0, None, True)


def test_the_hook_after_publishing_runs_the_doctor_where_people_sign_in(place: Place) -> None:
    program = place.folder / "bin" / "roadstead"
    program.write_text('#!/bin/sh\necho "$@" "$ROADSTEAD_SCOPE"\nexit 1\n')
    program.chmod(0o755)
    place.answer(fleet="one")
    given = {**OF_AZD, "webhookUrl": "https://app.example.com/api/github"}
    done = place.hook("check", **given, ROADSTEAD_ENTRA_CLIENT_ID=TARGET)
    options = f"--azure one --wait 5m --subscription {SUBSCRIPTION} --url https://app.example.com"
    assert f"doctor {options} api://{TARGET}/.default\n" in done.stdout
    assert done.returncode == 1
    done = place.hook("check", **given)
    assert (done.returncode, f"  roadstead doctor {options}\n" in done.stdout) == (0, True)


def test_the_hook_after_everything_says_what_is_next(place: Place) -> None:
    place.answer(fleet="one")
    done = place.hook("finish", AZURE_ENV_NAME="mine", webhookUrl="https://app.example.com/api/github")
    assert "https://app.example.com/api/github" in done.stdout
    assert "roadstead setup github one\n" in done.stdout
    assert "roadstead status --watch --url https://app.example.com\n" in done.stdout


def test_the_hook_after_everything_lets_browsers_return(place: Place) -> None:
    place.deploy()
    entry = {"id": "one", "appId": TARGET, "web": {}, "api": {}}
    state = {**place.stored(), "directory": {"applications": [entry]}}
    place.state.write_text(json.dumps(state))
    given = {"webhookUrl": "https://app.example.com/api/github", "ROADSTEAD_ENTRA_CLIENT_ID": TARGET}
    for _ in range(2):
        done = place.hook("finish", **given)
        assert done.returncode == 0, done.stderr
        (app,) = place.stored()["directory"]["applications"]
        assert app["web"] == {"redirectUris": ["https://app.example.com/.auth/login/aad/callback"]}


def test_each_path_of_the_guide_has_five_commands_with_the_sign_in_of_entra() -> None:
    path = commands_of("Deploy")
    entra = "roadstead setup entra FLEET"
    assert path == ["az login", "azd auth login", entra, "azd up", "roadstead setup github FLEET"]
    alone = commands_of("Deploy with the Azure CLI alone")
    looks = [command for command in alone if "--before" in command or "--what-if" in command]
    rest = [command for command in alone if command not in looks]
    assert len(looks) == 2
    assert [command.partition(" infra/")[0] for command in rest] == [
        *("az login", "cp", "make package", "roadstead deploy", "roadstead setup github FLEET")
    ]


def test_the_guide_counts_what_it_asks_for() -> None:
    guide = (ROOT / "docs" / "how-to" / "deploy-to-azure.md").read_text()
    rows = dict(re.findall(r"^\| ([a-z, ]+) \| [^|]+ \| (.+) \|$", guide, re.MULTILINE))
    alone = commands_of("Deploy with the Azure CLI alone")
    looks = [command for command in alone if "--before" in command or "--what-if" in command]
    least = f"{len(commands_of('Deploy'))} | {len(alone) - len(looks)}, and {len(looks)} that look"
    assert rows["commands"] == least
    verify = [command for command in commands_of("Verify") if command.startswith("roadstead")]
    assert rows["commands to verify it"].endswith(f" | {len(verify)}")
    (minutes,) = {*rows["minutes, estimated"].split(" | ")}
    steps = re.findall(r"\| (\d+) min \|$", guide, re.MULTILINE)
    assert int(minutes) == sum(map(int, steps)) + 2, "and two in the browser"
    example = (ROOT / "infra" / "example.bicepparam").read_text()
    lines = re.findall(r"^param (\w+) ", example, re.MULTILINE)
    assert rows["answers, or lines of the parameter file"] == f"5 | {len(lines)}"


def commands_of(title: str) -> list[str]:
    """Return the commands of a section of the guide."""
    guide = (ROOT / "docs" / "how-to" / "deploy-to-azure.md").read_text()
    (section,) = re.findall(rf"^## {title}$(.*?)^## ", guide, re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


def test_the_hook_before_a_removal_stops_it_and_says_what_stays(place: Place) -> None:
    done = place.hook("stay", resourceGroupName="roadstead-one")
    assert done.returncode == 1
    assert "az group delete --name roadstead-one" in done.stderr
    assert "The clusters" in done.stderr
    assert place.stored() is None


def before(place: Place, *more: str) -> tuple[int, list[dict[str, str]]]:
    """Return the exit code and the findings of the doctor before a deployment."""
    options = ("--before", "fleet.bicepparam", "--location", "westeurope", "-o", "json", *more)
    done = roadstead("doctor", *options, cwd=place.folder, **place.env)
    return done.returncode, json.loads(done.stdout)["findings"] if done.stdout else []


def test_before_a_deployment_the_doctor_finds_what_is_not_registered_and_writes_nothing(place: Place) -> None:
    code, found = before(place)
    assert code == ExitCode.FAILED
    wanted = {
        *((SUBSCRIPTION, name) for name in (*OWN, *OF_TARGETS)),
        *((TARGET, name) for name in OF_TARGETS),
    }
    mended = {
        f"`az provider register --wait --namespace {name} --subscription {own}`" for own, name in wanted
    }
    assert {finding["remedy"] for finding in found} == mended
    assert place.stored() is None
    place.deploy()
    assert before(place) == (ExitCode.OK, [])


REFUSED = {
    "code": "InvalidTemplateDeployment",
    "message": "The template deployment 'roadstead' is not valid.",
    "details": [
        {"code": "RequestDisallowedByPolicy", "message": "Resource 'kv' was disallowed by policy 'tags'."},
        {"code": "StorageAccountAlreadyTaken", "message": "The storage account named st1 is already taken."},
        {"code": "AuthorizationFailed", "message": "The client may not write roleAssignments."},
        {
            "code": "PreflightValidationCheckFailed",
            "message": "Preflight validation failed.",
            "details": [{"code": "SubscriptionIsOverQuotaForSku", "message": "Current Limit: 0"}],
        },
        {"code": "Odd", "message": "Something else."},
    ],
}


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


@pytest.mark.parametrize("said", ["", "{", "az: no JSON", '{"error": 5}', '{"details": "x"}', "[]"])
def test_what_the_azure_cli_says_otherwise_is_shown_as_it_is(said: str) -> None:
    assert len(errors_in(said)) == 1
