"""ARM bodies: the smallest write that brings an existing cluster to its desired state, or none.

Only what the manifest names is compared; everything else belongs to Azure, to a policy or to an operator and
is sent back as it was read, except what AKS refuses to get back: ``read_only`` and ``exclusive_groups``.
``comparison`` has the rules for what counts as a difference, ``change_effects`` those for what a difference
does. Kubernetes versions are never downgraded.
"""

from __future__ import annotations

from typing import Any

from shared.azure.changes.comparison import Leaf, manifest_path, overlay, without_left, writable_cluster
from shared.azure.changes.conditions import ChangeSurroundings
from shared.azure.changes.exclusive_groups import without_rivals
from shared.azure.changes.upgrades import behind, next_version
from shared.azure.changes.writes import (
    PlannedWrite,
    at_running_version,
    last_write_failed,
    profiles_of,
    refuse_fixed,
    running_version,
)
from shared.azure.node_pools.body import first_pools, version_of
from shared.azure.node_pools.replacement import serving
from shared.azure.ownership import CONTEST_TAG, OwnerTags
from shared.json_tree import Json, merged
from shared.kubernetes_versions import lags, needs_upgrade, numbers, runs_newer
from shared.language.desired import Desired
from shared.language.model.cluster.spec import ClusterProperties

# Changes that AKS takes only one after the other: the stage to write now.
#
# The migration to overlay and the one to Cilium are separate operations, and each reimages the nodes of all
# pools (learn.microsoft.com/azure/aks/update-azure-cni: not in a single operation). Where a commit asks for
# both, overlay is a write of its own; Cilium and everything else follow once it has succeeded. What Azure
# shows decides the stage, so nothing is remembered between the two writes.

_OVERLAY = ("networkPlugin", "networkPluginMode", "podCidr", "podCidrs")


def first_stage(live: Json, wanted: Json) -> dict[str, Any]:
    """Return the part of the desired state to write now; all of it where one write can bring it about."""
    before = live["properties"].get("networkProfile") or {}
    network = (wanted.get("properties") or {}).get("networkProfile") or {}
    overlay = _has(network, "networkPluginMode", "overlay")
    migrated = _has(before, "networkPluginMode", "overlay") and not last_write_failed(live["properties"])
    cilium = _has(network, "networkDataplane", "cilium") and not _has(before, "networkDataplane", "cilium")
    if not (overlay and cilium) or migrated:
        return dict(wanted)
    stage = {key: value for key, value in network.items() if key in _OVERLAY}
    return {"tags": wanted["tags"], "properties": {"networkProfile": stage}}


def _has(network: Json, name: str, value: str) -> bool:
    return str(network.get(name) or "").lower() == value


def group_body(desired: Desired, owner: OwnerTags) -> dict[str, Any]:
    """Return the body of a new resource group."""
    return {"location": desired.spec.location, "tags": {**desired.spec.tags, **owner.group_tags}}


def cluster_write(desired: Desired, owner: OwnerTags, live: Json | None) -> PlannedWrite | None:
    """Return the PUT that the cluster needs, None when it needs none; raise ImmutableChange.

    A cluster whose last write failed or was cancelled needs one even without a difference: Azure then tries
    again. The PUT of an existing cluster has no node pools, which AKS then leaves as they are: they have
    their own PUT and their own version, so an older read of a pool must not be written back.
    """
    if live is None:
        return PlannedWrite(_new_cluster(desired, owner))
    properties = at_running_version(live["properties"], "kubernetesVersion")
    live = {**live, "properties": properties}
    wanted = _cluster(desired, owner, live)
    in_the_end, changes = overlay(live, wanted)
    around = ChangeSurroundings(properties, in_the_end["properties"])
    refuse_fixed(changes, f"cluster {desired.name}", "", around)
    wanted = first_stage(live, wanted)
    body, changes = overlay(live, wanted)
    body["tags"], unmarked = _without_mark(body["tags"])
    if not (changes or unmarked) and not last_write_failed(properties):
        return None
    body = {key: body[key] for key in _WRITTEN if body.get(key) is not None}
    return PlannedWrite(without_rivals(writable_cluster(body), wanted), (*changes, *unmarked))


def _without_mark(tags: Json) -> tuple[dict[str, Any], list[Leaf]]:
    """Return the tags without the contest tag of an overruled installation, and what that changes."""
    marks = {key: value for key, value in tags.items() if key.lower() == CONTEST_TAG}
    rest = {key: value for key, value in tags.items() if key not in marks}
    return rest, [Leaf(("tags", key), value, None) for key, value in marks.items()]


def cluster_leaves(desired: Desired, owner: OwnerTags, live: Json) -> list[Leaf]:
    """Return every field in which a cluster differs from the manifest, by ARM's names, without its pools."""
    return overlay(live, _cluster(desired, owner, live))[1]


def control_plane(live: Json) -> str:
    """Return the Kubernetes version that the control plane runs."""
    return running_version(live["properties"], "kubernetesVersion")


def pools_to_upgrade(desired: Desired, owner: OwnerTags, live: Json) -> dict[str, tuple[str, str]]:
    """Return (requested version, running version) of each pool with a version of its own to upgrade to.

    The key is the pool's name in the manifest; a new pool has "" as its running version.
    """
    upgrades = {}
    mine = serving(profiles_of(live), owner)
    for pool in desired.spec.node_pools:
        runs = [running_version(profile, "orchestratorVersion") for profile in mine.get(pool.name, ())]
        oldest = min(runs, key=numbers, default="")
        if pool.orchestrator_version and (not oldest or needs_upgrade(pool.orchestrator_version, oldest)):
            upgrades[pool.name] = (pool.orchestrator_version, oldest)
    return upgrades


def upgrade_pending(desired: Desired, live: Json) -> bool:
    """Return whether the control plane still needs an upgrade."""
    return needs_upgrade(desired.spec.kubernetes_version, control_plane(live))


def outdated_foreign_pools(desired: Desired, owner: OwnerTags, live: Json) -> list[str]:
    """Return a phrase for each pool that is not ours and would lag too far behind the desired version."""
    ours = _pool_versions(desired, owner, live)
    running = {
        str(profile["name"]): running_version(profile, "orchestratorVersion")
        for profile in profiles_of(live)
        if profile["name"] not in ours and not owner.owns(profile)
    }
    wanted = desired.spec.kubernetes_version
    return [f"{name} ({version})" for name, version in running.items() if lags(version, wanted)]


def newer_than_requested(desired: Desired, owner: OwnerTags, live: Json) -> tuple[str, ...]:
    """Return a sentence for the control plane and each pool that runs a newer version than requested."""
    running = {"the control plane": (desired.spec.kubernetes_version, control_plane(live))}
    pools = _pool_versions(desired, owner, live)
    running |= {f"node pool {name}": versions for name, versions in pools.items()}
    return tuple(
        f"{what} runs {current}, newer than {requested} in the manifest; AKS cannot downgrade it, so it stays"
        for what, (requested, current) in running.items()
        if runs_newer(requested, current)
    )


def _pool_versions(desired: Desired, owner: OwnerTags, live: Json) -> dict[str, tuple[str, str]]:
    """Return (requested version, running version) by the pool's name in Azure."""
    mine = serving(profiles_of(live), owner)
    return {
        str(profile["name"]): (version_of(pool, desired), running_version(profile, "orchestratorVersion"))
        for pool in desired.spec.node_pools
        for profile in mine.get(pool.name, ())
    }


def _new_cluster(desired: Desired, owner: OwnerTags) -> dict[str, Any]:
    """Return the body of a creation: the manifest's fields, and the choices that only a creation makes."""
    spec = desired.spec
    pools = first_pools(spec.node_pools, owner)
    properties = {
        **({} if spec.fqdn_subdomain else {"dnsPrefix": desired.name[:54].rstrip("-")}),
        "enableRBAC": True,
        **_properties(desired),
        **({"agentPoolProfiles": pools} if pools else {}),
    }
    properties["networkProfile"] = {"networkPlugin": "azure", **properties.get("networkProfile", {})}
    return {
        "location": spec.location,
        **_next_to_properties(desired),
        "sku": {"name": spec.sku.name or "Base", "tier": spec.sku.tier or "Standard"},
        "tags": {**spec.tags, **owner.cluster_tags()},
        "identity": _identity(desired) or {"type": "SystemAssigned"},
        "properties": properties,
    }


def _cluster(desired: Desired, owner: OwnerTags, live: Json) -> dict[str, Any]:
    """Return what an existing cluster should have; a creation's own choices are not repeated.

    What the job leaves as it is has no part in it: it also replaces nothing that goes with it in Azure.
    """
    spec, properties = desired.spec, _properties(desired)
    properties.pop("kubernetesVersion")
    hop = next_version(spec.kubernetes_version, control_plane(live))
    if hop and not behind(control_plane(live), _pool_versions(desired, owner, live)):
        properties["kubernetesVersion"] = hop
    tags = {**spec.tags, **owner.cluster_tags(live)}
    wanted = {**_next_to_properties(desired), "tags": tags, "properties": properties}
    sku = spec.sku.model_dump(by_alias=True, exclude_none=True)
    if sku:
        wanted["sku"] = sku
    if spec.identity:
        wanted["identity"] = _identity(desired)
    untyped = spec.azure.properties if spec.azure else {}
    return without_left(wanted, lambda path: manifest_path(path, untyped) in desired.left)


def _properties(desired: Desired) -> dict[str, Any]:
    spec = desired.spec
    typed = spec.model_dump(by_alias=True, mode="json", exclude_none=True, include=_CLUSTER_FIELDS)
    return merged(typed, spec.azure.properties if spec.azure else {})


def _next_to_properties(desired: Desired) -> dict[str, Any]:
    """Return the fields that ARM has next to ``properties`` and that a manifest may leave out."""
    return desired.spec.model_dump(by_alias=True, exclude_none=True, include={"extended_location", "kind"})


def _identity(desired: Desired) -> dict[str, Any]:
    identity = desired.spec.identity
    if identity is None:
        return {}
    users = [identity.user_assigned_identity] if identity.user_assigned_identity else []
    return {"type": identity.type} | (
        {"userAssignedIdentities": {user: {} for user in users}} if users else {}
    )


_CLUSTER_FIELDS = set(ClusterProperties.model_fields)
_WRITTEN = ("location", "extendedLocation", "kind", "sku", "tags", "identity", "properties")
