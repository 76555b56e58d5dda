"""The production ports, as the settings have them: an adapter is built when its port is first used.

The function that needs a client library imports it: so an instance imports those that its functions use.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, TypeVar, assert_never, cast

from shared.configuration.setting_texts import (
    check_hosts,
    registry_addresses,
    vault_addresses,
    workspace_addresses,
)
from shared.configuration.settings import Settings, secret_text
from shared.platform.builds.build import Builds
from shared.ports import Azure, GitHost, Ports, Probe, Services, State, Telemetry
from shared.ports.azure import GetKubeconfig
from shared.ports.process import Process
from shared.ports.services import NoExports, NoTelemetry, NoVulnerabilities
from shared.ports.tally import Tally
from shared.reachable_addresses import networks_of
from shared.resource_ids import ClusterId

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential
    from azure.data.tables import TableServiceClient
    from azure.servicebus import ServiceBusClient

    from shared.adapters.arm import ArmAzure
    from shared.adapters.endpoints import HttpsEndpoints
    from shared.adapters.exports import BlobExports
    from shared.adapters.kubernetes import KubernetesConnections
    from shared.adapters.monitor import MonitorWorkspaces
    from shared.adapters.notification_routes import NotificationRoutes
    from shared.adapters.registries import OciRegistries
    from shared.adapters.servicebus import ServiceBusQueue
    from shared.adapters.vault import KeyVaults, VaultProbe
    from shared.adapters.vulnerabilities import VulnerabilityReports
    from shared.app.console.github_setup import GitHubSetup
    from shared.github_app import GitHubAnswer

log = logging.getLogger(__name__)
Port = TypeVar("Port")


class _OnFirstUse:
    """Stand in for a port until it is used: build it once, then forward to it."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build, self._lock = build, Lock()

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if "_port" not in self.__dict__:
                self._port = self._build()
        return getattr(self._port, name)


def on_first_use(build: Callable[[], Port]) -> Port:
    """Return a port that is built when it is used for the first time."""
    return cast(Port, _OnFirstUse(build))


class Adapters:
    """The adapters of one app, each built by its method."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.tally = Tally()
        self._credential = cache(self._new_credential)
        self._tables = cache(self._new_tables)
        self._bus = on_first_use(self._new_bus)

    def _new_credential(self) -> TokenCredential:
        from shared.adapters.transport import app_credential

        return app_credential()

    def _new_bus(self) -> ServiceBusClient:
        from shared.adapters.servicebus import service_bus_client

        return service_bus_client(
            connection_string=secret_text(self._settings.servicebus),
            namespace=self._settings.servicebus__fullyqualifiednamespace,
            credential=self._credential(),
        )

    def queue(self, name: str) -> ServiceBusQueue:
        """Return a queue; all share one connection."""
        from shared.adapters.servicebus import ServiceBusQueue

        return ServiceBusQueue(self._bus, name, self.tally.add)

    def _new_tables(self) -> TableServiceClient:
        from shared.adapters.tables import table_service

        return table_service(
            connection_string=secret_text(self._settings.tables_connection_string),
            endpoint=self._settings.tables_endpoint,
            credential=self._credential(),
            count=self.tally.add,
        )

    def state(self) -> State:
        """Return the fleet's tables."""
        from shared.adapters.tables import storage_tables

        return State(storage_tables(self._tables()), self._settings.roadstead_fleet)

    def table_time(self) -> datetime:
        """Return the time of Table Storage."""
        from shared.adapters.tables import table_time

        return table_time(self._tables())

    def git_host(self) -> GitHost:
        """Return the host of the fleet repository."""
        settings = self._settings
        sign_in = settings.git_url or "", settings.git_username, secret_text(settings.git_password)
        if settings.git_host == "git":
            from shared.adapters.git import GitServerHost

            if not settings.reads_by_ssh:
                return GitServerHost(*sign_in)
            from shared.adapters.git.ssh import SshGitServer

            key, url = secret_text(settings.git_ssh_key), settings.git_url or ""
            server = SshGitServer(url, key, settings.git_known_hosts, clock=_now)
            return GitServerHost(url, server=server)
        if settings.git_host == "gitlab":
            from shared.adapters.gitlab import GitLabHost

            return GitLabHost(*sign_in)
        if settings.git_host == "azure-devops":
            from shared.adapters.azure_devops import AzureDevOpsHost

            return AzureDevOpsHost(settings.git_url or "", self._credential())
        if settings.git_host == "github":
            from shared.adapters.github import GitHubHost, github_auth

            auth = github_auth(
                token=secret_text(settings.github_token),
                app_id=settings.github_app_id,
                private_key=secret_text(settings.github_app_private_key),
                installation_id=settings.github_app_installation_id,
            )
            return GitHubHost(settings.github_repository, auth, base_url=settings.github_api_url)
        assert_never(settings.git_host)

    def azure(self) -> ArmAzure:
        """Return Azure Resource Manager."""
        from shared.adapters.arm import ArmAzure

        settings = self._settings
        return ArmAzure(
            self._credential(),
            base_url=settings.azure_resource_manager_url,
            api_versions=settings.api_versions,
            app=settings.fleet_config.mark,
            count=self.tally.add,
        )

    def kubernetes(self, azure: Azure) -> KubernetesConnections:
        """Return connections to clusters, with kubeconfigs from Azure."""
        from shared.adapters.kubernetes import KubernetesConnections

        def aad_token(scope: str) -> str:
            return self._credential().get_token(scope).token

        def kubeconfig(cluster: ClusterId) -> str:
            return azure.call(GetKubeconfig(cluster))

        networks = networks_of(self._settings.kubeconfig_networks)
        return KubernetesConnections(kubeconfig, aad_token=aad_token, clock=_now, networks=networks)

    def vaults(self) -> KeyVaults:
        """Return the vaults of bootstrap secrets."""
        from shared.adapters.vault import KeyVaults

        return KeyVaults(vault_addresses(self._settings.key_vaults), self._credential())

    def github_setup(self) -> GitHubSetup | None:
        """Return what registers the GitHub App of the fleet in the browser, None where that is off."""
        if not self._settings.github_setup_vault:
            return None
        from shared.app.console.github_setup import GitHubSetup

        addresses = vault_addresses(self._settings.github_setup_vault)
        vaults = on_first_use(partial(self._own_vaults, addresses))
        api = self._settings.github_api_url.rstrip("/")
        return GitHubSetup(api, _send_to_github, vaults, vault=next(iter(addresses)))

    def _own_vaults(self, addresses: Mapping[str, str]) -> KeyVaults:
        from shared.adapters.vault import KeyVaults

        return KeyVaults(addresses, self._credential())

    def vault_probe(self, name: str) -> VaultProbe:
        """Return what asks one of the vaults whether it answers."""
        return self.vaults().probe_of(name)

    def registries(self) -> OciRegistries:
        """Return the registries whose artifacts clusters follow by rollout."""
        from shared.adapters.registries import OciRegistries

        return OciRegistries(registry_addresses(self._settings.registries), self._credential())

    def routes(self) -> NotificationRoutes:
        """Return the routes of notifications, with the addresses of the settings."""
        from shared.adapters.notification_routes import NotificationRoutes

        addresses = {name: secret_text(value) for name, value in self._settings.notify.items()}
        return NotificationRoutes(addresses, clock=_now)

    def endpoints(self) -> HttpsEndpoints:
        """Return the addresses that checks of gates ask, on the hosts of the settings."""
        from shared.adapters.endpoints import HttpsEndpoints

        networks = networks_of(self._settings.rollout_check_networks)
        return HttpsEndpoints(check_hosts(self._settings.rollout_check_hosts), networks)

    def monitor(self) -> MonitorWorkspaces:
        """Return the workspaces of Azure Monitor that checks of gates query."""
        from shared.adapters.monitor import MonitorWorkspaces

        addresses = workspace_addresses(self._settings.azure_monitor_workspaces)
        return MonitorWorkspaces(addresses, self._credential())

    def vulnerabilities(self) -> VulnerabilityReports:
        """Return what AKS publishes of the vulnerabilities of its images and versions."""
        from shared.adapters.vulnerabilities import VulnerabilityReports

        return VulnerabilityReports(self._settings.aks_vulnerability_url)

    def exports(self) -> BlobExports:
        """Return the container of the daily exports."""
        from shared.adapters.exports import BlobExports, exports_container

        return BlobExports(
            exports_container(
                connection_string=secret_text(self._settings.exports_connection_string),
                url=self._settings.exports_url,
                credential=self._credential(),
            )
        )

    def builds(self) -> Builds | None:
        """Return what builds what Flux applies; no program is started."""
        from shared.adapters.kustomize import kustomize_program

        program = kustomize_program(self._settings.kustomize)
        return Builds(program.build, lambda: program.version, RLock()) if program else None

    def telemetry(self) -> Telemetry:
        """Return where metrics and traces go. Without it jobs go on, so an error here is only logged."""
        from shared.adapters.telemetry import open_telemetry

        connection = secret_text(self._settings.applicationinsights_connection_string)
        try:
            return open_telemetry(
                fleet=self._settings.roadstead_fleet,
                connection_string=connection,
                credential=self._credential() if connection else None,
                otlp_endpoint=self._settings.otel_exporter_otlp_endpoint,
            )
        except Exception:
            log.exception("telemetry does not start; metrics and traces are lost")
            return NoTelemetry()


def _send_to_github(
    method: str, url: str, headers: Mapping[str, str], body: Mapping[str, Any] | None
) -> GitHubAnswer:
    from shared.adapters.github.registration import send

    return send(method, url, headers, body)


def _now() -> datetime:
    return datetime.now(UTC)


def build_ports(settings: Settings) -> Ports:
    """Return the production ports; no library is imported and no service is called before its first use."""
    adapters = Adapters(settings)
    azure = on_first_use(adapters.azure)
    plans = on_first_use(lambda: adapters.queue("plans"))
    probes: dict[str, Probe] = {"Service Bus": plans, "Azure credential": azure}
    for name in vault_addresses(settings.key_vaults):
        probes[f"Key Vault {name}"] = on_first_use(partial(adapters.vault_probe, name))
    return Ports(
        config=settings.fleet_config,
        state=on_first_use(adapters.state),
        plans=plans,
        jobs=on_first_use(lambda: adapters.queue("jobs")),
        changes=on_first_use(lambda: adapters.queue("changes")),
        deletes=on_first_use(lambda: adapters.queue("deletes")),
        previews=on_first_use(lambda: adapters.queue("previews")),
        git_host=on_first_use(adapters.git_host),
        azure=azure,
        kubernetes=on_first_use(lambda: adapters.kubernetes(azure)),
        vaults=on_first_use(adapters.vaults),
        services=_services(settings, adapters, probes),
        clock=_now,
        table_time=adapters.table_time,
        process=Process(tally=adapters.tally),
        random=random.random,
        unique=lambda: uuid.uuid4().hex[:8],
    )


def _services(settings: Settings, adapters: Adapters, probes: Mapping[str, Probe]) -> Services:
    return Services(
        routes=on_first_use(adapters.routes),
        endpoints=on_first_use(adapters.endpoints),
        monitor=on_first_use(adapters.monitor),
        registries=on_first_use(adapters.registries),
        vulnerabilities=(
            on_first_use(adapters.vulnerabilities) if settings.aks_vulnerability_url else NoVulnerabilities()
        ),
        exports=on_first_use(adapters.exports) if settings.has_exports else NoExports(),
        telemetry=on_first_use(adapters.telemetry) if settings.has_telemetry else NoTelemetry(),
        probes=probes,
        builds=adapters.builds(),
    )
