"""What changing a field of an existing cluster does: data, with the names of the manifest.

A pattern is the path in a cluster's ``spec``; ``[]`` stands for any node pool, ``*`` for any one key. A
pattern also covers the fields below its own. The first entry that matches counts; a field without an entry is
changed in place. Sources, all below learn.microsoft.com:
- azure/aks/faq, rest/api/aks/managed-clusters/create-or-update (what is fixed when a cluster is created)
- azure/aks/upgrade-aks-ipam-and-dataplane (supported migrations: kubenet and node subnet to overlay, Cilium)
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
    REPLACEMENT = "node pool replacement"
    RECREATION = "needs recreation"
    AZURE = "owned by Azure"
    UNMANAGED = "no longer managed"
    CHECKED = "fixed: must equal the value in Azure"
    MAY_REPLACE = "node pool replacement, unless Azure has this value"
    POOL_CREATED = "a new node pool"
    POOL_DELETED = "the node pool is deleted"


@dataclass(frozen=True)
class FieldEffect:
    """A field and what changing it does.

    ``in_place`` are the changes that Azure makes in place nevertheless: (old, new) in lower case, "" for no
    value, "*" for any.
    """

    pattern: str
    effect: Effect
    in_place: tuple[tuple[str, str], ...] = ()


def _each(effect: Effect, patterns: str) -> Iterator[FieldEffect]:
    return (FieldEffect(pattern, effect) for pattern in patterns.split())


_IMAGES = ("ubuntu", "ubuntu2204", "ubuntu2404", "azurelinux", "azurelinux3", "azurecontainerlinux")
_LINUX = tuple((old, new) for old in ("", *_IMAGES) for new in _IMAGES)
"""A Linux pool changes to another Linux image in place: AKS reimages its nodes one after the other."""

FIELD_EFFECTS: tuple[FieldEffect, ...] = (
    FieldEffect("networkProfile.networkPlugin", Effect.RECREATION, (("kubenet", "azure"),)),
    FieldEffect("networkProfile.networkPluginMode", Effect.RECREATION, (("", "overlay"),)),
    FieldEffect("networkProfile.networkDataplane", Effect.RECREATION, (("azure", "cilium"), ("", "cilium"))),
    FieldEffect(
        "networkProfile.networkPolicy",
        Effect.RECREATION,
        (
            *(("none", "azure"), ("none", "calico"), ("none", "cilium")),
            *(("", "azure"), ("", "calico"), ("", "cilium")),
            *(("azure", "none"), ("calico", "none"), ("azure", "cilium"), ("calico", "cilium")),
        ),
    ),
    FieldEffect(
        "networkProfile.loadBalancerProfile.backendPoolType",
        Effect.RECREATION,
        (("nodeipconfiguration", "nodeip"), ("", "nodeip"), ("", "nodeipconfiguration")),
    ),
    FieldEffect("oidcIssuerProfile.enabled", Effect.RECREATION, (("false", "true"), ("", "true"))),
    FieldEffect("aadProfile.managed", Effect.RECREATION, (("false", "true"), ("", "true"))),
    FieldEffect(
        "apiServerAccessProfile.enableVnetIntegration", Effect.RECREATION, (("false", "true"), ("", "true"))
    ),
    FieldEffect("apiServerAccessProfile.subnetId", Effect.RECREATION, (("", "*"),)),
    FieldEffect("nodePools[].osSKU", Effect.REPLACEMENT, _LINUX),
    *_each(
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
    *_each(
        Effect.REPLACEMENT,
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
    *(FieldEffect(name, Effect.AZURE) for name in OWNED_BY_AZURE["cluster"]),
    *(FieldEffect(f"nodePools[].{name}", Effect.AZURE) for name in OWNED_BY_AZURE["pool"]),
)

_WITHOUT_OLD_VALUE = {Effect.RECREATION: Effect.CHECKED, Effect.REPLACEMENT: Effect.MAY_REPLACE}
"""The effect where the older manifest has no value: the value in Azure is then unknown here."""


def effect_of(path: str, old: Any, new: Any) -> Effect:
    """Return the effect of changing a field of an existing resource from ``old`` to ``new``.

    None and "" stand for no value. ``path`` is that of the manifest: with or without ``spec.``, a node pool
    as ``nodePools[name]``.
    """
    entry = field_effect(path)
    if entry is None:
        return Effect.IN_PLACE
    before, after = _text(old), _text(new)
    allowed = any(change in ((before, after), (before, "*")) for change in entry.in_place)
    return Effect.IN_PLACE if allowed else entry.effect


def planned_effect(path: str, old: Any, new: Any) -> Effect:
    """Return the effect of a change between two manifests: the older one may lack what Azure has."""
    if _text(new) == "" and _leaf(path) not in _REMOVED:
        return Effect.UNMANAGED
    if _text(old) == _text(new):
        return Effect.IN_PLACE  # ARM ignores the letter case of sizes, ids and enums
    effect = effect_of(path, old, new)
    return _WITHOUT_OLD_VALUE.get(effect, effect) if _text(old) == "" else effect


_REMOVED = ("nodePools[]", "nodePools[].nodeLabels", "nodePools[].nodeTaints")
"""What Roadstead removes from Azure when git no longer has it."""


def field_effect(path: str) -> FieldEffect | None:
    """Return the entry of a field, None when it is changed in place."""
    keys = _normal(path).split(".")
    return next((entry for entry in FIELD_EFFECTS if _covers(entry.pattern.split("."), keys)), None)


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
