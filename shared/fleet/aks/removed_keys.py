"""Labels and taints of node pools that git no longer has: Roadstead removes these, and no others.

Those of a policy, a person or AKS look the same in Azure; only the earlier manifest tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.fleet.json_tree import Json


def removed_keys(
    before: Json, after: Json, earlier: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the keys of labels, and the taints, to be removed from each pool, by its name in the manifest.

    ``before`` and ``after`` are stored forms of a cluster; ``earlier`` is what was not removed yet.
    """
    had = {pool["name"]: _keys(pool) for pool in before["spec"]["nodePools"]}
    found = {}
    for pool in after["spec"]["nodePools"]:
        name = pool["name"]
        gone = {*had.get(name, ()), *earlier.get(name, ())} - _keys(pool)
        if gone:
            found[name] = tuple(sorted(gone))
    return found


def _keys(pool: Json) -> set[str]:
    """Return the keys of labels, and the taints; these hold a colon, which no key does."""
    return {*(pool.get("nodeLabels") or {}), *(pool.get("nodeTaints") or ())}
