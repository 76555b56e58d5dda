"""Which systems stay on clusters although a commit takes namespaces from them: the guards of systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shared.fleet.planning.holds import Hold, HoldKind
from shared.fleet.planning.plan import Recorded
from shared.fleet.planning.system_removals import Loss, losses
from shared.fleet.resolve.desired_fleet import DesiredFleet
from shared.fleet.systems.cluster_systems import systems_in


@dataclass(frozen=True)
class Retained:
    """The systems that stay as they are on a cluster, and why."""

    names: tuple[str, ...]
    hold: Hold


def retained_systems(
    desired: DesiredFleet, recorded: Mapping[str, Recorded], approved: frozenset[str]
) -> Mapping[str, Retained]:
    """Return what stays, by cluster; nothing where an operator ``approved``, or the budget allows it."""
    lost = dict(_lost(desired, recorded))
    if desired.guards is None:
        return {name: _retained(found, HoldKind.SYSTEMS_FLEET_FILE) for name, found in lost.items()}
    waiting = {name: found for name, found in lost.items() if name not in approved}
    removed = sum(len(loss.namespaces) for found in waiting.values() for loss in found)
    budget = desired.guards.namespace_budget
    if removed > budget:
        counts = {"removed": str(removed), "budget": str(budget)}
        return {
            name: _retained(found, HoldKind.NAMESPACE_BUDGET, **counts) for name, found in waiting.items()
        }
    protected = {name: [loss for loss in found if loss.protected] for name, found in waiting.items()}
    return {name: _retained(found, HoldKind.SYSTEM_PROTECTION) for name, found in protected.items() if found}


def _lost(desired: DesiredFleet, recorded: Mapping[str, Recorded]) -> Iterator[tuple[str, Sequence[Loss]]]:
    for name, record in recorded.items():
        before = systems_in(record.document)
        if not before or record.deleting:
            continue
        cluster = desired.clusters.get(name)
        found = losses(before, cluster.systems) if cluster is not None else ()
        if found:
            yield name, found


def _retained(found: Sequence[Loss], kind: HoldKind, **details: str) -> Retained:
    names = tuple(loss.system for loss in found)
    return Retained(names, Hold(kind, {"systems": ", ".join(map(str, found)), **details}))
