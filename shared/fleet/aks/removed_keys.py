"""Labels and taints of node pools that git had and no longer has: Roadstead removes these, and no others.

In Azure, a label from a policy, an operator or AKS looks the same: only the earlier manifest identifies ours.
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
