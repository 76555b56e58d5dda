"""The apps of a fleet in the Bicep templates: each has an identity, a host, queues and secrets of its own."""

from __future__ import annotations

import re

from localcloud.memory import memory_cloud
from shared.configuration.settings import App
from shared.github_app import OF_APP
from tests.support.deployed_rights import receiver, senders
from tests.support.templates import (
    EXAMPLE,
    EXISTING,
    INFRA,
    REQUIRED,
    app_settings,
    assignments,
    of_type,
    role_definitions,
    settings_of,
)


def test_every_app_runs_its_functions_with_an_identity_and_a_host_of_its_own() -> None:
    """Whoever writes the storage of a host replaces the code of its app, and acts as its identity."""
    accounts, blob_owner = set(), "b7e6dc6d-f1e8-4753-8033-0f276bb0955b"
    for app in App:
        settings = settings_of(app)
        account = settings["AzureWebJobsStorage__accountName"]
        (site,) = [
            found
            for found in of_type("Microsoft.Web/sites")
            if f"'{app}Host-" in str(found.properties["functionAppConfig"])
        ]
        (identity,) = site.whole["identity"]["userAssignedIdentities"]
        assert identity.endswith(f"-{app}")
        assert f"-{app}'" in settings["AZURE_CLIENT_ID"]
        owners = {
            found.app
            for found in assignments()
            if (found.role, found.scope[-len(account) :]) == (blob_owner, account)
        }
        assert owners == {app}
        accounts.add(account)
    assert len(accounts) == len(App)


def test_an_app_reads_the_secrets_of_its_own_settings_and_no_others() -> None:
    """Key Vault Secrets User, at the single secret."""
    user, vault = "4633458b-17de-408a-b874-0445c86b69e6", of_type("Microsoft.KeyVault/vaults")[0]
    for app in App:
        used = set(re.findall(r"SecretName=([\w-]+)\)", " ".join(settings_of(app).values())))
        read = {
            found.scope.removeprefix(f"{vault.id}/secrets/")
            for found in assignments()
            if (found.app, found.role) == (app, user) and found.scope.startswith(vault.id)
        }
        assert read == used, app
    written = {found.name.rpartition("/")[2] for found in of_type("Microsoft.KeyVault/vaults/secrets")}
    assert written == set(re.findall(r"SecretName=([\w-]+)\)", str(app_settings())))


def test_the_app_with_the_page_sets_the_secrets_of_its_github_app_and_no_others() -> None:
    """With ``setUpInBrowser`` alone; without it, no app has the role, and the page is off."""
    role, definition = next(
        (name, found)
        for name, found in role_definitions().items()
        if found.properties["roleName"].startswith("Roadstead secret setter")
    )
    actions = {"dataActions": ["Microsoft.KeyVault/vaults/secrets/setSecret/action"]}
    assert definition.properties["permissions"] == [actions]
    setters = [found for found in assignments() if found.role == role]
    assert {found.app for found in setters} == {App.CONTROL}
    assert {found.scope.rpartition("/secrets/")[2] for found in setters} == set(OF_APP)
    assert "'kv-" in settings_of(App.CONTROL)["GITHUB_SETUP_VAULT"]
    assert not any("GITHUB_SETUP_VAULT" in settings_of(app) for app in (App.WORKER, App.DELETER))
    assert [found for found in assignments(EXAMPLE) if "/vaults/" in found.scope and found.role == role] == []
    assert settings_of(App.CONTROL, EXAMPLE)["GITHUB_SETUP_VAULT"] == ""


def test_the_apps_that_name_the_server_of_the_repository_have_the_same_one() -> None:
    """The control app links notifications to commits there, and the worker gives it the token of Flux."""
    assert {settings_of(app).get("FLUX_GIT_HOST") for app in (App.CONTROL, App.WORKER)} == {"github.com"}


def test_only_the_control_app_reads_the_addresses_of_notifications_and_the_keys_of_approvals() -> None:
    names = {"NOTIFY_OPS_SLACK": "notify-ops-slack", "APPROVAL_KEY_CHANGES": "approval-changes"}
    for setting, secret in names.items():
        assert settings_of(App.CONTROL)[setting].endswith(f";SecretName={secret})")
        assert not {setting} & {*settings_of(App.WORKER), *settings_of(App.DELETER)}


def test_the_page_on_infrastructure_has_the_rights_on_each_queue() -> None:
    page = (INFRA / "README.md").read_text()
    rows = dict(re.findall(r"^\| queue `(\w+)` \|(.*)\|$", page, re.MULTILINE))
    assert set(rows) == {*memory_cloud.QUEUES, memory_cloud.EVENTS}
    for queue, row in rows.items():
        found = dict(zip(App, (cell.strip() for cell in row.split("|")), strict=True))
        expected = {app: "Data Sender" if app in senders(queue) else "" for app in App}
        assert found == {**expected, receiver(queue): "Data Owner"}, queue


def test_the_second_in_which_a_fleet_looks_for_commits_follows_from_its_name() -> None:
    at = {given: settings_of(App.CONTROL, given)["PLAN_SCHEDULE"] for given in (EXAMPLE, REQUIRED, EXISTING)}
    assert at[REQUIRED] == at[EXISTING] != at[EXAMPLE], "two of these have the same name"
    assert all(re.fullmatch(r"([12]?\d|3[01]) \*/5 \* \* \* \*", schedule) for schedule in at.values())
