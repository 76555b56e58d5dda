"""A folder that was renamed: to the fleet, that is a removed cluster and a new one, without what ran there.

Two clusters look like one that was renamed if they have the same spec, except for their own name wherever it
occurs and for what often differs as well; or if they have a name in Azure in common that the manifest gives.
A manifest that is invalid has no spec, and may be that of any removed cluster, under another name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from shared.fleet.json_tree import Json
from shared.fleet.planning.holds import Hold, HoldKind
from shared.some_of import some_of

_MAY_DIFFER = (
    *("resourceGroup", "nodeResourceGroup", "tags", "kubernetesVersion", "maintenanceWindows"),
    *("deletionProtection", "suspend", "drift"),
)
_NAMED = 3
_AZURE_NAMES = ("dnsPrefix", "fqdnSubdomain", "nodeResourceGroup")


def renames(removed: Mapping[str, Json], added: Mapping[str, Json]) -> Mapping[str, str]:
    """Return the new name of each removed cluster that looks renamed; both have stored forms by name.

    Each cluster is in one pair at most. The work grows with the number of clusters, not of pairs.
    """
    by_look: dict[tuple[str, str], list[str]] = {}
    for name in sorted(added):
        for look in _looks(name, added[name]["spec"]):
            by_look.setdefault(look, []).append(name)
    pairs: dict[str, str] = {}
    for name in sorted(removed):
        alike = (new for look in _looks(name, removed[name]["spec"]) for new in by_look.get(look, ()))
        found = next((new for new in alike if new not in pairs.values()), None)
        if found is not None:
            pairs[name] = found
    return pairs


def rename_holds(
    removed: Mapping[str, Json], added: Mapping[str, Json], approved: frozenset[str]
) -> Mapping[str, Hold]:
    """Return the hold of both clusters of each pair that looks renamed, unless its delete is approved."""
    holds: dict[str, Hold] = {}
    for old, new in renames(removed, added).items():
        if old not in approved:
            names = {"old": old, "new": new}
            holds |= {old: Hold(HoldKind.RENAME, names), new: Hold(HoldKind.RENAMED, names)}
    return holds


def unread_holds(removed: Collection[str], unread: Collection[str]) -> Mapping[str, Hold]:
    """Return the hold of each removed cluster while manifests of others are invalid: ``unread``.

    Whoever moves a folder and leaves the name in its manifest would otherwise delete the cluster. Flux prunes
    nothing either while a part of its source is invalid.
    """
    new = some_of(sorted(unread), _NAMED)
    return {old: Hold(HoldKind.UNREAD, {"old": old, "new": new}) for old in removed} if unread else {}


def _looks(name: str, spec: Json) -> list[tuple[str, str]]:
    """Return what makes a cluster recognisable under another name: its spec, and its own names in Azure."""
    rest = {key: value for key, value in spec.items() if key not in _MAY_DIFFER}
    own_name = re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")
    looks = [("spec", json.dumps(_without(own_name, rest), sort_keys=True))]
    return looks + [(key, str(spec[key])) for key in _AZURE_NAMES if spec.get(key)]


def _without(own_name: re.Pattern[str], value: Any) -> Any:
    """Return a value with the cluster's own name replaced wherever it stands alone or between other marks."""
    if isinstance(value, str):
        return own_name.sub("*", value)
    if isinstance(value, Mapping):
        return {key: _without(own_name, below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [_without(own_name, item) for item in value]
    return value
