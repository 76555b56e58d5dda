"""The API version of each request: the library's own, or that of the settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from azure.mgmt.containerservice import ContainerServiceClient
from azure.mgmt.resource.resources import ResourceManagementClient

from localcloud.azure.wire.arm_server import ArmServer
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.certificates import Authority
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.adapters.arm import ArmAzure
from shared.configuration.load_settings import load_settings
from shared.ports.azure import GetCluster, GetGroup, PutCluster, PutGroup
from tests.support.azure_ports import CLUSTER, SUBSCRIPTION, StaticCredential, body

REQUIRED = {
    "ROADSTEAD_APP": "worker",
    "ROADSTEAD_FLEET": "shop",
    "GITHUB_REPOSITORY": "example/fleet",
    "GITHUB_TOKEN": "t",
    "SERVICEBUS": "s",
    "TABLES_ENDPOINT": "https://example.table.core.windows.net",
}


def own_version(client: type) -> str:
    return str(client(StaticCredential(), SUBSCRIPTION)._config.api_version)


@pytest.mark.parametrize(
    ("given", "aks", "resources"),
    [
        ({}, own_version(ContainerServiceClient), own_version(ResourceManagementClient)),
        ({"AKS_API_VERSION": "2025-10-01"}, "2025-10-01", own_version(ResourceManagementClient)),
        (
            {"AKS_API_VERSION": "2026-03-01", "RESOURCES_API_VERSION": "2024-11-01"},
            "2026-03-01",
            "2024-11-01",
        ),
    ],
)
def test_every_request_has_the_api_version_of_the_settings(
    given: dict[str, str],
    aks: str,
    resources: str,
    authority: tuple[Authority, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    world = AzureWorld(ManualClock(), plane=NullPlane())
    settings = load_settings(REQUIRED | given)
    with ArmServer(world, authority[0], accepts=lambda token: token == "a-token") as server:
        azure = ArmAzure(StaticCredential(), base_url=server.url, api_versions=settings.api_versions)
        azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
        azure.call(GetGroup(CLUSTER.group))
        azure.call(PutCluster(CLUSTER, body(), etag=None, only_new=True))
        azure.call(GetCluster(CLUSTER))
        azure.close()
        sent = [(request["status"], request["query"]) for request in server.door.requests]
    assert [status for status, _ in sent] == [201, 200, 201, 200]
    assert [query for _, query in sent] == [f"api-version={read}" for read in (resources,) * 2 + (aks,) * 2]
