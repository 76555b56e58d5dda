"""The hooks of azd, with a stand-in for the Azure CLI."""

from __future__ import annotations

import json

import pytest

from cli.azure_deployment import OF_TARGETS, OWN
from tests.support.az_stand_in import SUBSCRIPTION
from tests.support.deployment_place import REFUSED, TARGET, Place

pytestmark = pytest.mark.lives

OF_AZD = {"AZURE_SUBSCRIPTION_ID": SUBSCRIPTION, "AZURE_ENV_NAME": "mine", "AZURE_LOCATION": "westeurope"}


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


def test_the_hook_before_a_removal_stops_it_and_says_what_stays(place: Place) -> None:
    done = place.hook("stay", resourceGroupName="roadstead-one")
    assert done.returncode == 1
    assert "az group delete --name roadstead-one" in done.stderr
    assert "The clusters" in done.stderr
    assert place.stored() is None
