"""Whose a cluster outside Azure is: a ConfigMap there says so.

It has what the tags of an AKS cluster have, under the same names, so that the same rules decide whether the
cluster is ours, another fleet's or another installation's.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.fleet.json_tree import Json
from shared.fleet.resource_ids import ObjectRef

OWNER_MAP = ObjectRef("v1", "ConfigMap", "roadstead", "kube-system")
GENERATION = "roadstead-generation"
"""The generation of the record whose job wrote the ConfigMap last."""


def owner_map(tags: Mapping[str, str]) -> Json:
    """Return the ConfigMap with these tags."""
    at = OWNER_MAP
    metadata = {"name": at.name, "namespace": at.namespace}
    return {"apiVersion": at.api_version, "kind": at.kind, "metadata": metadata, "data": dict(tags)}


def as_tagged(live: Json) -> Json:
    """Return the ConfigMap as a resource with tags."""
    return {"tags": {str(key): str(value) for key, value in (live.get("data") or {}).items()}}


def generation_in(live: Json) -> int:
    """Return the generation that the ConfigMap names, 0 for none."""
    written = str((live.get("data") or {}).get(GENERATION) or "")
    return int(written) if written.isascii() and written.isdecimal() and len(written) <= 18 else 0
