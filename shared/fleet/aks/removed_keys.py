"""Labels and taints of node pools that git had and no longer has: Roadstead removes these, and no others.

In Azure, a label of a policy, a person or AKS looks the same; only the earlier manifest tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.fleet.json_tree import Json


def keys_to_remove(
    before: Json, after: Json, earlier: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the keys of labels, and the taints, to remove from each pool, by its name in the manifest.

    ``before`` and ``after`` are stored forms of a cluster; ``earlier`` is what still had to be removed.
    """
    had = {pool["name"]: _keys(pool) for pool in before["spec"]["nodePools"]}
    found = {}
    for pool in after["spec"]["nodePools"]:
        name = pool["name"]
        removed = {*had.get(name, ()), *earlier.get(name, ())} - _keys(pool)
        if removed:
            found[name] = tuple(sorted(removed))
    return found


def _keys(pool: Json) -> set[str]:
    """Return the keys of labels, and the taints; these hold a colon, which no key does."""
    return {*(pool.get("nodeLabels") or {}), *(pool.get("nodeTaints") or ())}
