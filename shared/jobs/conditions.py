"""How conditions are set, and the one that says whether Azure is as git has it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from shared.jobs.drift import Drift
from shared.jobs.record import ClusterRecord, Condition, ConditionReason

IN_SYNC = "InSync"
"""The condition of the comparison with git. ``Ready`` is another one: a cluster that differs still works."""
MESSAGE_LIMIT = 1000


def with_condition(record: ClusterRecord, new: Condition) -> ClusterRecord:
    """Return the record with a condition set; its ``since`` changes only when its status does."""
    before = record.condition(new.type)
    if before is None:
        return replace(record, conditions=(*record.conditions, new))
    if before.status == new.status:
        new = replace(new, since=before.since)
    conditions = (new if condition.type == new.type else condition for condition in record.conditions)
    return replace(record, conditions=tuple(conditions))


def with_in_sync(record: ClusterRecord, drift: Drift | None, now: datetime) -> ClusterRecord:
    """Return the record of a cluster with this drift, None for none."""
    reason = ConditionReason.DRIFTED if drift else ConditionReason.DONE
    message = f"differs from git in {drift}"[:MESSAGE_LIMIT] if drift else ""
    condition = Condition(IN_SYNC, drift is None, reason, message, now)
    return with_condition(replace(record, drift=drift), condition)
