"""What an earlier components file had and the present one lacks is removed."""

from __future__ import annotations

from collections.abc import Sequence

from shared.json_tree import Json
from shared.kubernetes.field_ownership import MANAGER, appliers, is_applied_by_us
from shared.kubernetes.flux_objects import (
    INVENTORY,
    in_order_of_removal,
    inventory_of,
    is_applied,
    listed_in,
    removable,
)
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
