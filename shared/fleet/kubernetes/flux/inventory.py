"""The inventory of Flux's components on a cluster: what Roadstead applied, so that it can remove it later.

It is a ConfigMap. An object is added to it before it is applied, and leaves it after it was removed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from pydantic import TypeAdapter, ValidationError

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import NAMESPACE, ref_of, stamped
from shared.fleet.resource_ids import ObjectRef

INVENTORY = ObjectRef("v1", "ConfigMap", "roadstead-components", NAMESPACE)
_KEY = "objects"
_STORED = TypeAdapter(list[ObjectRef])
_NEVER_REMOVED = ("Namespace",)
_WORKLOADS, _DEFINITION = ("Deployment", "StatefulSet", "DaemonSet"), "CustomResourceDefinition"


def inventory_of(refs: Collection[ObjectRef], at: ObjectRef = INVENTORY) -> Json:
    """Return the ConfigMap that lists these objects."""
    listed = [ref.__dict__ for ref in sorted(refs, key=lambda ref: (ref.kind, ref.namespace, ref.name))]
    metadata = {"name": at.name, "namespace": at.namespace}
    content = json.dumps(listed, indent=1)
    return stamped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_KEY: content}})


def listed_in(live: Json) -> frozenset[ObjectRef]:
    """Return the objects that an inventory lists; none from an unreadable one."""
    try:
        return frozenset(_STORED.validate_json(str((live.get("data") or {}).get(_KEY) or "[]")))
    except ValidationError:
        return frozenset()


def removable(manifests: Sequence[Json]) -> frozenset[ObjectRef]:
    """Return those of the components that may be removed one day: all but namespaces."""
    return frozenset(ref_of(manifest) for manifest in manifests if manifest["kind"] not in _NEVER_REMOVED)


def in_order_of_removal(refs: Collection[ObjectRef]) -> list[ObjectRef]:
    """Return workloads first, so that nothing runs without its rights, and definitions last."""

    def rank(ref: ObjectRef) -> tuple[int, str, str]:
        return (0 if ref.kind in _WORKLOADS else 2 if ref.kind == _DEFINITION else 1, ref.kind, ref.name)

    return sorted((ref for ref in refs if ref.kind not in _NEVER_REMOVED), key=rank)
