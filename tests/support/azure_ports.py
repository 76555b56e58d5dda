"""An Azure under test, in either implementation, and the bodies of requests to it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypeVar

from azure.core.credentials import AccessToken

from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared import ports
from shared.ports.azure import AzureCall, GetCluster, PutCluster, PutGroup
from shared.resource_ids import ClusterId

T = TypeVar("T")

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
CLUSTER = ClusterId(SUBSCRIPTION, "rg-shop-prod", "aks-shop-prod")


class StaticCredential:
    """A credential that always has the same token."""

    def get_token(self, *_scopes: str, **_: Any) -> AccessToken:
        return AccessToken("a-token", int(time.time()) + 3600)


@dataclass
class Azure:
    """One implementation under test, and the clock and the world behind it."""

    port: ports.Azure
    world: AzureWorld
    plane: NullPlane
    clock: ManualClock

    def call(self, operation: AzureCall[T]) -> T:
        return self.port.call(operation)

    def seen(self) -> dict[str, Any]:
        document = self.call(GetCluster(CLUSTER))
        assert document is not None
        return dict(document)

    def state(self) -> str:
        return str(self.seen()["properties"]["provisioningState"])

    def pool(self, name: str) -> dict[str, Any]:
        pools = {pool["name"]: pool for pool in self.seen()["properties"]["agentPoolProfiles"]}
        return dict(pools[name])

    def with_cluster(self) -> Azure:
        """Go on from a cluster that is ready."""
        self.call(PutGroup(CLUSTER.group, {"location": "westeurope", "tags": {}}))
        self.call(PutCluster(CLUSTER, body(), etag=None))
        self.clock.advance(4)
        assert self.state() == "Succeeded"
        return self


def body(**properties: Any) -> dict[str, Any]:
    """Return the body of a PUT that creates a cluster."""
    return {
        "location": "westeurope",
        "tags": {"roadstead-fleet": "shop"},
        "identity": {"type": "SystemAssigned"},
        "properties": {
            "dnsPrefix": "shop-prod",
            "kubernetesVersion": "1.36",
            "networkProfile": {"networkPlugin": "azure", "networkPluginMode": "overlay"},
            "agentPoolProfiles": [pool(name="system", mode="System", count=2)["properties"]],
            **properties,
        },
    }


def pool(**properties: Any) -> dict[str, Any]:
    """Return the body of a PUT of an agent pool."""
    return {"properties": {"vmSize": "Standard_D4s_v5", "count": 1, "mode": "User", **properties}}
