"""What stays through an update, a lost zone and a mistaken delete, and what is billed for that."""

from __future__ import annotations

from typing import Any

import azure.functions as func
import pytest

from handlers.apps import Functions
from handlers.sign_in import SignIn
from localcloud.memory.memory_cloud import MemoryCloud
from shared.configuration.settings import App
from tests.support.templates import EVERYTHING, GIVEN, REQUIRED, of_type, outputs

MONTH = 2_628_000
"""The seconds of a twelfth of a year."""


def scale_groups() -> dict[App, set[str]]:
    """Return what scales by itself in each app: its functions with HTTP together, and every other one."""
    found: dict[App, set[str]] = {}
    for app in App:
        functions = func.FunctionApp()
        ports = MemoryCloud().ports
        given = Functions(ports, SignIn(), webhook_secrets=("new",), form_secrets=("s",), approval_keys={})
        for part in given.app(app):
            functions.register_functions(part)
        documents: list[Any] = functions.get_functions()
        found[app] = {
            "http"
            if document.get_trigger().get_dict_repr()["type"] == "httpTrigger"
            else f"function:{document.get_function_name()}"
            for document in documents
        }
    return found


def warm(given: str) -> dict[App, dict[str, int]]:
    """Return the warm instances of each app with a parameter file, by their group."""
    found = {}
    for site in of_type("Microsoft.Web/sites", given):
        app = next((app for app in App if site.name.endswith(f"-{app}")), App.CONTROL)
        ready = site.properties["functionAppConfig"]["scaleAndConcurrency"]["alwaysReady"]
        found[app] = {group["name"]: group["instanceCount"] for group in ready}
    return found


def test_every_warm_group_is_one_that_scales_by_itself_in_its_app() -> None:
    groups = scale_groups()
    chosen = warm(EVERYTHING)
    assert all(set(chosen[app]) <= groups[app] for app in App)
    assert {app for app in App if chosen[app]} == set(App)
    assert warm(REQUIRED) == {app: {} for app in App}


def test_the_deployment_says_what_is_billed_for_warm_instances() -> None:
    """Source of the two of each group: learn.microsoft.com/azure/reliability/reliability-functions."""
    chosen = warm(EVERYTHING)
    assert of_type("Microsoft.Web/serverfarms", EVERYTHING)[0].properties["zoneRedundant"] is True
    instances = sum(
        max(2, chosen[app].get(group, 0)) for app, found in scale_groups().items() for group in found
    )
    assert outputs(EVERYTHING)["alwaysReadyGigabyteSeconds"] == instances * 2 * MONTH
    assert outputs(REQUIRED)["alwaysReadyGigabyteSeconds"] == 0


@pytest.mark.parametrize("given", GIVEN)
def test_an_update_lets_what_runs_end(given: str) -> None:
    for site in of_type("Microsoft.Web/sites", given):
        assert site.properties["functionAppConfig"]["siteUpdateStrategy"] == {"type": "RollingUpdate"}


@pytest.mark.parametrize("given", GIVEN)
def test_storage_outlasts_a_zone_and_shows_nothing_to_the_public(given: str) -> None:
    for account in of_type("Microsoft.Storage/storageAccounts", given):
        assert account.whole["sku"]["name"].endswith("ZRS")
        assert account.properties["allowBlobPublicAccess"] is False
        assert account.properties["allowSharedKeyAccess"] is False
        assert account.properties["minimumTlsVersion"] == "TLS1_2"
    for site in of_type("Microsoft.Web/sites", given):
        found = site.properties["siteConfig"]
        assert (found["minTlsVersion"], found["scmMinTlsVersion"], found["ftpsState"]) == (
            "1.2",
            "1.2",
            "Disabled",
        )


@pytest.mark.parametrize("given", GIVEN)
def test_the_vault_and_the_tables_outlast_a_mistaken_delete(given: str) -> None:
    (vault,) = of_type("Microsoft.KeyVault/vaults", given)
    assert vault.properties["enableSoftDelete"] is vault.properties["enablePurgeProtection"] is True
    assert vault.properties["softDeleteRetentionInDays"] == 90
    (table, *_) = of_type("Microsoft.Storage/storageAccounts/tableServices/tables", given)
    account = table.id.partition("/tableServices/")[0]
    locks = of_type("Microsoft.Authorization/locks", given)
    assert {lock.properties["level"] for lock in locks} == {"CanNotDelete"}
    kept = {lock.id.partition("/providers/Microsoft.Authorization/")[0] for lock in locks}
    assert kept == {vault.id, account}


@pytest.mark.parametrize("given", GIVEN)
def test_who_used_secrets_and_changed_queues_is_logged_and_logs_have_a_cap(given: str) -> None:
    logged = {
        setting.id.rpartition("/providers/Microsoft.Insights/")[0]: [
            log["category"] for log in setting.properties["logs"]
        ]
        for setting in of_type("Microsoft.Insights/diagnosticSettings", given)
    }
    (vault,), (bus,) = (
        of_type(kind, given) for kind in ("Microsoft.KeyVault/vaults", "Microsoft.ServiceBus/namespaces")
    )
    assert logged == {vault.id: ["AuditEvent"], bus.id: ["OperationalLogs"]}
    (workspace,) = of_type("Microsoft.OperationalInsights/workspaces", given)
    assert 0 < workspace.properties["workspaceCapping"]["dailyQuotaGb"] <= 5
