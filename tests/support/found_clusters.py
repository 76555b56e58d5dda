"""Clusters of many shapes that exist in a subscription, and belong to no fleet."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports.azure import PutCluster, PutGroup
from shared.resource_ids import ClusterId

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
SIZE = {"vmSize": "Standard_D4s_v5", "type": "VirtualMachineScaleSets"}
SYSTEM: dict[str, Any] = {"name": "system", "mode": "System", "count": 3, **SIZE}
APPS: dict[str, Any] = {
    "name": "apps",
    "mode": "User",
    "enableAutoScaling": True,
    "minCount": 1,
    "maxCount": 5,
    "nodeLabels": {"workload": "apps"},
    **SIZE,
}
GPU: dict[str, Any] = {
    "name": "gpu",
    "mode": "User",
    "count": 1,
    "vmSize": "Standard_NC24ads_A100_v4",
    "type": "VirtualMachineScaleSets",
    "nodeTaints": ["sku=gpu:NoSchedule"],
}
SPOT: dict[str, Any] = {
    **APPS,
    "name": "spot",
    "scaleSetPriority": "Spot",
    "scaleSetEvictionPolicy": "Delete",
    "spotMaxPrice": -1,
}
OVERLAY = {"networkPlugin": "azure", "networkPluginMode": "overlay"}
CILIUM = {**OVERLAY, "networkDataplane": "cilium", "networkPolicy": "cilium"}
WEB: dict[str, Any] = {
    "kubernetesVersion": "1.36.2",
    "networkProfile": CILIUM,
    "oidcIssuerProfile": {"enabled": True},
    "securityProfile": {"workloadIdentity": {"enabled": True}},
    "autoUpgradeProfile": {"upgradeChannel": "none", "nodeOSUpgradeChannel": "NodeImage"},
    "agentPoolProfiles": [SYSTEM, APPS],
}
BATCH: dict[str, Any] = {
    "kubernetesVersion": "1.35.6",
    "networkProfile": {**OVERLAY, "podCidr": "10.100.0.0/16", "outboundType": "loadBalancer"},
    "autoScalerProfile": {"expander": "least-waste", "scan-interval": "20s"},
    "autoUpgradeProfile": {"upgradeChannel": "patch", "nodeOSUpgradeChannel": "SecurityPatch"},
    "agentPoolProfiles": [SYSTEM, SPOT],
}
LABS: dict[str, Any] = {
    "kubernetesVersion": "1.36.2",
    "networkProfile": {"networkPlugin": "kubenet"},
    "disableLocalAccounts": False,
    "storageProfile": {"blobCSIDriver": {"enabled": True}},
    "agentPoolProfiles": [SYSTEM, GPU],
}


def changed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**copy.deepcopy(properties), **copy.deepcopy(more)}


SHAPES: dict[str, dict[str, Any]] = {
    "web-1": WEB,
    "web-2": changed(WEB, agentPoolProfiles=[{**SYSTEM, "count": 5}, APPS]),
    "web-3": changed(WEB, agentPoolProfiles=[SYSTEM, {**APPS, "maxCount": 40}]),
    "web-4": changed(WEB, kubernetesVersion="1.35.6"),
    "web-5": changed(WEB, oidcIssuerProfile={"enabled": False}, securityProfile={}),
    "web-6": changed(WEB, agentPoolProfiles=[SYSTEM, APPS, GPU]),
    "web-7": changed(WEB, networkProfile={**CILIUM, "podCidr": "10.200.0.0/16"}),
    "web-8": changed(WEB, apiServerAccessProfile={"authorizedIPRanges": ["192.0.2.0/24"]}),
    "web-9": changed(WEB, azureMonitorProfile={"metrics": {"enabled": True}}),
    "web-10": changed(WEB, agentPoolProfiles=[{**SYSTEM, "availabilityZones": ["1", "2", "3"]}, APPS]),
    "batch-1": BATCH,
    "batch-2": changed(BATCH, agentPoolProfiles=[SYSTEM, {**SPOT, "spotMaxPrice": 0.25}]),
    "batch-3": changed(BATCH, autoScalerProfile={"expander": "random"}),
    "batch-4": changed(BATCH, agentPoolProfiles=[SYSTEM, SPOT, {**SPOT, "name": "spot2"}]),
    "labs-1": LABS,
    "labs-2": changed(LABS, disableLocalAccounts=False, agentPoolProfiles=[SYSTEM, {**GPU, "count": 4}]),
    "labs-3": changed(LABS, supportPlan="KubernetesOfficial", podIdentityProfile={"enabled": False}),
    "alone": {
        "kubernetesVersion": "1.36.2",
        "networkProfile": {"networkPlugin": "none"},
        "ingressProfile": {"webAppRouting": {"enabled": True}},
        "agentPoolProfiles": [{**SYSTEM, "name": "nodepool1", "osSKU": "AzureLinux", "maxPods": 60}],
    },
    "windows": {
        "kubernetesVersion": "1.36.2",
        "networkProfile": OVERLAY,
        "windowsProfile": {"adminUsername": "azureuser", "licenseType": "Windows_Server"},
        "agentPoolProfiles": [
            {**SYSTEM, "name": "linux", "upgradeSettings": {"maxSurge": "33%"}},
            {**APPS, "name": "win", "osType": "Windows", "osSKU": "Windows2022"},
        ],
    },
    "private": {
        "kubernetesVersion": "1.36",
        "apiServerAccessProfile": {"enablePrivateCluster": True, "privateDNSZone": "system"},
        "networkProfile": {**CILIUM, "outboundType": "loadBalancer"},
        "agentPoolProfiles": [{**SYSTEM, "count": 1}],
    },
}


def place(name: str) -> ClusterId:
    return ClusterId(SUBSCRIPTION, f"rg-{name}", name)


def create(
    cloud: MemoryCloud, name: str, properties: Mapping[str, Any], at: ClusterId | None = None, **outer: Any
) -> None:
    """Create a cluster as somebody without Roadstead does."""
    at = at or place(name)
    body = {
        "location": "westeurope",
        "sku": {"name": "Base", "tier": "Standard"},
        "identity": {"type": "SystemAssigned"},
        "tags": {"team": name.split("-")[0]},
        "properties": {"dnsPrefix": name, **copy.deepcopy(dict(properties))},
        **outer,
    }
    cloud.ports.azure.call(PutGroup(at.group, {"location": "westeurope", "tags": {}}))
    cloud.ports.azure.call(PutCluster(at, body, etag=None))
