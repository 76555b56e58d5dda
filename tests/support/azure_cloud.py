"""A local Azure in memory that a test writes to directly."""

from __future__ import annotations

from collections import Counter
from typing import Any

from localcloud.azure.world.arm_errors import AksError
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.resource_ids import ClusterId
from tests.support.refused_writes import SUBSCRIPTION

CLUSTER = ClusterId(SUBSCRIPTION, "rg", "one")


class Cloud:
    """A world with a resource group."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.world = AzureWorld(self.clock, plane=NullPlane(), throttle=False)
        self.world.put_group(SUBSCRIPTION, "rg", {"location": "westeurope"})

    def create(self, given: dict[str, Any]) -> Cloud:
        top: dict[str, Any] = {key: given[key] for key in ("sku", "identity") if key in given}
        properties = {key: value for key, value in given.items() if key not in ("sku", "identity", "pool")}
        pool: dict[str, Any] = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5"}
        pool |= given.get("pool", {})
        body: dict[str, Any] = {
            "location": "westeurope",
            "identity": {"type": "SystemAssigned"},
            **top,
            "properties": {"dnsPrefix": "one", "agentPoolProfiles": [pool], **properties},
        }
        self.world.put_cluster(CLUSTER, body)
        self.clock.advance(10)
        return self

    def update(self, properties: dict[str, Any]) -> None:
        self.world.put_cluster(CLUSTER, {"location": "westeurope", "properties": properties})
        self.clock.advance(10)

    def put_pool(self, given: dict[str, Any]) -> Cloud:
        properties = {key: value for key, value in given.items() if key != "name"}
        self.world.put_pool(CLUSTER, given.get("name", "web"), {"properties": {"count": 1, **properties}})
        self.clock.advance(10)
        return self

    def shown_by_put(self, given: dict[str, Any]) -> dict[str, Any]:
        answer = self.world.put_pool(CLUSTER, "web", {"properties": given}).document
        assert answer is not None
        properties: dict[str, Any] = answer["properties"]
        return properties

    def pool(self, name: str) -> dict[str, Any]:
        properties: dict[str, Any] = self.world.get_pool(CLUSTER, name)["properties"]
        return properties

    def nodes(self) -> dict[str, int]:
        self.world.complete_due()
        return dict(Counter(node.pool for node in self.world.engine.plane.nodes[CLUSTER]))  # type: ignore[attr-defined]


def rule(error: AksError) -> str:
    """Return the rule that AKS' answer names, in the form that its errors have."""
    assert error.status == 400
    assert error.target
    assert set(error.body()) == {"code", "details", "message", "subcode", "target"}
    return error.rule
