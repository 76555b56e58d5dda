"""The apps of a fleet in the Bicep templates: each has an identity, a host, queues and secrets of its own."""

from __future__ import annotations

import re
from typing import Any

import pytest

from localcloud.memory import memory_cloud
from shared.settings import App
from tests.support.deployed_rights import receiver, senders
from tests.support.templates import INFRA, TEMPLATES, app_settings_text, settings_of


def test_every_app_runs_its_functions_with_an_identity_and_a_host_of_its_own() -> None:
    """Whoever writes the storage of a host replaces the code of its app, and acts as its identity."""
    main = TEMPLATES["main.bicep"].of("module")
    names = set()
    for app in App:
        given = main[app].value["params"]
        assert (main[app].type, given["app"]) == ("function.bicep", app)
        assert given["identityName"] == f"{app}Identity.outputs.name"
        assert given["storageName"] == f"{app}Host.outputs.name"
        assert given["deploymentContainer"] == f"{app}Host.outputs.deploymentContainer"
        assert main[f"{app}Host"].value["params"]["principalId"] == f"{app}Identity.outputs.principalId"
        assert "ROADSTEAD_APP" in settings_of(app)
        names |= {main[f"{app}{each}"].value["params"]["name"] for each in ("Identity", "Host")}
    assert len(names) == 2 * len(App)
    assert re.search(r"ROADSTEAD_APP: app$", app_settings_text(), re.MULTILINE)


def test_an_app_reads_the_secrets_of_its_own_settings_and_no_others() -> None:
    vault = {
        name: declaration
        for name, declaration in TEMPLATES["vault.bicep"].of("resource").items()
        if name not in ("addresses", "addressReaders", "approvals", "approvalReaders")
    }
    secrets = {
        name: declaration.value["name"]
        for name, declaration in vault.items()
        if "/secrets@" in declaration.type
    }
    readers: dict[str, set[str]] = {
        secrets[declaration.value["scope"]]: _apps_of(declaration.loop)
        for declaration in vault.values()
        if declaration.type.startswith("Microsoft.Authorization/roleAssignments@")
    }
    assert set(readers) == set(secrets.values())
    for app in App:
        used = set(re.findall(r"\$\{secret\}([\w-]+)\)", " ".join(settings_of(app).values())))
        assert used == {secret for secret, apps in readers.items() if app in apps}, app


def test_the_apps_that_name_the_server_of_the_repository_have_the_same_one() -> None:
    """The control app links notifications to commits there, and the worker gives it the token of Flux."""
    hosts = [settings_of(app).get("FLUX_GIT_HOST") for app in (App.CONTROL, App.WORKER)]
    assert hosts == ["fluxGitHost", "fluxGitHost"]


@pytest.mark.parametrize(
    ("secrets", "readers", "item", "param", "variable", "setting"),
    [
        *[("addresses", "addressReaders", "address", "notificationAddresses", "addressSettings", "NOTIFY_")],
        *[("approvals", "approvalReaders", "key", "approvalKeys", "approvalSettings", "APPROVAL_KEY_")],
    ],
)
def test_only_the_control_app_reads_the_addresses_of_notifications_and_the_keys_of_approvals(
    secrets: str, readers: str, item: str, param: str, variable: str, setting: str
) -> None:
    vault, main = TEMPLATES["vault.bicep"], TEMPLATES["main.bicep"]
    secret, reader = vault.of("resource")[secrets], vault.of("resource")[readers]
    assert secret.value["properties"]["value"] == f"{item}.value"
    assert reader.value["properties"]["principalId"] == "controlPrincipalId"
    assert reader.value["scope"] == f"{secrets}[number]"
    assert secret.loop == reader.loop == f"items({param})"
    for template in (vault, main):
        assert "@secure()" in template.of("param")[param].decorators
    settings = main.of("var")[variable].value
    assert f"${{secret}}{secret.value['name']})" in settings
    assert f"'{setting}${{{item}.key}}'" in settings
    users = {
        name
        for name, module in main.of("module").items()
        if variable in str(module.value["params"].get("settings"))
    }
    assert users == {App.CONTROL}


def test_the_page_on_infrastructure_has_the_rights_on_each_queue() -> None:
    page = (INFRA / "README.md").read_text()
    rows = dict(re.findall(r"^\| queue `(\w+)` \|(.*)\|$", page, re.MULTILINE))
    assert set(rows) == {*memory_cloud.QUEUES, memory_cloud.EVENTS}
    for queue, row in rows.items():
        found = dict(zip(App, (cell.strip() for cell in row.split("|")), strict=True))
        expected = {app: "Data Sender" if app in senders(queue) else "" for app in App}
        assert found == {**expected, receiver(queue): "Data Owner"}, queue


def _apps_of(principals: Any) -> set[str]:
    if principals == "everyApp":
        principals = TEMPLATES["vault.bicep"].of("var")["everyApp"].value
    return {str(principal).removesuffix("PrincipalId") for principal in principals}
