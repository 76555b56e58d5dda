"""ARM bodies: the smallest write that brings what exists to what is asked for, or none.

Only what the manifest names is compared; everything else belongs to Azure, to a policy or to a person and
is sent back as it was read. What counts as a difference is data in ``overlay``, what a difference does is
data in ``effects``. Kubernetes versions are never taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.fleet.desired import Desired
from shared.fleet.effects import Effect, effect_of, owned_by_azure
from shared.fleet.manifests.cluster import ClusterProperties
from shared.fleet.manifests.pools import NodePool, PoolProperties
from shared.fleet.overlay import Leaf, laid_over, overlay
from shared.fleet.versions import must_rise, runs_newer

Json = Mapping[str, Any]


class ImmutableChange(ValueError):
    """The manifest asks to change a field that is fixed on the existing resource."""


@dataclass(frozen=True)
class Owner:
    """The marks on everything we make. The repository is told for people: it may be renamed."""

    fleet: str
    repository: str
    cluster: str

    @property
    def tags(self) -> dict[str, str]:
        """The tags of a resource that belongs to this cluster of this fleet."""
        return {**self._marks, "roadstead-repository": self.repository.lower()}

    @property
    def _marks(self) -> dict[str, str]:
        return {"roadstead-fleet": self.fleet, "roadstead-cluster": self.cluster}

    def owns(self, resource: Json) -> bool:
        """Tell whether a resource carries the tags of this fleet and cluster; Azure may change key case."""
        return all(_tag(resource, key) == value for key, value in self._marks.items())

    def told(self, resource: Json) -> str:
        """Return a sentence with the tags that a resource should carry to be ours, and those it has."""
        expected = " and ".join(f"{key}={value}" for key, value in self._marks.items())
        found = " and ".join(
            f"no {key}" if (value := _tag(resource, key)) is None else f"{key}={value}" for key in self._marks
        )
        return f"expected the tags {expected}, found {found}"


def _tag(resource: Json, key: str) -> str | None:
    tags = resource.get("tags") or {}
    return next((str(value) for name, value in tags.items() if name.lower() == key), None)


@dataclass(frozen=True)
class Write:
    """A PUT that is needed: its body, and what it changes (nothing: it repeats a write that failed)."""

    body: dict[str, Any]
    changes: tuple[Leaf, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The fields that are written, by ARM's names."""
        return tuple(str(leaf) for leaf in self.changes)


def settled(state: str) -> bool:
    """Tell whether a provisioning state is an end; in any other one Azure is at work and refuses writes."""
    return state in ("Succeeded", "Failed", "Canceled", "")


def group_body(desired: Desired, owner: Owner) -> dict[str, Any]:
    """Return the body of a new resource group."""
    return {"location": desired.spec.location, "tags": {**desired.spec.tags, **owner.tags}}


def cluster_write(desired: Desired, owner: Owner, existing: Json | None) -> Write | None:
    """Return the PUT that the cluster needs, None when it needs none; raise ImmutableChange.

    A cluster whose last write failed or was cancelled needs one without a difference: Azure then tries
    again. Node pools of an existing cluster are sent back as they are; they have their own PUT.
    """
    if existing is None:
        return Write(_new_cluster(desired, owner))
    merged, found = overlay(existing, _cluster(desired, owner, existing))
    _refuse_fixed(found, f"cluster {desired.name}", "")
    if not found and not _unfinished(existing["properties"]):
        return None
    body = {key: merged[key] for key in _WRITTEN if merged.get(key) is not None}
    body["properties"] = _writable(merged["properties"])
    return Write(body, tuple(found))


def pool_write(pool: NodePool, desired: Desired, owner: Owner, existing: Json | None) -> Write | None:
    """Return the PUT that one node pool needs, None when it needs none; raise ImmutableChange.

    ``existing`` is the pool's profile (name and properties on one level), as the cluster shows it.
    """
    if existing is None:
        return Write({"properties": _new_pool(pool, owner)})
    merged, found = overlay(existing, _pool(pool, desired, owner, existing))
    _refuse_fixed(found, f"node pool {pool.name}", "nodePools[].")
    if not found and not _unfinished(existing):
        return None
    properties = {
        key: value for key, value in merged.items() if key not in _AZURES_IN_POOL and value is not None
    }
    return Write({"properties": _counted(pool, properties)}, tuple(found))


def difference(desired: Desired, owner: Owner, existing: Json) -> tuple[str, ...]:
    """Return the fields of the cluster that a PUT would write, by ARM's names."""
    return tuple(str(leaf) for leaf in overlay(existing, _cluster(desired, owner, existing))[1])


def pool_difference(pool: NodePool, desired: Desired, owner: Owner, existing: Json) -> tuple[str, ...]:
    """Return the fields of a node pool that a PUT would write, by ARM's names."""
    return tuple(str(leaf) for leaf in overlay(existing, _pool(pool, desired, owner, existing))[1])


def newer_than_asked(desired: Desired, existing: Json) -> tuple[str, ...]:
    """Return a sentence for the control plane and each pool that runs newer than the manifest asks for."""
    wanted, properties = desired.spec.kubernetes_version, existing["properties"]
    running = {"the control plane": (wanted, _running(properties, "kubernetesVersion"))}
    asked = {pool.name: _version(pool, desired) for pool in desired.spec.node_pools}
    for profile in properties.get("agentPoolProfiles") or ():
        if profile["name"] in asked:
            version = (asked[profile["name"]], _running(profile, "orchestratorVersion"))
            running[f"node pool {profile['name']}"] = version
    return tuple(
        f"{what} runs {current}, newer than {asked} in the manifest; AKS has no way back, so it stays"
        for what, (asked, current) in running.items()
        if runs_newer(asked, current)
    )


def _running(properties: Json, name: str) -> str:
    current = properties.get("current" + name[0].upper() + name[1:])
    return str(current or properties.get(name) or "")


def _unfinished(properties: Json) -> bool:
    return properties.get("provisioningState") in ("Failed", "Canceled")


def _new_cluster(desired: Desired, owner: Owner) -> dict[str, Any]:
    """Return the body of a creation: what the manifest says, and the choices that only a creation makes."""
    spec = desired.spec
    properties = {
        "dnsPrefix": desired.name[:54].rstrip("-"),
        "enableRBAC": True,
        **_properties(desired),
        "agentPoolProfiles": [{"name": pool.name, **_new_pool(pool, owner)} for pool in spec.node_pools],
    }
    for profile in properties["agentPoolProfiles"]:
        profile.pop("orchestratorVersion", None)  # with the cluster, all pools begin at its version
    properties["networkProfile"] = {"networkPlugin": "azure", **properties.get("networkProfile", {})}
    return {
        "location": spec.location,
        "sku": {"name": "Base", "tier": spec.sku.tier or "Standard"},
        "tags": {**spec.tags, **owner.tags},
        "identity": _identity(desired) or {"type": "SystemAssigned"},
        "properties": properties,
    }


def _cluster(desired: Desired, owner: Owner, existing: Json) -> dict[str, Any]:
    """Return what an existing cluster should have; a creation's own choices are not repeated."""
    spec, properties = desired.spec, _properties(desired)
    if not must_rise(spec.kubernetes_version, _running(existing["properties"], "kubernetesVersion")):
        del properties["kubernetesVersion"]
    wanted = {"tags": {**spec.tags, **owner.tags}, "properties": properties}
    if spec.sku.tier:
        wanted["sku"] = {"tier": spec.sku.tier}
    if spec.identity:
        wanted["identity"] = _identity(desired)
    return wanted


def _properties(desired: Desired) -> dict[str, Any]:
    spec = desired.spec
    typed = spec.model_dump(by_alias=True, mode="json", exclude_none=True, include=_CLUSTER_FIELDS)
    return laid_over(typed, spec.azure.properties if spec.azure else {})


def _identity(desired: Desired) -> dict[str, Any]:
    identity = desired.spec.identity
    if identity is None:
        return {}
    users = [identity.user_assigned_identity] if identity.user_assigned_identity else []
    return {"type": identity.type} | (
        {"userAssignedIdentities": {user: {} for user in users}} if users else {}
    )


def _new_pool(pool: NodePool, owner: Owner) -> dict[str, Any]:
    """Return a pool to create; without a version of its own it takes the control plane's."""
    properties = {"type": "VirtualMachineScaleSets", **_pool_properties(pool, owner)}
    if pool.autoscaling:
        properties["count"] = pool.min_count
    return properties


def _pool(pool: NodePool, desired: Desired, owner: Owner, existing: Json) -> dict[str, Any]:
    """Return what an existing pool should have; labels and taints that git does not say are taken away."""
    properties = {"nodeLabels": {}, "nodeTaints": [], **_pool_properties(pool, owner)}
    wanted = _version(pool, desired)
    if must_rise(wanted, _running(existing, "orchestratorVersion")):
        properties["orchestratorVersion"] = wanted
    else:
        properties.pop("orchestratorVersion", None)
    return properties


def _version(pool: NodePool, desired: Desired) -> str:
    return pool.orchestrator_version or desired.spec.kubernetes_version


def _pool_properties(pool: NodePool, owner: Owner) -> dict[str, Any]:
    typed = pool.model_dump(by_alias=True, mode="json", exclude_none=True, include=_POOL_FIELDS)
    said = {key: value for key, value in typed.items() if value not in ({}, [])}
    marked = {**said, "enableAutoScaling": pool.autoscaling, "tags": {**pool.tags, **owner.tags}}
    return laid_over(marked, pool.azure.properties if pool.azure else {})


_CLUSTER_FIELDS = set(ClusterProperties.model_fields)
_POOL_FIELDS = set(PoolProperties.model_fields)


def _counted(pool: NodePool, properties: dict[str, Any]) -> dict[str, Any]:
    """Keep the live count of an autoscaled pool within its range; a fixed count has no range."""
    if pool.min_count is not None and pool.max_count is not None:
        live = int(properties.get("count") or 0)
        return {**properties, "count": min(max(live, pool.min_count), pool.max_count)}
    return {key: value for key, value in properties.items() if key not in ("minCount", "maxCount")}


_WRITTEN = ("location", "sku", "tags", "identity", "properties")
_AZURES_IN_CLUSTER = owned_by_azure()
_AZURES_IN_POOL = ("name", *owned_by_azure("nodePools[]."))


def _writable(properties: Json) -> dict[str, Any]:
    """Leave out what only Azure writes."""
    kept = {key: value for key, value in properties.items() if key not in _AZURES_IN_CLUSTER}
    kept["agentPoolProfiles"] = [
        {key: value for key, value in pool.items() if key == "name" or key not in _AZURES_IN_POOL}
        for pool in properties.get("agentPoolProfiles") or ()
    ]
    return kept


_WAYS_OUT = {
    Effect.RECREATION: "put the old value back, or add a cluster under another name and remove this one",
    Effect.ROTATION: "put the old value back, or add a pool under another name and remove this one",
    Effect.AZURE: "Azure alone writes it; remove it from the manifest",
}


def _refuse_fixed(found: list[Leaf], what: str, prefix: str) -> None:
    for leaf in found:
        way_out = _WAYS_OUT.get(effect_of(f"{prefix}{leaf}", leaf.old, leaf.new))
        if way_out:
            old = "nothing" if leaf.old in (None, "", [], {}) else leaf.old
            raise ImmutableChange(
                f"{what}: {leaf} cannot be changed from {old} to {leaf.new} once it exists; {way_out}"
            )
