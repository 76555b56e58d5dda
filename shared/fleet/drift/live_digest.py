"""A digest of what a comparison looks at in a cluster, so that an unchanged cluster is not compared again."""

from __future__ import annotations

from typing import Any

from shared.fleet.desired import digest_of
from shared.fleet.json_tree import Json

_COMPARED = ("location", "extendedLocation", "kind", "sku", "tags", "identity")
_PASSING = frozenset(("provisioningState", "status", "powerState", "agentPoolProfiles"))
"""Of a cluster: what an operation is at, and whether it runs; both have findings of their own."""
_PASSING_OF_POOLS = frozenset(("provisioningState", "status", "eTag", "virtualMachineNodesStatus"))
_AUTOSCALED = frozenset((*_PASSING_OF_POOLS, "count"))


def live_digest(existing: Json) -> str:
    """Return a digest of a cluster as Azure shows it, without what comes and goes by itself.

    The number of nodes under an autoscaler is such a thing. Two clusters of one digest differ from a manifest
    in the same fields. A field that the manifest leaves out counts as well: nobody but the record knows.
    """
    properties = existing["properties"]
    pools = sorted(map(_pool, properties.get("agentPoolProfiles") or ()), key=lambda pool: str(pool["name"]))
    rest = {key: value for key, value in properties.items() if key not in _PASSING}
    return digest_of([{key: existing.get(key) for key in _COMPARED}, rest, pools])


def _pool(profile: Json) -> dict[str, Any]:
    passing = _AUTOSCALED if profile.get("enableAutoScaling") else _PASSING_OF_POOLS
    return {key: value for key, value in profile.items() if key not in passing}
