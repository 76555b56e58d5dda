"""How conditions are set."""

from __future__ import annotations

from dataclasses import replace

from shared.jobs.record import ClusterRecord, Condition


def with_condition(record: ClusterRecord, new: Condition) -> ClusterRecord:
    """Return the record with a condition set; its ``since`` changes only when its status does."""
    before = record.condition(new.type)
    if before is None:
        return replace(record, conditions=(*record.conditions, new))
    if before.status == new.status:
        new = replace(new, since=before.since)
    conditions = (new if condition.type == new.type else condition for condition in record.conditions)
    return replace(record, conditions=tuple(conditions))
