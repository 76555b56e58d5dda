"""Which new generation of a cluster is in no stage: that of a pin which somebody had go back."""

from __future__ import annotations

from shared.cluster.record import ClusterRecord
from simulation.history import FleetHistory


def goes_back(history: FleetHistory, before: ClusterRecord, after: ClusterRecord) -> bool:
    """Return whether nothing but the pin changes, which somebody had go back."""
    pins = [record.document.get("pin") or {} for record in (before, after)]
    same = {**before.document, "pin": None} == {**after.document, "pin": None}
    return same and history.may_go_back(after.name, pins[0].get("commit", ""), pins[1].get("commit", ""))
