"""What changing a field of an existing cluster does: data, with the names of the manifest.

A pattern is the path in a cluster's ``spec``; ``[]`` is any node pool, ``*`` any one key, and what lies
below a named field is meant too. The first row that matches counts; a field without a row is changed in
place. Sources, all below learn.microsoft.com:
- azure/aks/faq, rest/api/aks/managed-clusters/create-or-update (what is fixed when a cluster is created)
- azure/aks/upgrade-aks-ipam-and-dataplane (the ways that lead on: kubenet and node subnet to overlay, Cilium)
- azure/aks/use-network-policies, azure/aks/egress-outboundtype, azure/aks/api-server-vnet-integration
- azure/aks/use-oidc-issuer, azure/aks/enable-authentication-microsoft-entra-id (what cannot be switched off)
- azure/aks/manage-node-pools, azure/aks/resize-node-pool, rest/api/aks/agent-pools/create-or-update
  (what is fixed when a pool is created: nodes are moved to a new pool)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from shared.fleet.manifests.untyped import OWNED_BY_AZURE


class Effect(StrEnum):
    """What a change does."""

    IN_PLACE = "in place"
    ROTATION = "node pool rotation"
    RECREATION = "needs recreation"
    AZURE = "owned by Azure"
    LEFT = "left as it is"
    CHECKED = "fixed: must be as it is in Azure"
    MAY_ROTATE = "node pool rotation, unless it is so in Azure"
    POOL_CREATED = "a new node pool"
    POOL_DELETED = "the node pool is deleted"


@dataclass(frozen=True)
class Row:
    """A field and what changing it does; ``ways`` are changes that Azure makes in place all the same.

    A way is (old, new) in lower case; "" is nothing, "*" anything.
    """

    pattern: str
    effect: Effect
    ways: tuple[tuple[str, str], ...] = ()


def _rows(effect: Effect, patterns: str) -> Iterator[Row]:
    return (Row(pattern, effect) for pattern in patterns.split())


_IMAGES = ("ubuntu", "ubuntu2204", "ubuntu2404", "azurelinux", "azurelinux3", "azurecontainerlinux")
_LINUX = tuple((old, new) for old in ("", *_IMAGES) for new in _IMAGES)
"""A Linux pool takes another Linux image in place: AKS reimages its nodes one after the other."""

ROWS: tuple[Row, ...] = (
    Row("networkProfile.networkPlugin", Effect.RECREATION, (("kubenet", "azure"),)),
    Row("networkProfile.networkPluginMode", Effect.RECREATION, (("", "overlay"),)),
    Row("networkProfile.networkDataplane", Effect.RECREATION, (("azure", "cilium"), ("", "cilium"))),
    Row(
        "networkProfile.networkPolicy",
        Effect.RECREATION,
        (
            *(("none", "azure"), ("none", "calico"), ("none", "cilium")),
            *(("", "azure"), ("", "calico"), ("", "cilium")),
            *(("azure", "none"), ("calico", "none"), ("azure", "cilium"), ("calico", "cilium")),
        ),
    ),
    Row(
        "networkProfile.loadBalancerProfile.backendPoolType",
        Effect.RECREATION,
        (("nodeipconfiguration", "nodeip"), ("", "nodeip"), ("", "nodeipconfiguration")),
    ),
    Row("oidcIssuerProfile.enabled", Effect.RECREATION, (("false", "true"), ("", "true"))),
    Row("aadProfile.managed", Effect.RECREATION, (("false", "true"), ("", "true"))),
    Row("apiServerAccessProfile.enableVnetIntegration", Effect.RECREATION, (("false", "true"), ("", "true"))),
    Row("apiServerAccessProfile.subnetId", Effect.RECREATION, (("", "*"),)),
    Row("nodePools[].osSKU", Effect.ROTATION, _LINUX),
    *_rows(
        Effect.RECREATION,
        """
        subscriptionId resourceGroup location dnsPrefix fqdnSubdomain enableRBAC
        nodeResourceGroup diskEncryptionSetID linuxProfile.adminUsername windowsProfile.adminUsername
        networkProfile.podCidr networkProfile.podCidrs networkProfile.serviceCidr networkProfile.serviceCidrs
        networkProfile.dnsServiceIP networkProfile.loadBalancerSku networkProfile.ipFamilies
        apiServerAccessProfile.enablePrivateCluster apiServerAccessProfile.privateDNSZone
        networkProfile.networkMode
        """,
    ),
    *_rows(
        Effect.ROTATION,
        """
        nodePools[].vmSize nodePools[].osType nodePools[].type nodePools[].osDiskSizeGB nodePools[].osDiskType
        nodePools[].kubeletDiskType nodePools[].maxPods nodePools[].vnetSubnetID nodePools[].podSubnetID
        nodePools[].podIPAllocationMode nodePools[].availabilityZones
        nodePools[].scaleSetPriority nodePools[].scaleSetEvictionPolicy nodePools[].spotMaxPrice
        nodePools[].kubeletConfig nodePools[].linuxOSConfig nodePools[].enableEncryptionAtHost
        nodePools[].enableUltraSSD nodePools[].enableFIPS
        nodePools[].enableNodePublicIP nodePools[].nodePublicIPPrefixID
        nodePools[].proximityPlacementGroupID nodePools[].hostGroupID nodePools[].capacityReservationGroupID
        nodePools[].gpuInstanceProfile nodePools[].workloadRuntime nodePools[].messageOfTheDay
        nodePools[].creationData nodePools[].networkProfile.nodePublicIPTags
        nodePools[].windowsProfile nodePools[].virtualMachinesProfile nodePools[].gpuProfile
        nodePools[].gatewayProfile
        """,
    ),
    *(Row(name, Effect.AZURE) for name in OWNED_BY_AZURE["cluster"]),
    *(Row(f"nodePools[].{name}", Effect.AZURE) for name in OWNED_BY_AZURE["pool"]),
)

_UNKNOWN_BEFORE = {Effect.RECREATION: Effect.CHECKED, Effect.ROTATION: Effect.MAY_ROTATE}
"""The effects where the older manifest has no value, so that the value in Azure is unknown here."""


def effect_of(path: str, old: Any, new: Any) -> Effect:
    """Return what it does to bring an existing resource from ``old`` to ``new`` (None, "": nothing there).

    ``path`` is that of the manifest: with or without ``spec.``, a node pool as ``nodePools[name]``.
    """
    row = row_of(path)
    if row is None:
        return Effect.IN_PLACE
    before, after = _text(old), _text(new)
    allowed = any(way in ((before, after), (before, "*")) for way in row.ways)
    return Effect.IN_PLACE if allowed else row.effect


def planned_effect(path: str, old: Any, new: Any) -> Effect:
    """Return the effect of a change between two manifests: the older one may lack what Azure has."""
    if _text(new) == "" and _leaf(path) not in _REMOVED:
        return Effect.LEFT
    if _text(old) == _text(new):
        return Effect.IN_PLACE  # ARM ignores the letter case of sizes, ids and enums
    effect = effect_of(path, old, new)
    return _UNKNOWN_BEFORE.get(effect, effect) if _text(old) == "" else effect


_REMOVED = ("nodePools[]", "nodePools[].nodeLabels", "nodePools[].nodeTaints")
"""What Roadstead removes from Azure when git no longer has it."""


def row_of(path: str) -> Row | None:
    """Return the row of a field, None when it is changed in place."""
    keys = _normal(path).split(".")
    return next((row for row in ROWS if _covers(row.pattern.split("."), keys)), None)


def _covers(pattern: list[str], keys: list[str]) -> bool:
    return len(pattern) <= len(keys) and all(p in ("*", key) for p, key in zip(pattern, keys, strict=False))


def _normal(path: str) -> str:
    path = path.removeprefix("spec.")
    path = re.sub(r"\[[^\]]*\]", "[]", path)
    return path.replace("azure.properties.", "")


def _leaf(path: str) -> str:
    keys = _normal(path).split(".")
    return ".".join(keys[:2]) if keys[0] == "nodePools[]" else keys[0]


def _text(value: Any) -> str:
    if value in (None, [], {}, "[]", "{}"):  # also as a plan shows an empty list or object
        return ""
    return str(value).lower()
