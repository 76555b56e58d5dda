"""What an earlier components file had and the present one lacks is removed; unknown teams hold that."""

from __future__ import annotations

from collections.abc import Sequence

from shared.app.worker.steps.flux.applied import LiveObjects
from shared.json_tree import Json
from shared.kubernetes.field_ownership import MANAGER, appliers, is_applied_by_us
from shared.kubernetes.flux_instance import INSTANCE
from shared.kubernetes.flux_lockdown import is_locked_down
from shared.kubernetes.flux_objects import (
    INVENTORY,
    in_order_of_removal,
    inventory_of,
    is_applied,
    listed_in,
    ref_of,
    removable,
)
from shared.kubernetes.system_objects import SYSTEM
from shared.language.desired import Desired
from shared.ports import KubernetesApi
from shared.resource_ids import ObjectRef
from shared.sentences import many, some_of

SHOWN = 5


def record_components(manifests: Sequence[Json], api: KubernetesApi) -> None:
    """Add the components to the inventory, before they are applied; those of earlier files stay in it."""
    live = api.get(INVENTORY)
    _save((listed_in(live) if live else frozenset()) | removable(manifests), live, api)


def remove_former(manifests: Sequence[Json], api: KubernetesApi) -> str:
    """Remove what the inventory has and the components lack; return what was done, "" for nothing.

    Only what Roadstead alone applies is removed, no namespace, and no definition of which objects exist.
    """
    wanted = removable(manifests)
    live = api.get(INVENTORY)
    former = in_order_of_removal(listed_in(live) - wanted) if live is not None else []
    removed: list[str] = []
    handed_over: list[str] = []
    kept: dict[ObjectRef, str] = {}
    for ref in former:
        found = api.get(ref)
        if found is None or not is_applied_by_us(found):
            continue
        others = sorted(appliers(found) - {MANAGER})
        if others:
            handed_over.append(f"the {ref} stays, because it is also applied by {' and '.join(others)}")
            continue
        objects = _objects_of(found, api) if ref.kind == "CustomResourceDefinition" else 0
        if objects:
            exist = f"{many(objects, 'object')} of it exist{'s' * (objects == 1)}"
            kept[ref] = f"the {ref} stays, because {exist}: the next job removes it without them"
            continue
        api.delete(found)
        removed.append(str(ref))
    _save(wanted | kept.keys(), live, api)
    deleted = f"removed {some_of(removed, SHOWN)}" if removed else ""
    return "; ".join(filter(None, (deleted, *handed_over[:SHOWN], *kept.values())))


def _objects_of(definition: Json, api: KubernetesApi) -> int:
    """Return how many objects of a definition exist."""
    spec = definition["spec"]
    version = next((version["name"] for version in spec["versions"] if version.get("served")), None)
    return 0 if version is None else len(api.list(f"{spec['group']}/{version}", spec["names"]["kind"]))


def _save(refs: frozenset[ObjectRef] | set[ObjectRef], live: Json | None, api: KubernetesApi) -> None:
    inventory = inventory_of(refs)
    if not is_applied(inventory, live) or (live is not None and listed_in(live) != refs):
        api.apply(inventory)


# Teams on a cluster whose record has never had a system, as tables that were restored say it.
#
# The teams' objects are still there, and without the lock-down of Flux they would have all rights: it is
# not taken away while a namespace of a system exists.

_RUNS = ("Deployment", INSTANCE.kind)
"""The kinds that the lock-down changes."""


def has_unknown_teams(
    desired: Desired, manifests: Sequence[Json], live: LiveObjects, api: KubernetesApi, *, rolls_out: bool
) -> bool:
    """Return whether namespaces of systems are on a cluster that is not locked down by its record.

    That costs a call only where a write could take the lock-down away: the cluster runs another Flux than the
    one of these components, or lacks a part of what runs. ``rolls_out``: these components were applied.
    """
    if is_locked_down(desired) or not desired.spec.flux.lockdown:
        return False
    if (not rolls_out and _is_new(manifests, live)) or _runs(manifests, live):
        return False
    return bool(api.list("v1", "Namespace", labels=SYSTEM))


def _is_new(manifests: Sequence[Json], live: LiveObjects) -> bool:
    """Return whether a cluster lacks every definition of the components, and so has no object of Flux."""
    definitions = [manifest for manifest in manifests if manifest["kind"] == "CustomResourceDefinition"]
    return bool(definitions) and all(_listed(definition, live) is None for definition in definitions)


def _runs(manifests: Sequence[Json], live: LiveObjects) -> bool:
    """Return whether what runs of Flux is as these components have it: not locked down, then."""
    return all(
        is_applied(manifest, _listed(manifest, live)) for manifest in manifests if manifest["kind"] in _RUNS
    )


def _listed(manifest: Json, live: LiveObjects) -> Json | None:
    """Return an object as the cluster has it, from a list that the step needs later."""
    live.kin(ref_of(manifest))
    return live.get(ref_of(manifest))
