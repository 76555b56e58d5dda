"""A cluster that Roadstead did not create."""

from __future__ import annotations

from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports.azure import PutCluster, PutGroup
from shared.resource_ids import GroupId
from tests.support.one_cluster import ONE, SUBSCRIPTION


def foreign(cloud: MemoryCloud, **properties: Any) -> None:
    """Create a cluster in Azure that belongs to no fleet."""
    cloud.ports.azure.call(PutGroup(GroupId(SUBSCRIPTION, "rg-one"), {"location": "eastus", "tags": {}}))
    profile = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}
    body = {
        "location": "eastus",
        "identity": {"type": "SystemAssigned"},
        "sku": {"name": "Base", "tier": "Standard"},
        "tags": {"managed-by": "roadstead"},
        "properties": {
            "dnsPrefix": "theirs",
            "kubernetesVersion": "1.36",
            "networkProfile": {
                "networkPlugin": "azure",
                "networkPluginMode": "overlay",
                "networkDataplane": "cilium",
                "networkPolicy": "cilium",
                "podCidr": "10.244.0.0/16",
                "serviceCidr": "10.0.0.0/16",
                "dnsServiceIP": "10.0.0.10",
            },
            "agentPoolProfiles": [profile | {"availabilityZones": ["1", "2", "3"]}],
            **properties,
        },
    }
    cloud.ports.azure.call(PutCluster(ONE, body, etag=None))
    cloud.clock.advance(60)
    cloud.azure.complete_due()
