"""Which new generation of a cluster is in no stage: one that goes back, or that waits for nobody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.cluster.record import ClusterRecord
from simulation.history import FleetHistory

_OWN = ("suspend", "deletionProtection", "drift", "lifetime", "expires", "sleep")


def goes_back(history: FleetHistory, before: ClusterRecord, after: ClusterRecord) -> bool:
    """Return whether nothing but the pin changes, which somebody had go back."""
    pins = [record.document.get("pin") or {} for record in (before, after)]
    same = {**before.document, "pin": None} == {**after.document, "pin": None}
    return same and history.may_go_back(after.name, pins[0].get("commit", ""), pins[1].get("commit", ""))


def is_own(before: ClusterRecord, after: ClusterRecord) -> bool:
    """Return whether a change does nothing in Azure, or suspends the cluster: it waits for nobody."""
    if before.document["spec"].get("suspend") != after.document["spec"].get("suspend"):
        return True
    return bool(_seen_by_azure(before.document) == _seen_by_azure(after.document))


def is_created_again(before: ClusterRecord, after: ClusterRecord) -> bool:
    """Return whether a commit has a missing cluster created again: it waits for nobody."""
    policy = after.document["spec"].get("drift", {})
    return before.finding == "ClusterMissing" and policy.get("missingCluster") == "recreate"


def _seen_by_azure(document: Mapping[str, Any]) -> Any:
    spec = {name: value for name, value in document["spec"].items() if name not in _OWN}
    return {**document, "spec": spec}
