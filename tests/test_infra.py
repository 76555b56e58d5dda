"""The Bicep templates: they parse, and they hold what the engine and the settings rely on."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path

from azure.identity._constants import DEVELOPER_SIGN_ON_CLIENT_ID
from cronsim import CronSim

from handlers.routes import who_may_call
from localcloud.azure.world import event_grid
from localcloud.memory import memory_cloud
from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.runtime.parts import servicebus_part
from shared.app.api.access import Role
from shared.cluster.pace import SMALL_CHANGE
from shared.ports.state import TABLES
from shared.settings import Settings
from tests.support.function_calls import functions
from tests.support.templates import INFRA, TEMPLATES, app_settings, app_settings_text

ROOT = Path(__file__).parent.parent

LOCAL_ONLY = {
    "AzureWebJobsStorage": "a connection string; the app uses AzureWebJobsStorage__accountName",
    "ServiceBus": "a connection string; the app uses ServiceBus__fullyQualifiedNamespace",
    "TABLES_CONNECTION_STRING": "a connection string; the app uses TABLES_ENDPOINT",
    "FUNCTIONS_WORKER_RUNTIME": "not a setting on Flex Consumption: the plan's configuration names it",
    "IDENTITY_ENDPOINT": "Functions sets it",
    "IDENTITY_HEADER": "Functions sets it",
    "AZURE_RESOURCE_MANAGER_URL": "the default is Azure",
    "KUSTOMIZE": "the package of the app has its own",
    "REQUESTS_CA_BUNDLE": "Azure's certificates are publicly trusted",
    "AKS_API_VERSION": "the default is for Azure; moreSettings",
    "RESOURCES_API_VERSION": "the default is for Azure; moreSettings",
    "LEASE_SECONDS": "the default is for Azure; moreSettings",
    "POLL_SECONDS": "the default is for Azure; moreSettings",
    "LAG_SECONDS": "the default is for Azure; moreSettings",
    "CLOCK_SKEW_SECONDS": "the default is for Azure; moreSettings",
    "PLAN_WORK": "the default is for Azure; moreSettings",
    "PULL_SECONDS": "the default is for Azure; moreSettings",
    "FORK_SECONDS": "the default is for Azure; moreSettings",
    "APPROVAL_BY_OTHERS": "the default is for Azure; moreSettings",
    "APPROVAL_TEAMS": "off unless set; moreSettings",
    "REACHES_PRIVATE_CLUSTERS": "off unless set; moreSettings",
    "KUBECONFIG_NETWORKS": "off unless set; moreSettings",
    "ROLLOUT_CHECK_NETWORKS": "off unless set; moreSettings",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "for a collector; moreSettings",
    "OTEL_EXPORTER_OTLP_HEADERS": "for a collector; moreSettings",
    "ACTS_DAYS": "the default is for Azure; moreSettings",
    "EVENTS_KEPT": "the default is for Azure; moreSettings",
    "UNHEALTHY_MINUTES": "the default is for Azure; moreSettings",
    "RETRY_LIMITS": "the defaults are for Azure; moreSettings",
    "NOTIFY_TEAMS_WEBHOOK_URL": "an address of notifications; notificationAddresses",
    "WEBSITE_AUTH_ENABLED": "Functions sets it",
}


def test_every_template_parses() -> None:
    assert "main.bicep" in TEMPLATES
    assert [problem for template in TEMPLATES.values() for problem in template.broken] == []


def test_the_queues_are_what_the_engine_relies_on() -> None:
    declared = {
        queue.value["params"]["name"] for queue in TEMPLATES["servicebus.bicep"].of("module").values()
    }
    assert declared - {memory_cloud.EVENTS} == set(memory_cloud.QUEUES) == set(servicebus_part.QUEUES)
    events = TEMPLATES["servicebus.bicep"].of("module")[memory_cloud.EVENTS].value["params"]
    assert events["sessions"] is False, "Event Grid delivers to no queue with sessions"
    assert TEMPLATES["queue.bicep"].of("param")["sessions"].value is True
    queues = TEMPLATES["queue.bicep"].resource("Microsoft.ServiceBus/namespaces/queues")
    expected = {
        "requiresSession": "sessions",
        "lockDuration": "PT1M",
        "maxDeliveryCount": 10,
        "requiresDuplicateDetection": True,
        "enablePartitioning": False,  # one batch has messages of several sessions
        "duplicateDetectionHistoryTimeWindow": "PT10M",
        "deadLetteringOnMessageExpiration": True,
    }
    assert expected.items() <= queues.value["properties"].items()
    namespace = TEMPLATES["servicebus.bicep"].resource("Microsoft.ServiceBus/namespaces")
    assert namespace.value["sku"]["name"] == "Standard"  # Basic has neither sessions nor duplicate detection


def test_the_events_are_filtered_at_the_source_within_the_limits_of_event_grid() -> None:
    """25 filters and 25 values (learn.microsoft.com/azure/event-grid/event-filtering)."""
    template = TEMPLATES["event_subscription.bicep"]
    operations, reads = (template.of("var")[name].value for name in ("operations", "reads"))
    most = next(line for line in TEMPLATES["events.bicep"].text.splitlines() if line.startswith("@maxLength"))
    assert len(operations) + len(reads) + int(re.sub(r"\D", "", most)) <= 25
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
    properties = template.resource("Microsoft.EventGrid/systemTopics/eventSubscriptions").value["properties"]
    assert "destination" not in properties, "the identity of the topic delivers, and no key"
    assert properties["deliveryWithResourceIdentity"]["identity"] == {"type": "SystemAssigned"}


def test_the_tables_are_those_that_the_adapter_uses() -> None:
    declared = set(TEMPLATES["storage.bicep"].of("var")["tables"].value)
    assert declared == set(TABLES)


def test_the_function_app_runs_the_newest_python_that_the_project_supports() -> None:
    """Functions supports 3.11 until October 2027."""
    app = TEMPLATES["function.bicep"].resource("Microsoft.Web/sites").value["properties"]
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    newest = sorted(classifiers)[-1].rpartition(" ")[2]
    assert app["functionAppConfig"]["runtime"] == {"name": "python", "version": newest}
    assert app["httpsOnly"] is True
    plan = TEMPLATES["function.bicep"].resource("Microsoft.Web/serverfarms").value
    assert plan["sku"] == {"name": "FC1", "tier": "FlexConsumption"}


def test_every_local_setting_is_set_in_azure_or_is_local_only() -> None:
    local = json.loads((ROOT / "local.settings.example.json").read_text())["Values"]
    settings = app_settings()
    assert set(local) - set(settings) - set(LOCAL_ONLY) == set()
    assert set(settings) & set(LOCAL_ONLY) == set()


def test_every_setting_that_the_app_reads_is_set_in_azure_or_is_local_only() -> None:
    all_names = {name.lower() for name in app_settings() | LOCAL_ONLY} | {"website_hostname"}
    assert set(Settings.model_fields) <= all_names


def test_the_page_on_deployment_asks_github_for_what_the_page_on_settings_names() -> None:
    guides = ("deploy-to-azure.md", "connect-github.md")
    deployment = "".join((ROOT / "docs" / "how-to" / name).read_text().lower() for name in guides)
    token = TEMPLATES["main.bicep"].text.lower()
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
    parameters = TEMPLATES["main.bicep"].of("param")
    schedules = [
        str(parameter.value).strip("'") for name, parameter in parameters.items() if name.endswith("Schedule")
    ]
    assert len(schedules) == 5
    for each in schedules:
        schedule = CronSim(each, day)
        runs += sum(1 for _ in takewhile(lambda at: at <= day + timedelta(days=1), schedule))
    assert f"run {runs:,} times a day" in (INFRA / "README.md").read_text()


def test_no_command_on_azure_or_github_has_a_bracket_that_zsh_would_expand() -> None:
    pages = [ROOT / "infra" / "README.md", *(ROOT / "docs" / "how-to").glob("*.md")]
    blocks = [block for page in pages for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.S)]
    commands = [block for block in blocks if re.search(r"\b(az|gh|func) ", block)]
    assert len(commands) > 5
    unquoted = [re.sub(r"'[^']*'|\"[^\"]*\"|#.*", "", command) for command in commands]
    assert [command for command in unquoted if re.search(r"[\[\]?*]", command)] == []


def test_the_identity_is_used_wherever_the_local_settings_hold_a_connection_string() -> None:
    identity = {"AZURE_CLIENT_ID", "TABLES_ENDPOINT", "AzureWebJobsStorage__accountName"}
    for connection in ("AzureWebJobsStorage", "ServiceBus"):
        identity |= {f"{connection}__credential", f"{connection}__clientId"}
    assert identity | {"ServiceBus__fullyQualifiedNamespace"} <= set(app_settings())


def test_no_key_of_an_account_or_namespace_is_used_anywhere() -> None:
    assert len(TEMPLATES) > 5
    for name, template in TEMPLATES.items():
        assert not re.search(r"\blist(Keys|Secrets|AccountSas|ServiceSas)?\s*\(", template.text, re.I), name
    storage = TEMPLATES["host.bicep"].resource("Microsoft.Storage/storageAccounts")
    assert storage.value["properties"]["allowSharedKeyAccess"] is False
    namespace = TEMPLATES["servicebus.bicep"].resource("Microsoft.ServiceBus/namespaces")
    assert namespace.value["properties"]["disableLocalAuth"] is True
    component = TEMPLATES["monitoring.bicep"].resource("Microsoft.Insights/components")
    assert component.value["properties"]["DisableLocalAuth"] is True


def test_every_secret_is_a_secure_parameter_and_reaches_the_app_only_through_the_vault() -> None:
    settings = app_settings()
    for name in ("GITHUB_TOKEN", "GITHUB_APP_PRIVATE_KEY", "GITHUB_WEBHOOK_SECRET", "FLUX_GIT_PASSWORD"):
        assert "'${secret}" in settings[name] or settings[name].startswith("${secret}"), name
    written = {
        f"${{secret}}{secret.value['name']})"
        for name, secret in TEMPLATES["vault.bicep"].of("resource").items()
        if secret.type.startswith("Microsoft.KeyVault/vaults/secrets@")
        and name not in ("addresses", "approvals")
    }
    used = {found for value in settings.values() for found in re.findall(r"\$\{secret\}[\w-]+\)", value)}
    assert used == written
    assert len(written) >= 4
    secrets = [
        parameter
        for template in TEMPLATES.values()
        for name, parameter in template.of("param").items()
        if re.search(r"token|secret|password|privatekey", name, re.I)
    ]
    assert len(secrets) >= len(written)
    assert [secret.name for secret in secrets if "@secure()" not in secret.decorators] == []


def test_no_output_shows_a_secret() -> None:
    assert TEMPLATES["main.bicep"].of("output")
    for name, template in TEMPLATES.items():
        secure = [p.name for p in template.of("param").values() if "@secure()" in p.decorators]
        for output in template.of("output").values():
            names = set(re.findall(r"\w+", str(output.value)))
            assert not names & set(secure), (name, output.name)
            assert "ConnectionString" not in str(output.value), (name, output.name)


def test_the_scale_controller_may_read_how_long_the_queues_are() -> None:
    """Its fallback without that right sees no message behind the scheduled ones at the head of a queue."""
    owner = TEMPLATES["queue.bicep"].of("var")["dataOwner"].value
    assert owner == "090c5cfd-751d-490a-894a-3ce6f1109419", "Azure Service Bus Data Owner"
    role = TEMPLATES["queue.bicep"].of("resource")["owner"].value
    assert role["scope"] == "queue"
    assert "dataOwner" in role["properties"]["roleDefinitionId"]
    assert role["properties"]["principalId"] == "receiverPrincipalId"
    # The controller connects as the functions do.
    assert {"ServiceBus__clientId", "ServiceBus__credential"} <= set(app_settings())


def test_an_instance_has_a_thread_for_whatever_it_may_run_at_once() -> None:
    """Flex Consumption runs the HTTP functions together, and every other function on instances of its own."""
    app = TEMPLATES["function.bicep"].resource("Microsoft.Web/sites").value["properties"]
    http = app["functionAppConfig"]["scaleAndConcurrency"]["triggers"]["http"]["perInstanceConcurrency"]
    bus = json.loads((ROOT / "host.json").read_text())["extensions"]["serviceBus"]
    found = re.search(r"PYTHON_THREADPOOL_THREAD_COUNT: '(\d+)'", app_settings_text())
    assert found
    threads = int(found[1])
    assert 1 < http <= threads
    assert max(bus["maxConcurrentSessions"], bus["maxConcurrentCalls"]) <= threads


def test_one_instance_has_a_session_for_every_cluster_that_is_in_a_small_change() -> None:
    bus = json.loads((ROOT / "host.json").read_text())["extensions"]["serviceBus"]
    assert bus["maxConcurrentSessions"] == SMALL_CHANGE


def test_the_sign_in_lets_only_the_webhook_and_the_probe_pass_without_an_identity() -> None:
    sign_in = TEMPLATES["sign_in.bicep"].resource("Microsoft.Web/sites/config").value
    assert sign_in["name"] == "authsettingsV2"
    properties = sign_in["properties"]
    assert properties["platform"] == {"enabled": True}
    validation = properties["globalValidation"]
    assert validation["requireAuthentication"] == "!othersToo"
    assert validation["unauthenticatedClientAction"] == "othersToo ? 'AllowAnonymous' : 'RedirectToLoginPage'"
    found = {name: who_may_call(f.get_user_function()) for name, f in functions(MemoryCloud().ports).items()}
    open_to_all = {name for name, who in found.items() if who in ("signature", "anybody")}
    signed = {"github", "flux", "system_approval"}
    assert open_to_all == {*signed, "ready"}, "Flux and systems have many paths: others pass too then"
    assert validation["excludedPaths"] == ["/api/github", "/api/ready"]
    entra = properties["identityProviders"]["azureActiveDirectory"]
    assert entra["validation"] == {"allowedAudiences": ["clientId", "api://${clientId}"]}
    assert entra["registration"]["openIdIssuer"].endswith("/v2.0")
    assert "tenant().tenantId" in entra["registration"]["openIdIssuer"], "no other tenant"
    assert properties["login"] == {"tokenStore": {"enabled": False}}
    keys = TEMPLATES["main.bicep"].of("module")["signIn"].value["params"]["othersToo"]
    of_keys = "!empty('${apiKeyReader}${apiKeyOperator}${apiKeyApprover}${apiKeyAdmin}')"
    assert keys == f"{of_keys} || !empty(fluxEventVaults) || !empty(approvalKeys)"


def test_the_test_of_the_app_asks_what_anybody_may_and_its_alert_is_about_that_test() -> None:
    template = TEMPLATES["health.bicep"]
    test = template.resource("Microsoft.Insights/webtests").value["properties"]
    assert test["Request"]["RequestUrl"] == "https://${hostName}/api/ready"
    assert test["ValidationRules"]["ExpectedHttpStatusCode"] == 200
    alert = template.resource("Microsoft.Insights/metricAlerts").value["properties"]
    assert (alert["criteria"]["webTestId"], alert["scopes"]) == ("test.id", ["test.id", "component.id"])
    assert alert["criteria"]["failedLocationCount"] < len(template.of("var")["places"].value)
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


def test_every_parameter_is_described() -> None:
    assert TEMPLATES["main.bicep"].of("param")
    for file, template in TEMPLATES.items():
        for name, parameter in template.of("param").items():
            assert any(d.startswith("@description('") for d in parameter.decorators), (file, name)


def test_modules_are_given_exactly_the_parameters_that_they_take() -> None:
    modules = [module for template in TEMPLATES.values() for module in template.of("module").values()]
    assert {"function.bicep", "queue.bicep"} <= {module.type for module in modules}
    for module in modules:
        taken = TEMPLATES[module.type].of("param")
        required = {name for name, parameter in taken.items() if parameter.value is None}
        assert required <= set(module.value["params"]) <= set(taken), module.name


def test_the_example_parameters_exist_and_none_that_is_required_is_missing() -> None:
    text = (INFRA / "example.bicepparam").read_text()
    given = set(re.findall(r"^param (\w+) =", text, re.MULTILINE))
    taken = TEMPLATES["main.bicep"].of("param")
    required = {name for name, parameter in taken.items() if parameter.value is None}
    assert required
    assert required <= given <= set(taken)
