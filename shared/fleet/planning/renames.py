"""A folder that was renamed: to the fleet, that is a removed cluster and a new one, without what ran there.

A plan knows two commits, and not what happened between them: somebody may have renamed a folder, or deleted
one cluster and created another. What the two documents have in common decides, in ``likeness``. An invalid
manifest has no document, and may be that of any removed cluster, under another name.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shared.fleet.json_tree import Json
from shared.fleet.planning.holds import Hold, HoldKind
from shared.some_of import some_of

_OF_DOCUMENT = ("environment", "class", "labels")
_OF_SPEC = ("resourceGroup", "nodeResourceGroup", "tags", "kubernetesVersion", "maintenanceWindows")
_OF_OPERATION = ("deletionProtection", "suspend", "drift")
"""What does not identify a cluster: who deletes one changes it first."""
MOST_DIFFERENT = 2
"""Of ``_OF_DOCUMENT`` and ``_OF_SPEC``: who renames a folder may change as much in the same commit."""
_NAMED = 3
_AZURE_NAMES = ("dnsPrefix", "fqdnSubdomain", "nodeResourceGroup")


@dataclass(frozen=True)
class Look:
    """What makes a cluster recognisable under another name; its own name is replaced wherever it occurs."""

    spec: str
    varying: Mapping[str, str]
    azure_names: Mapping[str, str]

    @classmethod
    def of(cls, document: Json) -> Look:
        """Return what a stored form has of that."""
        name, spec = document["name"], document["spec"]
        own_name = re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")
        varying = {field: document.get(field) for field in _OF_DOCUMENT}
        varying |= {field: spec.get(field) for field in _OF_SPEC}
        rest = {key: value for key, value in spec.items() if key not in (*_OF_SPEC, *_OF_OPERATION)}
        return cls(
            _text(own_name, rest),
            {field: _text(own_name, value) for field, value in varying.items()},
            {field: str(spec[field]) for field in _AZURE_NAMES if spec.get(field)},
        )

    @property
    def keys(self) -> Iterator[tuple[str, str]]:
        """What two clusters that are alike have one of in common."""
        yield "", self.spec
        yield from self.azure_names.items()


def likeness(removed: Look, added: Look) -> str:
    """Return what a removed and a new cluster have in common that makes them look like one, "" for nothing.

    It is a name in Azure that both manifests give; or the spec, where at most ``MOST_DIFFERENT`` of the
    fields differ that often do: the environment, the class, labels, tags and the like.
    """
    for field, name in removed.azure_names.items():
        if added.azure_names.get(field) == name:
            return f"the {field} {name}"
    differing = [field for field, value in removed.varying.items() if added.varying[field] != value]
    if removed.spec != added.spec or len(differing) > MOST_DIFFERENT:
        return ""
    return f"the same spec, but for {' and '.join(differing)}" if differing else "the same spec"


@dataclass(frozen=True)
class Rename:
    """The new name that a removed cluster seems to have, and what makes it seem so."""

    new: str
    common: str


def renames(removed: Mapping[str, Json], added: Mapping[str, Json]) -> Mapping[str, Rename]:
    """Return the new name of each removed cluster that looks renamed; both have stored forms by name.

    Each cluster is in one pair at most. The work grows with the clusters, and the pairs of one spec.
    """
    looks = {name: Look.of(added[name]) for name in sorted(added)}
    by_key = defaultdict[tuple[str, str], list[str]](list)
    for name, look in looks.items():
        for key in look.keys:
            by_key[key].append(name)
    found: dict[str, Rename] = {}
    for old in sorted(removed):
        look = Look.of(removed[old])
        candidates = (new for key in look.keys for new in by_key.get(key, ()) if new in looks)
        pairs = (Rename(new, likeness(look, looks[new])) for new in candidates)
        rename = next((pair for pair in pairs if pair.common), None)
        if rename is not None:
            found[old] = rename
            del looks[rename.new]
    return found


def rename_holds(
    removed: Mapping[str, Json], added: Mapping[str, Json], approved: frozenset[str]
) -> Mapping[str, Hold]:
    """Return the hold of both clusters of each pair that looks renamed, unless its delete is approved."""
    holds: dict[str, Hold] = {}
    for old, found in renames(removed, added).items():
        if old not in approved:
            details = {"old": old, "new": found.new, "common": found.common}
            holds |= {old: Hold(HoldKind.RENAME, details), found.new: Hold(HoldKind.RENAMED, details)}
    return holds


def unread_holds(removed: Collection[str], unread: Collection[str]) -> Mapping[str, Hold]:
    """Return the hold of each removed cluster while manifests of others are invalid: ``unread``.

    Whoever moves a folder and leaves the name in its manifest would otherwise delete the cluster. Flux prunes
    nothing either while a part of its source is invalid.
    """
    new = some_of(sorted(unread), _NAMED)
    return {old: Hold(HoldKind.UNREAD, {"old": old, "new": new}) for old in removed} if unread else {}


def _text(own_name: re.Pattern[str], value: Any) -> str:
    return json.dumps(_without(own_name, value), sort_keys=True)


def _without(own_name: re.Pattern[str], value: Any) -> Any:
    """Return a value with the cluster's own name replaced wherever it stands alone or between other marks."""
    if isinstance(value, str):
        return own_name.sub("*", value)
    if isinstance(value, Mapping):
        return {key: _without(own_name, below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [_without(own_name, item) for item in value]
    return value
