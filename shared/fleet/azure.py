"""ARM bodies: the smallest write that brings what exists to what is asked for, or None.

Only what the manifest names is compared; everything else belongs to Azure, to a policy or to a person and
is sent back as it was read. Property names and which of them are fixed: the AKS REST reference
(learn.microsoft.com/rest/api/aks/managed-clusters/create-or-update).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.fleet.desired import Desired
from shared.fleet.manifests import NodePool

Json = Mapping[str, Any]


class ImmutableChange(ValueError):
    """The manifest asks to change a field that is fixed on the existing resource."""


@dataclass(frozen=True)
class Owner:
    """The marks on everything we make; none of them changes with a commit."""

    fleet: str
    repository: str
    cluster: str

    @property
    def tags(self) -> dict[str, str]:
        """The tags of a resource that belongs to this cluster of this fleet."""
        return {
            "roadstead-fleet": self.fleet,
            "roadstead-repository": self.repository,
            "roadstead-cluster": self.cluster,
        }

    def owns(self, resource: Json) -> bool:
        """Tell whether a resource carries our tags."""
        tags = resource.get("tags") or {}
        return all(tags.get(key) == value for key, value in self.tags.items())


def group_body(desired: Desired, owner: Owner) -> dict[str, Any]:
    """Return the body of a new resource group."""
    return {"location": desired.spec.location, "tags": {**desired.spec.tags, **owner.tags}}


def cluster_body(desired: Desired, owner: Owner, existing: Json | None) -> dict[str, Any] | None:
    """Return the body of the PUT that the cluster needs, None when it needs none.

    A cluster in the state Failed needs one without a difference: Azure then tries again what failed.
    Node pools of an existing cluster are left as they are; they have their own PUT.
    """
    if existing is None:
        return _new_cluster(desired, owner)
    spec, wanted = desired.spec, _properties(desired)
    _refuse_fixed(existing, wanted, f"cluster {desired.name}", _FIXED_IN_CLUSTER)
    body: dict[str, Any] = copy.deepcopy(dict(existing))
    body["tags"] = {**(existing.get("tags") or {}), **spec.tags, **owner.tags}
    body["sku"] = {**(existing.get("sku") or {"name": "Base"}), "tier": spec.sku.tier}
    properties = body["properties"]
    if not version_satisfies(spec.kubernetes_version, _current_version(properties, "kubernetesVersion")):
        properties["kubernetesVersion"] = spec.kubernetes_version
    outbound = spec.network_profile.outbound_type
    if outbound:
        properties["networkProfile"]["outboundType"] = outbound
    body["identity"] = _identity(desired, existing.get("identity"))
    return None if body == existing and not _failed(properties) else _writable(body)


def pool_body(pool: NodePool, desired: Desired, owner: Owner, existing: Json | None) -> dict[str, Any] | None:
    """Return the body of the PUT that one node pool needs, None when it needs none.

    ``existing`` is the pool's profile (name and properties on one level), as the cluster shows it.
    """
    if existing is None:
        return {"properties": _pool(pool, desired, owner)}
    wanted = _pool(pool, desired, owner)
    _refuse_fixed({"properties": existing}, wanted, f"node pool {pool.name}", _FIXED_IN_POOL)
    properties = {key: value for key, value in existing.items() if key not in _READ_ONLY_IN_POOL}
    before = copy.deepcopy(properties)
    properties["mode"] = pool.mode
    properties["nodeLabels"] = pool.node_labels
    properties["nodeTaints"] = list(pool.node_taints)
    properties["tags"] = {**(properties.get("tags") or {}), **owner.tags}
    properties |= _size(pool, properties)
    if not version_satisfies(
        desired.spec.kubernetes_version, _current_version(existing, "orchestratorVersion")
    ):
        properties["orchestratorVersion"] = desired.spec.kubernetes_version
    if _significant(properties) == _significant(before) and not _failed(existing):
        return None
    return {"properties": {key: value for key, value in properties.items() if value is not None}}


def _significant(properties: Json) -> dict[str, Any]:
    """Leave out what means the same as absent, so that a default is not taken for a difference."""
    return {key: value for key, value in properties.items() if value not in (None, False, {}, [])}


def _failed(properties: Json) -> bool:
    return bool(properties.get("provisioningState") == "Failed")


def version_satisfies(wanted: str, current: str) -> bool:
    """Tell whether "1.33" or "1.33.2" is met by the version that runs; a minor alone pins the minor."""
    return current == wanted or (wanted.count(".") == 1 and current.startswith(wanted + "."))


def _current_version(properties: Json, name: str) -> str:
    current = properties.get("current" + name[0].upper() + name[1:])
    return str(current or properties.get(name) or "")


def _new_cluster(desired: Desired, owner: Owner) -> dict[str, Any]:
    spec = desired.spec
    pools = [{"name": pool.name, **_pool(pool, desired, owner)} for pool in spec.node_pools]
    return {
        "location": spec.location,
        "sku": {"name": "Base", "tier": spec.sku.tier},
        "tags": {**spec.tags, **owner.tags},
        "identity": _identity(desired, None),
        "properties": {**_properties(desired), "agentPoolProfiles": pools},
    }


def _properties(desired: Desired) -> dict[str, Any]:
    spec = desired.spec
    network = spec.network_profile.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {
        "kubernetesVersion": spec.kubernetes_version,
        "dnsPrefix": spec.dns_prefix or desired.name[:54].rstrip("-"),
        "networkProfile": network,
    }


def _identity(desired: Desired, existing: Json | None) -> dict[str, Any]:
    identity = desired.spec.identity
    wanted: dict[str, Any] = {"type": identity.type}
    if identity.user_assigned_identity:
        wanted["userAssignedIdentities"] = {identity.user_assigned_identity: {}}
    if existing is None:
        return wanted
    same_ids = {key.lower() for key in existing.get("userAssignedIdentities") or {}} == {
        key.lower() for key in wanted.get("userAssignedIdentities", {})
    }
    return dict(existing) if existing.get("type") == identity.type and same_ids else wanted


def _pool(pool: NodePool, desired: Desired, owner: Owner) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "mode": pool.mode,
        "vmSize": pool.vm_size,
        "osType": "Linux",
        "type": "VirtualMachineScaleSets",
        "orchestratorVersion": desired.spec.kubernetes_version,
        "tags": owner.tags,
        **_size(pool, {}),
    }
    optional = {
        "availabilityZones": list(pool.availability_zones),
        "nodeLabels": pool.node_labels,
        "nodeTaints": list(pool.node_taints),
        "vnetSubnetID": pool.vnet_subnet_id,
        "osDiskSizeGB": pool.os_disk_size_gb,
        "maxPods": pool.max_pods,
    }
    return properties | {key: value for key, value in optional.items() if value}


def _size(pool: NodePool, existing: Json) -> dict[str, Any]:
    """Return the size fields; the live count of an autoscaled pool belongs to the autoscaler."""
    if pool.autoscaling:
        count = existing.get("count", pool.min_count)
        return {
            "count": count,
            "enableAutoScaling": True,
            "minCount": pool.min_count,
            "maxCount": pool.max_count,
        }
    return {"count": pool.count, "enableAutoScaling": False, "minCount": None, "maxCount": None}


_FIXED_IN_CLUSTER = (
    "dnsPrefix",
    "networkProfile.networkPlugin",
    "networkProfile.networkPluginMode",
    "networkProfile.networkPolicy",
    "networkProfile.networkDataplane",
    "networkProfile.podCidr",
    "networkProfile.serviceCidr",
    "networkProfile.dnsServiceIP",
    "networkProfile.loadBalancerSku",
)
_FIXED_IN_POOL = ("vmSize", "osDiskSizeGB", "maxPods", "vnetSubnetID", "availabilityZones")
_READ_ONLY_IN_POOL = (
    "name",
    "eTag",
    "provisioningState",
    "currentOrchestratorVersion",
    "nodeImageVersion",
    "powerState",
    "status",
)
_READ_ONLY_IN_CLUSTER = (
    "provisioningState",
    "powerState",
    "currentKubernetesVersion",
    "fqdn",
    "azurePortalFQDN",
    "maxAgentPools",
    "resourceUID",
    "status",
)


def _refuse_fixed(existing: Json, wanted: Json, what: str, fields: tuple[str, ...]) -> None:
    for path in fields:
        new, old = _at(wanted, path), _at(existing["properties"], path)
        if new is not None and old is not None and _comparable(new) != _comparable(old):
            raise ImmutableChange(
                f"{what}: {path} cannot be changed from {old} to {new} once it exists; "
                "put the old value back, or add a new one under another name"
            )


def _comparable(value: Any) -> Any:
    if isinstance(value, str):
        return value.lower()
    return sorted(value) if isinstance(value, list) else value


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _writable(body: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only Azure writes."""
    kept = {
        key: value
        for key, value in body.items()
        if key in ("location", "sku", "tags", "identity", "properties")
    }
    kept["properties"] = {k: v for k, v in body["properties"].items() if k not in _READ_ONLY_IN_CLUSTER}
    return kept
