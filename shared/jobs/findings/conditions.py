"""How conditions are set, and those that say how the cluster as a whole does."""

from __future__ import annotations

from datetime import datetime

from shared.frozen import replace
from shared.jobs.drift import Drift
from shared.jobs.record import READY, ClusterRecord, Condition, ConditionReason, Phase
from shared.masking import cut

STALLED = "Stalled"
"""With ``READY``, a condition of the whole cluster."""
IN_SYNC = "InSync"
"""The condition of the comparison with git. ``Ready`` is another one: a cluster that differs still works."""
FLUX_REPORTS = "FluxReports"
"""The condition of a cluster whose Flux reports what it does: whether that arrives. ``Ready`` is another."""
MESSAGE_LIMIT = 1000
_NOT_COMPARED = (
    "Azure was changing the cluster, or somebody was, when its job ended; the next sweep compares it"
)


def with_condition(record: ClusterRecord, new: Condition) -> ClusterRecord:
    """Return the record with a condition set; its ``since`` changes only when its status does.

    A ``since`` after the present moment is that of a wrong clock, and ends now.
    """
    return replace(record, conditions=_with(record.conditions, new))


def _with(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    before = next((each for each in conditions if each.type == new.type), None)
    if before is None:
        return (*conditions, new)
    if before.status == new.status and before.since < new.since:
        new = replace(new, since=before.since)
    return tuple(new if each is before else each for each in conditions)


def without_condition(record: ClusterRecord, kind: str) -> ClusterRecord:
    """Return the record without a condition; the same one where it has none."""
    if record.condition(kind) is None:
        return record
    return replace(record, conditions=tuple(each for each in record.conditions if each.type != kind))


def with_summary(record: ClusterRecord, now: datetime) -> ClusterRecord:
    """Return the record with its conditions Ready and Stalled, as its phase and job say.

    A verification or a sweep makes it Ready, a failure not Ready, and so does a job that runs. It is stalled
    when the job makes no progress: by itself it may never do so again.
    """
    job, phase = record.job, record.phase
    stalled, failure = phase in (Phase.STALLED, Phase.FAILED), job.step.failure if record.failed else None
    set_to = {}
    if job.active:
        set_to[READY] = (
            False,
            phase.value,
            job.reason or f"generation {record.generation} is not verified yet",
        )
    set_to[STALLED] = (stalled, failure.kind if failure else phase.value, job.reason if stalled else "")
    conditions = record.conditions
    for kind, (status, reason, message) in set_to.items():
        new = Condition(kind, status, reason, cut(message, MESSAGE_LIMIT), now, record.generation, now)
        conditions = _with(conditions, new)
    return replace(record, conditions=conditions)


def with_in_sync(
    record: ClusterRecord, drift: Drift | None, now: datetime, *, compared: bool = True
) -> ClusterRecord:
    """Return the record of a cluster with this drift, None for none; the same record if that is no news.

    Where the whole cluster was not ``compared``, no drift means that nothing is known.
    """
    status: bool | None = False
    if drift:
        reason, message = ConditionReason.DRIFTED, cut(f"differs from git in {drift}", MESSAGE_LIMIT)
    elif compared:
        status, reason, message = True, ConditionReason.DONE, ""
    else:
        status, reason, message = None, ConditionReason.NOT_COMPARED, _NOT_COMPARED
    new = Condition(IN_SYNC, status, reason, message, now, record.generation, now)
    before, changed = record.condition(IN_SYNC), replace(record, drift=drift)
    same = before is not None and replace(new, since=before.since, verified=before.verified) == before
    if before is not None and before.since <= now and same:
        return changed
    return with_condition(changed, new)
