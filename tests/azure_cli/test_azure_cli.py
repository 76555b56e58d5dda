"""azure-cli, unchanged, against the local Azure: signed in with the managed identity, over TLS."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localcloud.azure.wire.arm_server import ArmServer
from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.azure.world.arm_resources import Timings
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.azure.world.catalog import SUBSCRIPTION
from localcloud.common.certificates import Authority
from localcloud.common.clock import system_clock
from localcloud.common.control_plane import NullPlane

pytestmark = pytest.mark.timeout(900)
QUICK = Timings(**dict.fromkeys(Timings.__dataclass_fields__, 0.5))
CLUSTER, POOL = ("-g", "rg", "-n", "one"), ("-g", "rg", "--cluster-name", "one")


class AzureCli:
    """``az`` with a configuration of its own, in the environment of a function app."""

    def __init__(self, folder: Path, server: ArmServer, identity: IdentityServer) -> None:
        self._environment = {
            **os.environ,
            "AZURE_CONFIG_DIR": str(folder / "config"),
            "AZURE_CORE_COLLECT_TELEMETRY": "no",
            "AZURE_CORE_OUTPUT": "json",
            "IDENTITY_ENDPOINT": identity.endpoint,
            "IDENTITY_HEADER": "open-sesame",
            "REQUESTS_CA_BUNDLE": str(folder / "ca.pem"),
        }
        self("cloud", "register", "-n", "RoadsteadLocal", "--endpoint-resource-manager", server.url)
        self("cloud", "set", "-n", "RoadsteadLocal")

    def __call__(self, *arguments: str) -> Any:
        """Return the command's answer; a command that fails fails the test with its message."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"az {' '.join(arguments)}: {done.stderr}"
        return json.loads(done.stdout) if done.stdout.strip() else None

    def refusal(self, *arguments: str) -> str:
        """Return the message of a command that Azure refuses."""
        done = self.run(*arguments)
        assert done.returncode != 0, f"az {' '.join(arguments)} was accepted"
        return done.stderr

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        command = [os.environ["AZURE_CLI"], *arguments]
        return subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=False, timeout=300
        )


@pytest.fixture
def az(tmp_path: Path) -> Iterator[AzureCli]:
    authority = Authority()
    authority.write(tmp_path / "ca.pem")
    world = AzureWorld(system_clock, plane=NullPlane(), timings=QUICK)
    with IdentityServer(header="open-sesame") as identity:
        server: ArmServer

        def accepts(token: str) -> bool:
            return identity.accepts(token, server.url)

        with ArmServer(world, authority, accepts=accepts) as server:
            yield AzureCli(tmp_path, server, identity)


def test_azure_cli_signs_in_and_creates_changes_upgrades_stops_and_deletes_a_cluster(az: AzureCli) -> None:
    (account,) = az("login", "--identity")
    assert (account["id"], account["environmentName"]) == (SUBSCRIPTION, "RoadsteadLocal")
    az("group", "create", "-n", "rg", "-l", "westeurope")
    created = az(
        *("aks", "create", *CLUSTER, "--no-ssh-key", "--node-count", "2", "--kubernetes-version", "1.35")
    )
    assert (created["provisioningState"], created["currentKubernetesVersion"]) == ("Succeeded", "1.35.7")
    assert [cluster["name"] for cluster in az("aks", "list")] == ["one"]
    assert [cluster["name"] for cluster in az("aks", "list", "-g", "rg")] == ["one"]

    az("aks", "update", *CLUSTER, "--tags", "a=b", "--load-balancer-managed-outbound-ip-count", "2")
    updated = az("aks", "show", *CLUSTER)
    balancer = updated["networkProfile"]["loadBalancerProfile"]
    assert (updated["tags"], balancer["managedOutboundIPs"]["count"]) == ({"a": "b"}, 2)
    az("tag", "update", "--resource-id", updated["id"], "--operation", "Merge", "--tags", "owner=ann")
    assert az("aks", "show", *CLUSTER)["tags"] == {"a": "b", "owner": "ann"}
    az("aks", "update", *CLUSTER, "--outbound-type", "managedNATGateway")
    assert az("aks", "show", *CLUSTER)["networkProfile"]["loadBalancerProfile"] is None

    az("aks", "upgrade", *CLUSTER, "--kubernetes-version", "1.36.3", "--control-plane-only", "--yes")
    az("aks", "nodepool", "add", *POOL, "-n", "web", "--node-count", "1", "--kubernetes-version", "1.35.7")
    assert [pool["name"] for pool in az("aks", "nodepool", "list", *POOL)] == ["nodepool1", "web"]
    upgrades = az("aks", "nodepool", "get-upgrades", *POOL, "--nodepool-name", "web")
    assert [upgrade["kubernetesVersion"] for upgrade in upgrades["upgrades"]] == ["1.36.2", "1.36.3"]
    upgrade = ("aks", "nodepool", "upgrade", *POOL, "-n", "web", "--kubernetes-version", "1.36.3", "--yes")
    assert az(*upgrade)["currentOrchestratorVersion"] == "1.36.3"
    az("aks", "nodepool", "scale", *POOL, "-n", "web", "--node-count", "3")
    az("aks", "nodepool", "update", *POOL, "-n", "web", "--labels", "tier=web")
    web = az("aks", "nodepool", "show", *POOL, "-n", "web")
    assert (web["count"], web["nodeLabels"]) == (3, {"tier": "web"})
    refused = az.refusal("aks", "nodepool", "add", *POOL, "-n", "few", "--max-pods", "9")
    assert "(InvalidParameter) maxPods must be between 10 and 250." in refused

    az("aks", "stop", *CLUSTER)
    assert az("aks", "show", *CLUSTER)["powerState"] == {"code": "Stopped"}
    az("aks", "start", *CLUSTER)
    az("aks", "nodepool", "delete", *POOL, "-n", "web")
    az("aks", "delete", *CLUSTER, "--yes")
    assert "ResourceNotFound" in az.refusal("aks", "show", *CLUSTER)
    az("group", "delete", "-n", "rg", "--yes")
    assert az("group", "list") == []
