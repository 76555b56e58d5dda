"""Replacements: a cluster that takes the place of another one, which runs until then.

The annotation ``roadstead.dev/replaces`` of the new cluster names the old one. Once git has removed the old
one, its delete waits until the new one is verified Ready as its manifest has it, and then has the guards of
any delete. Where what was to replace it no longer exists, nobody knows whether the delete is still meant: it
needs an approval.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from shared.fleet.desired import Desired
from shared.fleet.planning.holds import Hold, HoldKind
from shared.fleet.planning.plan import Action, Item, Recorded
from shared.fleet.resolve.desired_fleet import DesiredFleet

Replacing = Mapping[str, tuple[str, ...]]
"""By removed cluster, the clusters that are to replace it, or were."""


@dataclass(frozen=True)
class Replaced:
    """A removed cluster that others are to replace, or were; ``kind`` is what that holds.

    ``named`` is the cluster that a new one names instead, "" for none.
    """

    by: tuple[str, ...]
    kind: HoldKind
    named: str = ""


def replaced_in(
    desired: DesiredFleet, recorded: Mapping[str, Recorded], before: Replacing
) -> Mapping[str, Replaced]:
    """Return what a commit says of the clusters that it does not have.

    ``before`` is what the plan before knew.
    """
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
    named = {old: Replaced(tuple(sorted(new)), HoldKind.AWAITS_REPLACEMENT) for old, new in by.items()}
    unknown = [each for each in desired.clusters.values() if _names_nobody(each, recorded, present)]
    others = ((old, _in_doubt(old, recorded, before, present, unknown)) for old in removed - named.keys())
    return named | {old: found for old, found in others if found}


def _names_nobody(cluster: Desired, recorded: Collection[str], present: Collection[str]) -> bool:
    """Return whether a cluster replaces one that the fleet does not have: it was deleted, or is misspelt.

    One that is rebuilt may have replaced another one long ago.
    """
    old = cluster.replaces
    return bool(old) and old not in recorded and old not in present and not cluster.rebuild


def _in_doubt(
    old: str,
    recorded: Mapping[str, Recorded],
    before: Replacing,
    present: Collection[str],
    unknown: Collection[Desired],
) -> Replaced | None:
    """Return what holds the delete of a cluster that nobody names, None for nothing.

    A new cluster may have meant it; what an earlier commit had replace it may be gone.
    """
    earlier = {*before.get(old, ())}
    for cluster in unknown:
        if cluster.name not in recorded or cluster.name in earlier:
            return Replaced((cluster.name,), HoldKind.REPLACEMENT_UNKNOWN, cluster.replaces)
    going = (name for name in recorded if name not in present)
    earlier |= {name for name in going if recorded[name].document.get("replaces") == old}
    return Replaced(tuple(sorted(earlier)), HoldKind.REPLACEMENT_GONE) if earlier else None


def waiting_items(
    replaced: Mapping[str, Replaced], planned: Collection[Item], recorded: Mapping[str, Recorded]
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


def _is_ready(item: Item, record: Recorded | None) -> bool:
    """Return whether a cluster was verified Ready as its manifest has it."""
    if record is None or item.action is not Action.UNCHANGED:
        return False
    return record.ready and (item.uid, item.generation) == (record.uid, record.generation)


def holds_in_doubt(replaced: Mapping[str, Replaced]) -> Mapping[str, Hold]:
    """Return the holds of the deletes of which nobody knows whether they are still meant."""
    return {
        old: Hold(found.kind, {"new": " and ".join(found.by), "named": found.named, "old": old})
        for old, found in replaced.items()
        if found.kind is not HoldKind.AWAITS_REPLACEMENT
    }


def remembered(replaced: Mapping[str, Replaced], items: Collection[Item]) -> Replacing:
    """Return what the next plan has to know: git alone does not say what an earlier commit had replace.

    A delete that was approved has nothing to wait for any more.
    """
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
