"""Clusters that take the place of others: named as a replacement, or alike as after a rename.

The annotation ``roadstead.dev/replaces`` of the new cluster names the old one. Once git has removed the old
one, its delete waits until the new one is verified Ready as its manifest has it, and then has the guards of
any delete. Where what was to replace it no longer exists, nobody knows whether the delete is still meant: it
needs an approval.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.model.cluster.spec import OPERATION_FIELDS
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Action, Item, RecordedState
from shared.sentences import some_of

Replacing = Mapping[str, tuple[str, ...]]
"""By removed cluster, the clusters that are to replace it, or were."""


@dataclass(frozen=True)
class Replacement:
    """A removed cluster that others are to replace, or were; ``kind`` is what that holds."""

    by: tuple[str, ...]
    kind: HoldKind
    named: str = ""


def replaced_in(
    desired: DesiredFleet, recorded: Mapping[str, RecordedState], before: Replacing
) -> Mapping[str, Replacement]:
    """Return what a commit says of the clusters that it does not have."""
    present = desired.clusters.keys() | desired.invalid.keys()
    removed = recorded.keys() - present
    if not removed:
        return {}
    by: dict[str, set[str]] = {}
    for name, cluster in desired.clusters.items():
        if cluster.replaces in removed:
            by.setdefault(cluster.replaces, set()).add(name)
    for name, said in desired.may_replace.items():
        for old in said & removed:
            by.setdefault(old, set()).add(name)
    named = {old: Replacement(tuple(sorted(new)), HoldKind.AWAITS_REPLACEMENT) for old, new in by.items()}
    unknown = [cluster for cluster in desired.clusters.values() if _names_nobody(cluster, recorded, present)]
    others = ((old, _in_doubt(old, recorded, before, present, unknown)) for old in removed - named.keys())
    return named | {old: found for old, found in others if found}


def _names_nobody(cluster: Desired, recorded: Collection[str], present: Collection[str]) -> bool:
    """Return whether a cluster replaces one that the fleet does not have: it was deleted, or is misspelt."""
    old = cluster.replaces
    return bool(old) and old not in recorded and old not in present and not cluster.rebuild


def _in_doubt(
    old: str,
    recorded: Mapping[str, RecordedState],
    before: Replacing,
    present: Collection[str],
    unknown: Collection[Desired],
) -> Replacement | None:
    """Return what holds the delete of a cluster that nobody names, None for nothing."""
    earlier = {*before.get(old, ())}
    for cluster in unknown:
        if cluster.name not in recorded or cluster.name in earlier:
            return Replacement((cluster.name,), HoldKind.REPLACEMENT_UNKNOWN, cluster.replaces)
    going = (name for name in recorded if name not in present)
    earlier |= {name for name in going if recorded[name].document.get("replaces") == old}
    return Replacement(tuple(sorted(earlier)), HoldKind.REPLACEMENT_GONE) if earlier else None


def waiting_items(
    replaced: Mapping[str, Replacement], planned: Collection[Item], recorded: Mapping[str, RecordedState]
) -> Mapping[str, Item]:
    """Return the items of the clusters whose delete waits for others; ``planned`` are those of the commit."""
    items, waiting = {item.cluster: item for item in planned}, dict[str, Item]()
    for old, found in replaced.items():
        record = recorded[old]
        if record.deleting or found.kind is not HoldKind.AWAITS_REPLACEMENT:
            continue
        waits = tuple(name for name in found.by if not _is_ready(items[name], recorded.get(name)))
        if waits:
            details = {"new": " and ".join(waits), "first": waits[0], "old": old}
            hold = Hold(found.kind, details)
            waiting[old] = Item(
                old, Action.ON_HOLD, record.generation, record.uid, hold=hold, replacements=waits
            )
    return waiting


def _is_ready(item: Item, record: RecordedState | None) -> bool:
    """Return whether a cluster was verified Ready as its manifest has it."""
    if record is None or item.action is not Action.UNCHANGED:
        return False
    return record.ready and (item.uid, item.generation) == (record.uid, record.generation)


def holds_in_doubt(replaced: Mapping[str, Replacement]) -> Mapping[str, Hold]:
    """Return the holds of the deletes of which nobody knows whether they are still meant."""
    return {
        old: Hold(found.kind, {"new": " and ".join(found.by), "named": found.named, "old": old})
        for old, found in replaced.items()
        if found.kind is not HoldKind.AWAITS_REPLACEMENT
    }


def remembered(replaced: Mapping[str, Replacement], items: Collection[Item]) -> Replacing:
    """Return what the next plan has to know: git alone does not say what an earlier commit had replace."""
    held = {item.cluster for item in items if item.action is Action.ON_HOLD}
    waits = HoldKind.AWAITS_REPLACEMENT
    return {old: found.by for old, found in replaced.items() if found.kind is waits or old in held}


def awaited(items: Collection[Item]) -> Mapping[str, int]:
    """Return the clusters that deletes wait for and that may become Ready by themselves, with the generation.

    What is not carried out, or is deleted first, has another plan before that.
    """
    waits = {name for item in items for name in item.replacements}
    return {
        item.cluster: item.generation
        for item in items
        if item.cluster in waits and not (item.not_carried_out or item.action is Action.REBUILD)
    }


# A folder that was renamed: to the fleet, that is a removed cluster and a new one, without what ran there.
#
# A plan knows two commits, and not what happened between them: somebody may have renamed a folder, or
# deleted one cluster and created another. What the two documents have in common decides, in ``likeness``.
# An invalid manifest has no document, and may be that of any removed cluster, under another name.

_OF_DOCUMENT = ("environment", "class", "labels")
_OF_SPEC = ("resourceGroup", "nodeResourceGroup", "tags", "kubernetesVersion", "maintenanceWindows")
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
        rest = {key: value for key, value in spec.items() if key not in (*_OF_SPEC, *OPERATION_FIELDS)}
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
