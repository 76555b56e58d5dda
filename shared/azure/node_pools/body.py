"""ARM bodies of node pools: the smallest write that brings a pool to the manifest, or none.

A pool whose fixed properties changed is not written: it is replaced, see ``node_pool_replacement``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from shared.azure.changes.comparison import Leaf, manifest_path, overlay, writable_pool
from shared.azure.changes.conditions import ChangeSurroundings
from shared.azure.changes.field_effects import Effect
from shared.azure.changes.upgrades import next_version, no_newer_than
from shared.azure.changes.writes import (
    PlannedWrite,
    at_running_version,
    effect_of,
    last_write_failed,
    pool_is_stopped,
    refuse_fixed,
    running_version,
)
from shared.azure.ownership import ROLLBACK_TAG, OwnerTags, rollback_tag
from shared.json_tree import Json, merged
from shared.language.desired import Desired
from shared.language.model.node_pool import AUTO, NodePool, PoolProperties

_FIELDS = set(PoolProperties.model_fields)
_SCALE_SET = "VirtualMachineScaleSets"
SIZES_OF_A_SCALE_SET = ("vmSize", "count", "minCount", "maxCount", "enableAutoScaling")
"""What a pool of single machines has in its profile: docs virtual-machines-node-pools."""


def pool_write(
    pool: NodePool, desired: Desired, owner: OwnerTags, live: Json, *, control_plane: str = ""
) -> PlannedWrite | None:
    """Return the PUT that one node pool needs, None when it needs none; raise ImmutableChange.

    ``live`` is the pool's profile (name and properties on one level), as the cluster shows it;
    ``control_plane`` is the version that runs, which no pool may be newer than. A start is the first write of
    a pool and a stop the last, alone: Azure stops only a pool whose last write succeeded.
    """
    live = at_running_version(live, "orchestratorVersion")
    wanted = _wanted(pool, desired, owner, live, control_plane)
    power = {"powerState": wanted.pop("powerState")} if "powerState" in wanted else {}
    body, changes = _overlay(pool, desired, live, wanted)
    refuse_fixed(changes, f"node pool {pool.name}", "nodePools[].", ChangeSurroundings(pool=live))
    switch = _overlay(pool, desired, live, power)[1]
    if switch and (not pool.stopped or not (changes or last_write_failed(live))):
        return power_write(pool, live, power["powerState"]["code"])
    if not changes and not last_write_failed(live):
        return None
    return PlannedWrite(
        {"properties": {**_sized(pool, live, body), **({} if switch else power)}}, tuple(changes)
    )


def power_write(pool: NodePool, live: Json, code: str) -> PlannedWrite:
    """Return the PUT that has a pool "Stopped" or "Running", and changes nothing else of it.

    Azure starts as many nodes as there were, and an autoscaler goes on within its range; spot pools stop, too
    (start-stop-nodepools).
    """
    live = at_running_version(live, "orchestratorVersion")
    leaf = Leaf(("powerState", "code"), (live.get("powerState") or {}).get("code"), code)
    return PlannedWrite({"properties": {**_sized(pool, live, live), "powerState": {"code": code}}}, (leaf,))


def new_pool_write(
    pool: NodePool, owner: OwnerTags, name: str, *, like: Json | None = None, control_plane: str = ""
) -> PlannedWrite:
    """Return the PUT of a pool to create; ``like`` is the pool that it replaces, whose node count it takes.

    Until the control plane is upgraded, the new pool begins at the version that runs.
    """
    properties = new_pool(pool, owner, name)
    if pool.orchestrator_version:
        properties["orchestratorVersion"] = no_newer_than(control_plane, pool.orchestrator_version)
    if like and pool.min_count is not None and pool.max_count is not None:
        properties["count"] = min(max(int(like.get("count") or 0), pool.min_count), pool.max_count)
    return PlannedWrite({"properties": properties})


def ownership_write(pool: NodePool, owner: OwnerTags, live: Json) -> PlannedWrite:
    """Return the PUT that adopts a pool: it writes our tags and nothing else."""
    tags = owner.pool_tags(pool.name, str(live["name"]))
    live = at_running_version(live, "orchestratorVersion")
    body, changes = overlay(live, {"tags": tags})
    return PlannedWrite({"properties": _writable(body)}, tuple(changes))


def autoscaler_off_write(live: Json) -> PlannedWrite | None:
    """Return the PUT that switches the autoscaler off before a drain, None when it is off.

    The number of nodes of each size must be known, see ``sizes_not_shown``.
    """
    if _autoscaled(live):
        return _machines_at_rest(live)
    if not live.get("enableAutoScaling"):
        return None
    writable = _writable(at_running_version(live, "orchestratorVersion"))
    properties = {k: v for k, v in writable.items() if k not in ("minCount", "maxCount")}
    leaf = Leaf(("enableAutoScaling",), True, False)
    return PlannedWrite({"properties": {**properties, "enableAutoScaling": False}}, (leaf,))


def _autoscaled(live: Json) -> bool:
    """Return whether the autoscaler chooses the sizes of a pool of single machines."""
    return bool(((live.get("virtualMachinesProfile") or {}).get("scale") or {}).get("autoscale"))


def sizes_not_shown(live: Json) -> tuple[str, ...]:
    """Return the sizes of which the autoscaler chooses the number of nodes and Azure does not show it.

    A guess below the present number would remove nodes with their pods.
    """
    if not _autoscaled(live):
        return ()
    shown = _nodes_by_size(live)
    sizes = (str(document["size"]) for document in live["virtualMachinesProfile"]["scale"]["autoscale"])
    return tuple(size for size in sizes if size.lower() not in shown)


def _nodes_by_size(live: Json) -> dict[str, int]:
    nodes = live.get("virtualMachineNodesStatus") or ()
    return {str(node.get("size")).lower(): int(node["count"]) for node in nodes if "count" in node}


def _machines_at_rest(live: Json) -> PlannedWrite:
    """Return the PUT that fixes the present number of nodes of each size."""
    before, nodes = live["virtualMachinesProfile"], _nodes_by_size(live)
    sizes = (str(document["size"]) for document in before["scale"]["autoscale"])
    manual = [{"size": size, "count": nodes[size.lower()]} for size in sizes]
    after = {"scale": {"manual": manual}}
    writable = _writable(at_running_version(live, "orchestratorVersion"))
    leaf = Leaf(("virtualMachinesProfile", "scale"), before["scale"], after["scale"])
    return PlannedWrite(
        {"properties": _without_sizes({**writable, "virtualMachinesProfile": after})}, (leaf,)
    )


def _without_sizes(properties: Json) -> dict[str, Any]:
    """Return the properties with the sizes and numbers of nodes only in their profile, in one list."""
    rest = {key: value for key, value in properties.items() if key not in SIZES_OF_A_SCALE_SET}
    profile = properties.get("virtualMachinesProfile") or {}
    scale = {key: value for key, value in (profile.get("scale") or {}).items() if value}
    return {**rest, "virtualMachinesProfile": {"scale": scale}}


def pool_leaves(pool: NodePool, desired: Desired, owner: OwnerTags, live: Json) -> list[Leaf]:
    """Return every field in which a node pool differs from the manifest, by ARM's names."""
    return _overlay(pool, desired, live, _wanted(pool, desired, owner, live, ""))[1]


def _overlay(pool: NodePool, desired: Desired, live: Json, wanted: Json) -> tuple[dict[str, Any], list[Leaf]]:
    untyped = pool.azure.properties if pool.azure else {}
    merged, leaves = overlay(
        live, wanted, lambda path: _path(pool, manifest_path(path, untyped)) in desired.left
    )
    return merged, [leaf for leaf in leaves if not _chosen_by_aks(leaf)]


def _chosen_by_aks(leaf: Leaf) -> bool:
    """Return whether a field shows the zones that AKS chose: several, as none has more than half the nodes.

    Source: learn.microsoft.com/azure/aks/configure-automatic-zone-placement, "Verify zone placement". Zones
    that somebody wrote look the same; such a pool takes up the placement with its next write.
    """
    return leaf.path == ("availabilityZones",) and leaf.new == [AUTO] and len(leaf.old or ()) > 1


def _path(pool: NodePool, field: str) -> str:
    return f"nodePools[{pool.name}].{field}"


def pool_difference(pool: NodePool, desired: Desired, owner: OwnerTags, live: Json) -> tuple[str, ...]:
    """Return the names of the fields in which a node pool differs from the manifest."""
    return tuple(str(leaf) for leaf in pool_leaves(pool, desired, owner, live))


def fixed_leaves(pool: NodePool, desired: Desired, owner: OwnerTags, live: Json) -> list[Leaf]:
    """Return the differences that only a new pool can resolve."""
    around = ChangeSurroundings(pool=live)
    return [
        leaf
        for leaf in pool_leaves(pool, desired, owner, live)
        if effect_of(f"nodePools[].{leaf}", leaf.old, leaf.new, around) is Effect.REPLACEMENT
    ]


def new_pool(pool: NodePool, owner: OwnerTags, name: str = "") -> dict[str, Any]:
    """Return the properties of a pool to create, under another name in Azure if one is given.

    Without a version of its own it takes the control plane's.
    """
    properties = {"type": _SCALE_SET, **_properties(pool, owner, name or pool.name)}
    if pool.rollback is not None:
        # It begins with the newest image: a rollback that was asked of another pool is none of its own.
        properties["tags"] = {
            **properties["tags"],
            ROLLBACK_TAG: rollback_tag(datetime.fromisoformat(pool.rollback.last_used)),
        }
    properties.pop("powerState", None)  # a new pool runs; it is stopped afterwards
    if pool.min_count is not None:
        properties["count"] = pool.min_count
    return _without_sizes(properties) if pool.of_machines else properties


NOT_WITH_THE_CLUSTER = ("securityProfile", "artifactStreamingProfile")
"""What AKS takes in the PUT of a pool, and refuses in the pools of a new cluster, although its specification
has it there (github.com/Azure/terraform-azurerm-avm-res-containerservice-managedcluster/pull/196)."""


def first_pools(pools: Sequence[NodePool], owner: OwnerTags) -> list[dict[str, Any]]:
    """Return the pools in the body of a new cluster, with one of its System pools; the others follow.

    A pool that needs what AKS does not take there has its own PUT afterwards. Where that is true of every
    System pool, the first one begins without it. In a new cluster, all pools begin at its version.
    """
    profiles = [{"name": pool.name, **new_pool(pool, owner)} for pool in pools]
    whole = [profile for profile in profiles if not profile.keys() & set(NOT_WITH_THE_CLUSTER)]
    system = [profile for profile in profiles if profile["mode"] == "System"]
    if system and not any(profile["mode"] == "System" for profile in whole):
        whole.insert(0, system[0])
    left_out = (*NOT_WITH_THE_CLUSTER, "orchestratorVersion")
    return [{key: value for key, value in profile.items() if key not in left_out} for profile in whole]


def version_of(pool: NodePool, desired: Desired) -> str:
    """Return the Kubernetes version that the manifest requests for a pool."""
    return pool.orchestrator_version or desired.spec.kubernetes_version


def _wanted(
    pool: NodePool, desired: Desired, owner: OwnerTags, live: Json, control_plane: str
) -> dict[str, Any]:
    """Return what an existing pool should have.

    Labels and taints that git no longer has are removed; others that git does not have stay.
    """
    properties = _properties(pool, owner, str(live["name"]))
    own_labels = {
        key: value
        for key, value in (properties.get("nodeLabels") or {}).items()
        if _path(pool, f"nodeLabels.{key}") not in desired.left
    }
    removed = desired.removed_keys.get(pool.name, ())
    labels = (live.get("nodeLabels") or {}).items()
    properties["nodeLabels"] = {**{key: value for key, value in labels if key not in removed}, **own_labels}
    taints = [taint for taint in live.get("nodeTaints") or () if taint not in removed]
    properties["nodeTaints"] = list(dict.fromkeys([*taints, *properties.get("nodeTaints", ())]))
    if not pool.of_machines and str(live.get("type")).lower() == "virtualmachines":
        properties["type"] = _SCALE_SET  # the manifest has one size and one number
    if pool_is_stopped(live):
        properties.pop("count", None)  # Azure shows 0, and starts as many nodes as there were
    if _path(pool, "enableAutoScaling") in desired.left:
        # The sizes of the manifest are for the other way, and AKS takes no range without an autoscaler.
        for name in ("count",) if live.get("enableAutoScaling") else ("minCount", "maxCount"):
            properties.pop(name, None)
    properties.pop("orchestratorVersion", None)
    wanted = no_newer_than(control_plane, version_of(pool, desired))
    hop = next_version(wanted, running_version(live, "orchestratorVersion"))
    if hop:
        properties["orchestratorVersion"] = hop
    return properties


def _properties(pool: NodePool, owner: OwnerTags, azure_name: str) -> dict[str, Any]:
    typed = pool.model_dump(by_alias=True, mode="json", exclude_none=True, include=_FIELDS)
    own = {key: value for key, value in typed.items() if value not in ({}, [])}
    tags = {**pool.tags, **owner.pool_tags(pool.name, azure_name)}
    scaled = {} if pool.of_machines else {"enableAutoScaling": pool.autoscaling}
    return merged({**own, **scaled, "tags": tags}, pool.azure.properties if pool.azure else {})


def _sized(pool: NodePool, live: Json, profile: Json) -> dict[str, Any]:
    """Return what is written of a profile.

    A stopped pool keeps the count that Azure shows, unless the write turns its autoscaler on: AKS takes no
    count outside of the range then.
    """
    counted = _counted(pool, _writable(profile))
    turned_on = profile.get("enableAutoScaling") and not live.get("enableAutoScaling")
    stopped = pool_is_stopped(live) and "count" in counted and not turned_on
    return {**counted, "count": live.get("count")} if stopped else counted


def _counted(pool: NodePool, properties: dict[str, Any]) -> dict[str, Any]:
    """Keep the live count of an autoscaled pool within its range; a fixed count has no range."""
    if pool.of_machines:
        return _without_sizes(properties)
    if properties.get("enableAutoScaling"):
        ranged = {"minCount": pool.min_count, "maxCount": pool.max_count, **properties}
        live, least, most = (int(ranged.get(name) or 0) for name in ("count", "minCount", "maxCount"))
        return {**ranged, "count": min(max(live, least), most)}
    return {key: value for key, value in properties.items() if key not in ("minCount", "maxCount")}


def _writable(profile: Json) -> dict[str, Any]:
    """Return what was read as az writes it back: a stopped pool says so, and no write starts it unasked."""
    power = {"powerState": {"code": "Stopped"}} if pool_is_stopped(profile) else {}
    return {key: value for key, value in writable_pool(profile).items() if value is not None} | power


# Labels and taints of node pools that git had and no longer has: Roadstead removes these, and no others.
#
# In Azure, a label from a policy, an operator or AKS looks the same: only the earlier manifest identifies
# ours.


def keys_to_remove(
    before: Json, after: Json, earlier: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the keys of labels, and the taints, to remove from each pool, by its name in the manifest.

    ``before`` and ``after`` are stored forms of a cluster; ``earlier`` is what still had to be removed.
    """
    had = {pool["name"]: _keys(pool) for pool in before["spec"]["nodePools"]}
    to_remove = {}
    for pool in after["spec"]["nodePools"]:
        name = pool["name"]
        removed = {*had.get(name, ()), *earlier.get(name, ())} - _keys(pool)
        if removed:
            to_remove[name] = tuple(sorted(removed))
    return to_remove


def _keys(pool: Json) -> set[str]:
    """Return the keys of labels, and the taints; a taint contains a colon, a key never does."""
    return {*(pool.get("nodeLabels") or {}), *(pool.get("nodeTaints") or ())}
