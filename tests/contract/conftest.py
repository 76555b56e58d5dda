"""The two implementations of Azure's ports: the world in memory, and the adapter over HTTPS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.servers.arm import ArmServer
from localcloud.servers.tls import Authority
from localcloud.world.azure import AzureWorld
from localcloud.world.azure_ports import WorldManagedClusters, WorldResourceGroups
from localcloud.world.clock import ManualClock
from localcloud.world.plane import NullPlane
from shared.adapters.arm import ArmManagedClusters, ArmResourceGroups
from tests.contract.azures import Azure, StaticCredential


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Path]:
    made, path = Authority(), tmp_path_factory.mktemp("tls") / "ca.pem"
    made.write(path)
    return made, path


@pytest.fixture(params=["world", "adapter"])
def azure(
    request: pytest.FixtureRequest, authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Azure]:
    clock, plane = ManualClock(), NullPlane()
    world = AzureWorld(clock, plane=plane)
    if request.param == "world":
        yield Azure(WorldResourceGroups(world), WorldManagedClusters(world), world, plane, clock)
        return
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    with ArmServer(world, authority[0], accepts=lambda token: token == "a-token") as server:
        groups = ArmResourceGroups(StaticCredential(), base_url=server.url)
        clusters = ArmManagedClusters(StaticCredential(), base_url=server.url)
        yield Azure(groups, clusters, world, plane, clock)
        groups.close()
        clusters.close()
