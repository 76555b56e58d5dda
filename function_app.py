"""The composition root: settings become ports, ports become functions. Nothing else happens here."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime

import azure.functions as func
from azure.identity import DefaultAzureCredential

from handlers import api, deadletters, github, queues, timers
from shared import logs
from shared.adapters.arm import ArmAzure
from shared.adapters.github import GitHubRepository, github_auth
from shared.adapters.kubernetes import KubernetesConnections
from shared.adapters.servicebus import ServiceBusQueue, service_bus_client
from shared.adapters.tables import TablesState, table_service
from shared.ports import Ports
from shared.ports.azure import GetKubeconfig
from shared.settings import Settings, load_settings, secret_text


def _now() -> datetime:
    return datetime.now(UTC)


def build_ports(settings: Settings) -> Ports:
    """Return the production ports; no call is made before the first use."""
    credential = DefaultAzureCredential()
    bus = service_bus_client(
        connection_string=secret_text(settings.servicebus),
        namespace=settings.servicebus__fullyqualifiednamespace,
        credential=credential,
    )
    tables = table_service(
        connection_string=secret_text(settings.tables_connection_string),
        endpoint=settings.tables_endpoint,
        credential=credential,
    )
    azure = ArmAzure(credential, base_url=settings.azure_resource_manager_url)
    repository = GitHubRepository(
        settings.github_repository,
        github_auth(
            token=secret_text(settings.github_token),
            app_id=settings.github_app_id,
            private_key=secret_text(settings.github_app_private_key),
            installation_id=settings.github_app_installation_id,
        ),
        base_url=settings.github_api_url,
    )
    return Ports(
        config=settings.fleet_config,
        state=TablesState(tables, settings.roadstead_fleet),
        plans=ServiceBusQueue(bus, "plans"),
        jobs=ServiceBusQueue(bus, "jobs"),
        repository=repository,
        pulls=repository.pulls,
        azure=azure,
        kubernetes=KubernetesConnections(
            lambda cluster: azure.call(GetKubeconfig(cluster)),
            aad_token=lambda scope: credential.get_token(scope).token,
            clock=_now,
        ),
        clock=_now,
        random=random.random,
        unique=lambda: uuid.uuid4().hex[:8],
    )


def build_app(settings: Settings) -> func.FunctionApp:
    """Return the function app with every function."""
    logs.configure(settings.secrets)
    ports = build_ports(settings)
    app = func.FunctionApp()
    app.register_functions(github.blueprint(ports, secrets=settings.webhook_secrets))
    app.register_functions(queues.blueprint(ports))
    app.register_functions(deadletters.blueprint(ports, secrets=settings.secrets))
    app.register_functions(timers.blueprint(ports))
    app.register_functions(api.blueprint(ports))
    return app


app = build_app(load_settings())
