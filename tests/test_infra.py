"""The Bicep templates: they parse, and they hold what the engine and the settings rely on."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import get_args

from azure.identity._constants import DEVELOPER_SIGN_ON_CLIENT_ID
from cronsim import CronSim

from handlers.routes import who_may_call
from localcloud.azure.world import event_grid
from localcloud.memory import memory_cloud
from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.runtime.parts import servicebus_part
from shared.app.api.access import Role
from shared.app.console.forms import SESSION
from shared.app.examination import ALERTS, alert_rule
from shared.cluster.pace import SMALL_CHANGE
from shared.configuration.settings import App, GitHostName, Settings
from shared.github_app import SECRETS as SET_UP
from shared.ports.state import TABLES
from tests.support.function_calls import functions
from tests.support.templates import (
    EVERYTHING,
    EXAMPLE,
    INFRA,
    MAIN,
    REQUIRED,
    app_settings,
    assignments,
    of_type,
    parameters,
    resources,
    settings_of,
    templates,
)

ROOT = Path(__file__).parent.parent

LOCAL_ONLY = {
    "AzureWebJobsStorage": "a connection string; the app uses AzureWebJobsStorage__accountName",
    "ServiceBus": "a connection string; the app uses ServiceBus__fullyQualifiedNamespace",
    "TABLES_CONNECTION_STRING": "a connection string; the app uses TABLES_ENDPOINT",
    "EXPORTS_CONNECTION_STRING": "a connection string; the app uses EXPORTS_URL",
    "FUNCTIONS_WORKER_RUNTIME": "not a setting on Flex Consumption: the plan's configuration names it",
    "IDENTITY_ENDPOINT": "Functions sets it",
    "IDENTITY_HEADER": "Functions sets it",
    "AZURE_RESOURCE_MANAGER_URL": "the default is Azure",
    "AKS_VULNERABILITY_URL": "the default is for Azure; moreSettings",
    "KUSTOMIZE": "the package of the app has its own",
    "REQUESTS_CA_BUNDLE": "Azure's certificates are publicly trusted",
    "AKS_API_VERSION": "the default is for Azure; moreSettings",
    "RESOURCES_API_VERSION": "the default is for Azure; moreSettings",
    "LEASE_SECONDS": "the default is for Azure; moreSettings",
    "POLL_SECONDS": "the default is for Azure; moreSettings",
    "LAG_SECONDS": "the default is for Azure; moreSettings",
    "CLOCK_SKEW_SECONDS": "the default is for Azure; moreSettings",
    "APPROVAL_BY_OTHERS": "the default is for Azure; moreSettings",
    "APPROVAL_TEAMS": "off unless set; moreSettings",
    "REACHES_PRIVATE_CLUSTERS": "off unless set; moreSettings",
    "KUBECONFIG_NETWORKS": "off unless set; moreSettings",
    "REGISTRIES": "off unless set; moreSettings",
    "ROLLOUT_CHECK_NETWORKS": "off unless set; moreSettings",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "for a collector; moreSettings",
    "OTEL_EXPORTER_OTLP_HEADERS": "for a collector; moreSettings",
    "ACTS_DAYS": "the default is for Azure; moreSettings",
    "UNHEALTHY_MINUTES": "the default is for Azure; moreSettings",
    "RETRY_LIMITS": "the defaults are for Azure; moreSettings",
    "NOTIFY_TEAMS_WEBHOOK_URL": "an address of notifications; secrets",
    "WEBSITE_AUTH_ENABLED": "Functions sets it",
}


def test_the_queues_are_what_the_engine_relies_on() -> None:
    queues = {
        found.name.rpartition("/")[2]: found for found in of_type("Microsoft.ServiceBus/namespaces/queues")
    }
    assert set(queues) - {memory_cloud.EVENTS} == set(memory_cloud.QUEUES) == set(servicebus_part.QUEUES)
    expected = {
        "lockDuration": "PT1M",
        "maxDeliveryCount": 10,
        "requiresDuplicateDetection": True,
        "enablePartitioning": False,  # one batch has messages of several sessions
        "duplicateDetectionHistoryTimeWindow": "PT10M",
        "deadLetteringOnMessageExpiration": True,
    }
    for name, queue in queues.items():
        assert expected.items() <= queue.properties.items()
        # Event Grid delivers to no queue with sessions.
        assert queue.properties["requiresSession"] is (name != memory_cloud.EVENTS)
    (namespace,) = of_type("Microsoft.ServiceBus/namespaces")
    assert namespace.whole["sku"]["name"] == "Standard"  # Basic has neither sessions nor duplicate detection


def test_the_events_are_filtered_at_the_source_within_the_limits_of_event_grid() -> None:
    """25 filters and 25 values (learn.microsoft.com/azure/event-grid/event-filtering)."""
    properties = of_type("Microsoft.EventGrid/systemTopics/eventSubscriptions")[0].properties
    begins, contains, _ = properties["filter"]["advancedFilters"]
    operations, reads = begins["values"], contains["values"]
    (own,) = [
        found["maxLength"]
        for _, template in templates()
        if "maxLength" in (found := template.get("parameters", {}).get("appIds", {}))
    ]
    assert len(operations) + len(reads) + own <= 25
    written = [
        *("Microsoft.ContainerService/managedClusters/write", "Microsoft.Resources/tags/write"),
        "Microsoft.ContainerService/managedClusters/agentPools/delete",
        "Microsoft.ContainerService/managedClusters/stop/action",
        "Microsoft.Authorization/locks/write",
        *event_grid.AROUND.values(),
    ]
    assert [name for name in written if not name.startswith(tuple(operations))] == []
    assert [name for name in written if any(read in name for read in reads)] == []
    listing = "Microsoft.ContainerService/managedClusters/listClusterAdminCredential/action"
    assert any(read in listing for read in reads)
    assert "destination" not in properties, "the identity of the topic delivers, and no key"
    assert properties["deliveryWithResourceIdentity"]["identity"] == {"type": "SystemAssigned"}


def test_the_tables_are_those_that_the_adapter_uses() -> None:
    declared = of_type("Microsoft.Storage/storageAccounts/tableServices/tables")
    assert {table.name.rpartition("/")[2] for table in declared} == set(TABLES)


def test_the_function_apps_run_the_newest_python_that_the_project_supports() -> None:
    """Functions supports 3.11 until October 2027."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    newest = sorted(classifiers)[-1].rpartition(" ")[2]
    apps = of_type("Microsoft.Web/sites")
    assert len(apps) == len(App)
    for app in apps:
        assert app.properties["functionAppConfig"]["runtime"] == {"name": "python", "version": newest}
        assert app.properties["httpsOnly"] is True
    for plan in of_type("Microsoft.Web/serverfarms"):
        assert plan.whole["sku"] == {"name": "FC1", "tier": "FlexConsumption"}


def test_every_local_setting_is_set_in_azure_or_is_local_only() -> None:
    local = json.loads((ROOT / "local.settings.example.json").read_text())["Values"]
    settings = app_settings()
    assert set(local) - set(settings) - set(LOCAL_ONLY) == set()
    assert set(settings) & set(LOCAL_ONLY) == set()


def test_every_setting_that_the_app_reads_is_set_in_azure_or_is_local_only() -> None:
    all_names = {name.lower() for name in app_settings() | LOCAL_ONLY} | {"website_hostname"}
    lacking = sorted(name.upper() for name in Settings.model_fields if name not in all_names)
    assert lacking == [], f"infra/main.bicep, or LOCAL_ONLY of tests/test_infra.py: {', '.join(lacking)}"


def test_each_git_host_of_the_app_can_be_deployed() -> None:
    assert MAIN["parameters"]["gitHost"]["allowedValues"] == sorted(get_args(GitHostName))


def test_the_page_on_deployment_asks_github_for_what_the_page_on_settings_names() -> None:
    guides = ("deploy-to-azure.md", "connect-github.md")
    deployment = "".join((ROOT / "docs" / "how-to" / name).read_text().lower() for name in guides)
    token = parameters()["secrets"]["metadata"]["description"].lower()
    page = (ROOT / "docs" / "settings.md").read_text().lower()
    for permission in ("contents: read", "commit statuses: write", "pull requests: write"):
        assert f"*{permission}*" in page
        assert deployment.count(permission) >= 2, "for the token, and for the App"
        assert permission.replace(":", "") in token
    assert "*checks: write*" in page
    assert "checks: write" in deployment
    for event, name in (("push", "*pushes*"), ("pull_request", "*pull requests*")):
        assert f"'events[]={event}'" in deployment
        assert name in page


def test_the_page_on_deployment_counts_the_functions_that_the_apps_have() -> None:
    page = " ".join((ROOT / "docs" / "how-to" / "deploy-to-azure.md").read_text().split())
    found = functions(MemoryCloud().ports)
    only = {"worker", "changer", "dead_jobs", "dead_changes", "deleter", "dead_deletes"}
    assert f"The first app has {len(found) - len(only)} functions, among them `github` and `planner`" in page
    assert "`worker`, `changer`, `dead_jobs` and `dead_changes`" in page
    assert "`deleter` and `dead_deletes`" in page
    assert {"github", "planner", *only} <= set(found)


def test_the_page_on_infrastructure_counts_the_runs_of_the_timers() -> None:
    day, runs = datetime(2026, 1, 1, tzinfo=UTC), 0
    settings = settings_of(App.CONTROL, REQUIRED)
    schedules = [value for name, value in settings.items() if name.endswith("_SCHEDULE")]
    assert len(schedules) == 5
    for timer in schedules:
        schedule = CronSim(timer, day)
        runs += sum(1 for _ in takewhile(lambda at: at <= day + timedelta(days=1), schedule))
    assert f"run {runs:,} times a day" in (INFRA / "README.md").read_text()


def test_no_command_on_azure_or_github_has_a_bracket_that_zsh_would_expand() -> None:
    pages = [ROOT / "infra" / "README.md", *(ROOT / "docs" / "how-to").glob("*.md")]
    blocks = [block for page in pages for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.S)]
    commands = [block for block in blocks if re.search(r"\b(az|gh|func) ", block)]
    assert len(commands) > 5
    unquoted = [re.sub(r"'[^']*'|\"[^\"]*\"|#.*", "", command) for command in commands]
    assert [command for command in unquoted if re.search(r"[\[\]?*]", command)] == []


def test_the_doctor_asks_for_the_alert_rules_that_the_templates_have() -> None:
    rules = [found.name for found in of_type("Microsoft.Insights/scheduledQueryRules")]
    fleet = rules[0].removeprefix("roadstead-").removesuffix(f"-{ALERTS[0]}")
    assert rules == [alert_rule(fleet, alert) for alert in ALERTS]


def test_the_identity_is_used_wherever_the_local_settings_hold_a_connection_string() -> None:
    identity = {"AZURE_CLIENT_ID", "TABLES_ENDPOINT", "EXPORTS_URL", "AzureWebJobsStorage__accountName"}
    for connection in ("AzureWebJobsStorage", "ServiceBus"):
        identity |= {f"{connection}__credential", f"{connection}__clientId"}
    assert identity | {"ServiceBus__fullyQualifiedNamespace"} <= set(app_settings())


def test_no_key_of_an_account_or_namespace_is_used_anywhere() -> None:
    for text in (json.dumps(MAIN), json.dumps([found.whole for found in resources()])):
        assert not re.search(r"\blist(Keys|Secrets|AccountSas|ServiceSas)?\(", text, re.I)
    accounts = of_type("Microsoft.Storage/storageAccounts")
    assert len(accounts) == len(App)
    assert [account.properties["allowSharedKeyAccess"] for account in accounts] == [False] * len(App)
    assert of_type("Microsoft.ServiceBus/namespaces")[0].properties["disableLocalAuth"] is True
    assert of_type("Microsoft.Insights/components")[0].properties["DisableLocalAuth"] is True


def test_every_secret_is_a_secure_parameter_and_reaches_the_app_only_through_the_vault() -> None:
    settings, reference = app_settings(), r"@Microsoft\.KeyVault\(VaultName=kv-\w+;SecretName=([\w-]+)\)"
    used = {name: found[1] for name, value in settings.items() if (found := re.fullmatch(reference, value))}
    named = {name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)}
    local = {name.lower() for name in LOCAL_ONLY} | {"applicationinsights_connection_string"}  # ids, no key
    assert named - local <= {name.lower() for name in used}
    written = {found.name.rpartition("/")[2] for found in of_type("Microsoft.KeyVault/vaults/secrets")}
    assert set(used.values()) == written
    assert len(written) >= 4
    for name, template in templates():
        for parameter, taken in template.get("parameters", {}).items():
            secret = re.search(
                r"token|password|privatekey|secretvalues|^values$|nobodyknows", parameter, re.I
            )
            assert bool(secret) == taken.get("type", "").startswith("secure"), (name, parameter)


def test_a_secret_without_a_value_stays_as_the_vault_has_it() -> None:
    """A second deployment never unsets what a set-up command wrote."""
    for given in (REQUIRED, EXAMPLE, EVERYTHING):
        conditions: dict[str, list[str]] = {}
        for secret in of_type("Microsoft.KeyVault/vaults/secrets", given):
            conditions.setdefault(secret.name.rpartition("/")[2], []).append(secret.whole["condition"])
        for name, (written, *first) in conditions.items():
            empty = rf"empty\(coalesce\(tryGet\(parameters\('\w+'\), '{name}'\), ''\)\)"
            assert re.fullmatch(rf"\[not\({empty}\)\]", written)
            assert len(first) == (name in SET_UP or name.startswith("git-webhook-"))
            assert all(re.fullmatch(rf"\[{empty}\]", condition) for condition in first)
    assert settings_of(App.WORKER, REQUIRED)["GITHUB_TOKEN"].endswith("SecretName=github-token)")
    assert "GITHUB_APP_PRIVATE_KEY" not in settings_of(App.WORKER, REQUIRED)


def test_a_first_value_is_written_only_where_there_is_none() -> None:
    """Bicep's onlyIfNotExists: Resource Manager reads the resource first."""
    vault = dict(templates())["vault"]["resources"]
    assert vault["first"]["@options"] == {"onlyIfNotExists": []}
    assert "@options" not in vault["written"]


def test_no_output_shows_a_secret() -> None:
    assert MAIN["outputs"]
    for name, template in templates():
        taken = template.get("parameters", {})
        secure = [key for key, value in taken.items() if value.get("type", "").startswith("secure")]
        for output, value in template.get("outputs", {}).items():
            names = set(re.findall(r"\w+", str(value)))
            assert not names & set(secure), (name, output)
            assert "ConnectionString" not in str(value), (name, output)


def test_the_scale_controller_may_read_how_long_the_queues_are() -> None:
    """Its fallback without that right sees no message behind the scheduled ones at the head of a queue."""
    owner = "090c5cfd-751d-490a-894a-3ce6f1109419"  # Azure Service Bus Data Owner
    owned = [found.scope.rpartition("/")[2] for found in assignments() if found.role == owner]
    assert sorted(owned) == sorted([*memory_cloud.QUEUES, memory_cloud.EVENTS])
    # The controller connects as the functions do.
    for app in App:
        assert {"ServiceBus__clientId", "ServiceBus__credential"} <= set(settings_of(app))


def test_an_instance_has_a_thread_for_whatever_it_may_run_at_once() -> None:
    """Flex Consumption runs the HTTP functions together, and every other function on instances of its own."""
    app = of_type("Microsoft.Web/sites")[0].properties
    http = app["functionAppConfig"]["scaleAndConcurrency"]["triggers"]["http"]["perInstanceConcurrency"]
    bus = json.loads((ROOT / "host.json").read_text())["extensions"]["serviceBus"]
    threads = int(app_settings()["PYTHON_THREADPOOL_THREAD_COUNT"])
    assert 1 < http <= threads
    assert max(bus["maxConcurrentSessions"], bus["maxConcurrentCalls"]) <= threads


def test_one_instance_has_a_session_for_every_cluster_that_is_in_a_small_change() -> None:
    bus = json.loads((ROOT / "host.json").read_text())["extensions"]["serviceBus"]
    assert bus["maxConcurrentSessions"] == SMALL_CHANGE


def test_the_sign_in_lets_only_the_webhook_and_the_probe_pass_without_an_identity() -> None:
    everything, example = (
        next(found for found in of_type("Microsoft.Web/sites/config", given) if "authsettings" in found.name)
        for given in (EVERYTHING, EXAMPLE)
    )
    assert [found for found in resources(REQUIRED) if "authsettings" in found.name] == []
    properties = example.properties
    assert properties["platform"] == {"enabled": True}
    validation = properties["globalValidation"]
    assert validation["requireAuthentication"] is True
    assert validation["unauthenticatedClientAction"] == "RedirectToLoginPage"
    others = everything.properties["globalValidation"]
    assert others["requireAuthentication"] is False, "keys, Flux and systems that approve sign in otherwise"
    assert others["unauthenticatedClientAction"] == "AllowAnonymous"
    found = {name: who_may_call(f.get_user_function()) for name, f in functions(MemoryCloud().ports).items()}
    open_to_all = {name for name, who in found.items() if who in ("signature", "anybody")}
    signed = {"github", "flux", "system_approval"}
    assert open_to_all == {*signed, "ready"}, "Flux and systems have many paths: others pass too then"
    assert validation["excludedPaths"] == ["/api/github", "/api/webhook", "/api/ready"]
    entra = properties["identityProviders"]["azureActiveDirectory"]
    client, tenant = (f"00000000-0000-0000-0000-00000000000{last}" for last in "2a")
    assert entra["validation"] == {"allowedAudiences": [client, f"api://{client}"]}
    assert entra["registration"]["openIdIssuer"].endswith(
        f"/v2.0', environment().authentication.loginEndpoint, '{tenant}')]"
    )
    login = properties["login"]
    assert login["tokenStore"] == {"enabled": False}
    hour = {"convention": "FixedTime", "timeToExpiration": f"0{SESSION}"}
    assert login["cookieExpiration"] == hour, "as that of a key"


def test_the_test_of_the_app_asks_what_anybody_may_and_its_alert_is_about_that_test() -> None:
    (found,), (raised,) = of_type("Microsoft.Insights/webtests"), of_type("Microsoft.Insights/metricAlerts")
    test = found.properties
    assert test["Request"]["RequestUrl"].startswith("[format('https://{0}/api/ready', ")
    assert test["ValidationRules"]["ExpectedHttpStatusCode"] == 200
    alert = raised.properties
    assert alert["criteria"]["webTestId"] == found.id
    assert alert["scopes"] == [found.id, of_type("Microsoft.Insights/components")[0].id]
    assert alert["criteria"]["failedLocationCount"] < len(test["Locations"])
    assert test["Frequency"] <= 15 * 60 == 60 * int(alert["windowSize"].strip("PTM"))


def test_the_app_registration_has_the_roles_of_the_code_for_people_and_for_apps() -> None:
    app = json.loads((INFRA / "entra-app.json").read_text())
    assert [role["value"] for role in app["appRoles"]] == [role.value for role in Role]
    assert len({role["id"] for role in app["appRoles"]}) == len(Role)
    assert all(role["allowedMemberTypes"] == ["User", "Application"] for role in app["appRoles"])
    assert app["signInAudience"] == "AzureADMyOrg"
    assert app["api"]["requestedAccessTokenVersion"] == 2, "the issuer of sign_in.bicep is that of version 2"
    (scope,) = app["api"]["oauth2PermissionScopes"]
    known = json.loads((INFRA / "entra-azure-cli.json").read_text())["api"]["preAuthorizedApplications"]
    assert known == [{"appId": DEVELOPER_SIGN_ON_CLIENT_ID, "delegatedPermissionIds": [scope["id"]]}]


def test_many_subscriptions_get_what_one_gets() -> None:
    taken = set(re.findall(r"^param (\w+)", (INFRA / "access.bicep").read_text(), re.MULTILINE))
    group = (INFRA / "access_of_group.bicep").read_text()
    options = set(re.findall(r"^  (\w+): \w+(?:\[\])?\?$", group, re.MULTILINE))
    assert options == taken - {"identities"} == set(re.findall(r"options\.\?(\w+)", group))


def test_every_parameter_is_described() -> None:
    for name, template in templates():
        for parameter, taken in template.get("parameters", {}).items():
            assert taken.get("metadata", {}).get("description"), (name, parameter)
