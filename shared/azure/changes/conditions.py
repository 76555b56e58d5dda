"""What else must be true for Azure to make a change in place.

A condition looks at the cluster and the node pool around the changed field, before and after. Both have the
names of ARM and of the manifest, which are the same; the pools are ``agentPoolProfiles`` or ``nodePools``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any

from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.kubernetes_versions import numbers


@dataclass(frozen=True)
class ChangeSurroundings:
    """The cluster and the node pool of a change; empty where the caller does not know them."""

    before: Json = field(default_factory=dict)
    after: Json = field(default_factory=dict)
    pool: Json = field(default_factory=dict)

    def was(self, path: str) -> str:
        """Return a value of the cluster before the change, in lower case; "" for none."""
        return text_of(_at(self.before, path))

    def will_be(self, path: str) -> str:
        """Return a value of the cluster after the change, in lower case; "" for none."""
        return text_of(_at(self.after, path))

    @property
    def version(self) -> tuple[int, ...]:
        """The Kubernetes version of the pool, or else of the cluster after the change; () if unknown."""
        return numbers(str(self.pool.get("orchestratorVersion") or self.will_be("kubernetesVersion")))

    def is_ever(self, path: str, value: str) -> bool:
        """Return whether the cluster has a value before or after the change."""
        return value in (self.was(path), self.will_be(path))


@dataclass(frozen=True)
class Circumstance:
    """A circumstance; ``text`` completes "Azure changes it only ..."."""

    text: str
    holds: Callable[[ChangeSurroundings, Any, Any], bool]


def text_of(value: Any) -> str:
    """Return a value for comparison: lower case, items of a list with commas, "" for no value."""
    if value in (None, [], {}, "[]", "{}"):  # also as a plan shows an empty list or object
        return ""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ",".join(value).lower()
    return str(value).lower()


def _at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def _pools(cluster: Json) -> list[Json]:
    return list(cluster.get("nodePools") or cluster.get("agentPoolProfiles") or ())


def _own_subnet(around: ChangeSurroundings, _old: Any, _new: Any) -> bool:
    return any(pool.get("vnetSubnetID") for pool in (*_pools(around.before), *_pools(around.after)))


def _managed_network(around: ChangeSurroundings, old: Any, new: Any) -> bool:
    known = bool(_pools(around.before) or _pools(around.after))
    return known and not _own_subnet(around, old, new)


def _grows(around: ChangeSurroundings, old: Any, new: Any) -> bool:
    """Return whether an IPv4 range becomes a larger one that contains it, on an overlay."""
    try:
        small, large = ipaddress.IPv4Network(str(old)), ipaddress.IPv4Network(str(new))
    except ValueError:
        return False
    return small.subnet_of(large) and around.is_ever(_MODE, "overlay")


def _second_family(around: ChangeSurroundings, old: Any, new: Any) -> bool:
    begins = around.was(_FAMILIES) != _DUAL and around.will_be(_FAMILIES) == _DUAL
    return begins and text_of(old) in ("", text_of(new).partition(",")[0])


def _without_policy_engine(around: ChangeSurroundings, _old: Any, _new: Any) -> bool:
    """Return whether neither an engine nor subnets of pods are in the way of an overlay on Azure CNI."""
    if around.was(_PLUGIN) == "kubenet":
        return True
    in_pod_subnet = any(pool.get("podSubnetID") for pool in _pools(around.before))
    return around.was(_POLICY) in ("", "none", "cilium") and not in_pod_subnet


def _own_addresses(around: ChangeSurroundings) -> bool:
    return any(around.was(f"{_NAT}.{own}") for own in ("outboundIPs", "outboundIPPrefixes"))


def _began_with_own(around: ChangeSurroundings, _old: Any, _new: Any) -> bool:
    """Return whether a managed NAT gateway has one's own addresses from the start: else AKS created some."""
    return around.was(_OUTBOUND) != "managednatgateway" or _own_addresses(around)


def _began_with_managed(around: ChangeSurroundings, _old: Any, _new: Any) -> bool:
    return around.was(_OUTBOUND) != "managednatgateway" or not _own_addresses(around)


def _forward(_around: ChangeSurroundings, old: Any, new: Any) -> bool:
    """Return whether each new revision of Istio is newer than those that run."""
    had, wanted = (
        {numbers(revision.removeprefix("asm-").replace("-", ".")) for revision in text_of(value).split(",")}
        for value in (old, new)
    )
    return all(revision > max(had) for revision in wanted - had)


def _addresses_stay(_around: ChangeSurroundings, old: Any, new: Any) -> bool:
    """Return whether no outbound address goes: a number that is not given is one, and others are AKS' own."""
    counts = [text_of(value) or "1" for value in (old, new)]
    if all(count.isdecimal() for count in counts):
        return int(counts[0]) <= int(counts[1])
    had, wanted = (
        {text_of(item.get("id") if isinstance(item, Mapping) else item) for item in value}
        for value in (side if isinstance(side, list | tuple) else [] for side in (old, new))
    )
    return bool(had) and had <= wanted


def _another_vault(around: ChangeSurroundings, _old: Any, _new: Any) -> bool:
    """Return whether encryption was off, or the key comes from another key vault."""
    vaults = {key.partition("/keys/")[0] for key in (around.was(_KMS_KEY), around.will_be(_KMS_KEY))}
    return around.was(f"{_KMS}.enabled") != "true" or len(vaults) > 1


_POLICY, _OUTBOUND = "networkProfile.networkPolicy", "networkProfile.outboundType"
_NAT = "networkProfile.natGatewayProfile"
_KMS = "securityProfile.azureKeyVaultKms"
_KMS_KEY = f"{_KMS}.keyId"
_MODE, _FAMILIES, _DUAL = "networkProfile.networkPluginMode", "networkProfile.ipFamilies", "ipv4,ipv6"
_PLUGIN, _INTEGRATION = "networkProfile.networkPlugin", "apiServerAccessProfile.enableVnetIntegration"
_GATEWAY = "ingressProfile.webAppRouting.gatewayAPIImplementations.appRoutingIstio"

WITH_OVERLAY = Circumstance(
    "together with networkPluginMode: overlay", lambda around, _old, _new: around.will_be(_MODE) == "overlay"
)
WITH_POD_RANGE = Circumstance(
    "from kubenet, or together with podCidr",
    lambda around, _old, _new: (
        around.was(_PLUGIN) == "kubenet"
        or bool(around.will_be("networkProfile.podCidr") or around.will_be("networkProfile.podCidrs"))
    ),
)
WITHOUT_POLICY_ENGINE = Circumstance(
    "with networkPolicy: none and no podSubnetID before", _without_policy_engine
)
OWN_ADDRESSES_FROM_THE_START = Circumstance(
    "where the NAT gateway has had addresses of your own from its start", _began_with_own
)
MANAGED_ADDRESSES_FROM_THE_START = Circumstance(
    "where the NAT gateway has had managed addresses from its start", _began_with_managed
)
FROM_ANOTHER_VAULT = Circumstance(
    "to a key of another key vault, or once an earlier commit has turned azureKeyVaultKms off", _another_vault
)
ADDRESSES_STAY = Circumstance("where no outbound address goes", _addresses_stay)
AFTER_THE_MESH = Circumstance(
    "once an earlier commit has turned serviceMeshProfile off",
    lambda around, _old, _new: around.was("serviceMeshProfile.mode") != "istio",
)
AFTER_THE_GATEWAY = Circumstance(
    f"once an earlier commit has turned {_GATEWAY} off",
    lambda around, _old, _new: around.was(f"{_GATEWAY}.mode") != "enabled",
)
TO_NEWER_REVISIONS = Circumstance("to newer revisions, or back to one that still runs", _forward)
AFTER_NO_POLICY = Circumstance(
    "once an earlier commit has set it to none",
    lambda around, _old, _new: around.was(_POLICY) == "none",
)
AS_PROVISIONING_IS_OFF = Circumstance(
    "once an earlier commit has turned node auto-provisioning off",
    lambda around, _old, _new: around.was("nodeProvisioningProfile.mode") != "auto",
)
AS_OVERLAY_BEGINS = Circumstance(
    "together with the change to networkPluginMode: overlay",
    lambda around, _old, _new: around.was(_MODE) != "overlay" and around.will_be(_MODE) == "overlay",
)
NOT_WITH_KUBENET = Circumstance(
    "with networkPlugin: azure", lambda around, _old, _new: around.will_be(_PLUGIN) != "kubenet"
)
LARGER_RANGE = Circumstance("to a larger IPv4 range around it, with networkPluginMode: overlay", _grows)
AS_DUAL_STACK_BEGINS = Circumstance("to add IPv6, together with ipFamilies: [IPv4, IPv6]", _second_family)
WITH_VNET_INTEGRATION = Circumstance(
    "with enableVnetIntegration: true", lambda around, _old, _new: around.is_ever(_INTEGRATION, "true")
)
IN_OWN_SUBNET = Circumstance("in a subnet of your own", _own_subnet)
IN_MANAGED_NETWORK = Circumstance("in a network that AKS manages", _managed_network)
WITH_SYSTEM_POOL = Circumstance(
    "with a node pool of your own with mode: System",
    lambda around, _old, _new: any(text_of(pool.get("mode")) == "system" for pool in _pools(around.after)),
)
ASLEEP_IN_POOLS = Circumstance(
    "with sleep.scope: pools", lambda around, _old, _new: around.will_be("sleep.scope") == "pools"
)
AFTER_AUTOSCALERS = Circumstance(
    "once an earlier commit has turned the autoscaler of every node pool off",
    lambda around, _old, _new: (
        not any(
            pool.get("enableAutoScaling") or pool.get("minCount") is not None
            for pool in _pools(around.before)
        )
    ),
)
WITHOUT_AUTO_PROVISIONING = Circumstance(
    "without node auto-provisioning",
    lambda around, _old, _new: not around.is_ever("nodeProvisioningProfile.mode", "auto"),
)
ON_LINUX = Circumstance(
    "on Linux nodes",
    lambda around, _old, _new: bool(around.pool) and text_of(around.pool.get("osType")) in ("", "linux"),
)
WITH_SKIP_TAG = Circumstance(
    "for a pool with the tag SkipGPUDriverInstall: true",
    lambda around, _old, _new: any(
        key.lower() == "skipgpudriverinstall" and text_of(value) == "true"
        for key, value in (around.pool.get("tags") or {}).items()
    ),
)
