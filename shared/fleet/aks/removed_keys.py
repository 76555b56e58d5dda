"""Labels and taints of node pools that git had, and has no more: they are taken away, and no others.

What a policy, a person or AKS has put on a pool looks the same in Azure; only what was git's before tells.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.fleet.json_tree import Json


def dropped(before: Json, after: Json, earlier: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the keys of labels, and the taints, to be taken from each pool, by its name in the manifest.

    ``before`` and ``after`` are stored forms of a cluster; ``earlier`` is what was still to be taken away.
    """
    had = {pool["name"]: _marks(pool) for pool in before["spec"]["nodePools"]}
    found = {}
    for pool in after["spec"]["nodePools"]:
        name = pool["name"]
        gone = {*had.get(name, ()), *earlier.get(name, ())} - _marks(pool)
        if gone:
            found[name] = tuple(sorted(gone))
    return found


def _marks(pool: Json) -> set[str]:
    """Return the keys of labels, and the taints; these hold a colon, which no key does."""
    return {*(pool.get("nodeLabels") or {}), *(pool.get("nodeTaints") or ())}
