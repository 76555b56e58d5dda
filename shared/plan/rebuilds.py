"""Rebuilds: a manifest asks that another cluster takes the place of the one that runs.

The annotation ``roadstead.dev/rebuild`` is a time. A cluster that was created for an earlier one, or for
none, is deleted and created again from the same manifest. An earlier time, and none, ask for nothing: so
nobody deletes a cluster by taking a commit back. A rebuild has the guards of a delete.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.language.desired import Desired
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Recorded


def asks_for_rebuild(cluster: Desired, record: Recorded) -> bool:
    """Return whether a manifest asks for another life of its cluster.

    A record that is recovering does not know for which rebuild the present life was created.
    """
    return cluster.rebuild > record.rebuilt_for and not record.recovering


def deletes_of(
    desired: DesiredFleet, recorded: Mapping[str, Recorded], approved: frozenset[str]
) -> frozenset[str]:
    """Return the clusters that a commit deletes, for good or for a rebuild, and that nobody approved."""
    present = desired.clusters.keys() | desired.invalid.keys()
    rebuilt = (
        name
        for name, cluster in desired.clusters.items()
        if cluster.rebuild and name in recorded and asks_for_rebuild(cluster, recorded[name])
    )
    names = {*(recorded.keys() - present), *rebuilt}
    return frozenset(name for name in names - approved if not recorded[name].deleting)


def guard_of_delete(spec: Mapping[str, Any], deletes: int, budget: int, now: datetime) -> Hold | None:
    """Return the guard that holds the delete of a cluster with this accepted spec, None when none does.

    ``deletes`` is how many clusters the commit deletes, for good or for a rebuild.
    """
    suspended = _suspension(spec, now)
    if suspended:
        return suspended
    if spec.get("deletionProtection"):
        return Hold(HoldKind.DELETION_PROTECTION)
    if deletes > budget:
        return Hold(HoldKind.DELETE_BUDGET, {"removed": str(deletes), "budget": str(budget)})
    return None


def hold_of_rebuild(
    cluster: Desired,
    record: Recorded,
    desired: DesiredFleet,
    *,
    recorded: int,
    deletes: int,
    approved: bool,
    now: datetime,
) -> Hold | None:
    """Return the guard that holds a rebuild, None when none does; no approval counts without a fleet.yaml.

    A manifest that suspends the cluster would leave the place of the deleted one empty.
    """
    if desired.guards is None:
        return Hold(HoldKind.INVALID_FLEET_FILE).of_rebuild(cluster.rebuild)
    if approved:
        return None
    budget = desired.guards.delete_budget.of(recorded)
    guard = guard_of_delete(record.document["spec"], deletes, budget, now)
    guard = guard or _suspension(cluster.document()["spec"], now)
    return guard and guard.of_rebuild(cluster.rebuild)


def _suspension(spec: Mapping[str, Any], now: datetime) -> Hold | None:
    suspended = spec.get("suspend")
    if suspended and datetime.fromisoformat(suspended["until"]) > now:
        details = {field: suspended[field] for field in ("owner", "reason", "until")}
        return Hold(HoldKind.SUSPENSION, details)
    return None
