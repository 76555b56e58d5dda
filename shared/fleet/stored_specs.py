"""The stored form of a cluster's spec: written with every default, and read by the current models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shared.fleet.manifests.cluster.existing import EXISTING
from shared.fleet.manifests.cluster.spec import ClusterSpec
from shared.fleet.manifests.existing_spec import EMPTY, FIELDS, ExistingSpec
from shared.fleet.recently_read import recently_read


def is_attached(document: Mapping[str, Any]) -> bool:
    """Return whether a cluster in its stored form is outside Azure."""
    return bool(document["spec"].get("provider") == EXISTING)


@recently_read
def read_spec(stored: Mapping[str, Any]) -> ClusterSpec:
    """Return a spec as the current model of its provider reads it; raise pydantic's ValidationError."""
    if stored.get("provider") == EXISTING:
        return ExistingSpec.model_validate(dict(stored))
    return ClusterSpec.model_validate(_typed(stored))


def dumped_spec(spec: ClusterSpec) -> dict[str, Any]:
    """Return the stored form of a spec; of a cluster outside Azure without what only AKS has."""
    written = spec.model_dump(by_alias=True, mode="json", exclude_none=True)
    if isinstance(spec, ExistingSpec):
        return {key: value for key, value in written.items() if key in FIELDS or key in EMPTY}
    return written


_NOW_TYPED = ("fqdnSubdomain", "enableRBAC", "enableFIPS", "schedulerProfile", "hostedSystemProfile")
_NOW_TYPED_IN_POOLS = ("type", "virtualMachinesProfile")
"""The properties that the version before knew only below azure.properties."""


def _typed(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored spec with the properties that have a field of their own since, in that field."""
    pools = spec.get("nodePools") or ()
    typed = [_moved(pool, _NOW_TYPED_IN_POOLS) for pool in pools]
    unchanged = all(after is before for after, before in zip(typed, pools, strict=True))
    return _moved(spec if unchanged else {**spec, "nodePools": typed}, _NOW_TYPED)


def _moved(part: Mapping[str, Any], names: Iterable[str]) -> Mapping[str, Any]:
    untyped = (part.get("azure") or {}).get("properties") or {}
    moved = {name: untyped[name] for name in names if name in untyped}
    if not moved:
        return part
    rest = {name: value for name, value in untyped.items() if name not in moved}
    return {**moved, **part, "azure": {**part["azure"], "properties": rest}}
