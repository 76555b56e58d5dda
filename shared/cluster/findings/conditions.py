"""How conditions are set, and which clusters sweeps compare."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from shared.azure.drift.activity import FieldAuthor
from shared.cluster.divergence.drift import Drift
from shared.cluster.failures.errors import (
    ClusterContested,
    ClusterMissing,
    ClusterStopped,
    NoLongerReady,
)
from shared.cluster.job import Failure
from shared.cluster.record import FINDINGS, READY, ClusterRecord, finding_of_sweep
from shared.cluster.record_parts import Absence, Condition, ConditionReason, Phase
from shared.frozen import replace
from shared.language.model.cluster.drift import DriftRule
from shared.masking import cut
from shared.sentences import moment

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
    """Return the record with a condition set; its ``since`` changes only when its status does."""
    return replace(record, conditions=_with(record.conditions, new))


def _with(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    before = next((condition for condition in conditions if condition.type == new.type), None)
    if before is None:
        return (*conditions, new)
    if before.status == new.status:
        new = replace(new, since=before.since)
    return tuple(new if condition is before else condition for condition in conditions)


def without_condition(record: ClusterRecord, kind: str) -> ClusterRecord:
    """Return the record without a condition; the same one where it has none."""
    if record.condition(kind) is None:
        return record
    return replace(
        record, conditions=tuple(condition for condition in record.conditions if condition.type != kind)
    )


def with_summary(record: ClusterRecord, now: datetime) -> ClusterRecord:
    """Return the record with its conditions Ready and Stalled, as its phase and job say.

    A verification or a sweep makes it Ready, a failure not Ready, and so does a job that runs, unless that is
    its sleep: what was verified before counts as long as nothing else is known. It is stalled
    when the job makes no progress: by itself it may never do so again.
    """
    job, phase = record.job, record.phase
    stalled = phase in (Phase.STALLED, Phase.FAILED)
    failure = job.step.failure if record.failed or record.refused else None
    set_to = {}
    if job.active and not record.sleep_job_runs:
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
    if record.trial:
        differs = f"; differs from git in {drift}" if drift else ""
        reason, message = ConditionReason.TRIED, cut(f"{record.trial}{differs}", MESSAGE_LIMIT)
    elif drift:
        reason, message = ConditionReason.DRIFTED, cut(f"differs from git in {drift}", MESSAGE_LIMIT)
    elif compared:
        status, reason, message = True, ConditionReason.DONE, ""
    else:
        status, reason, message = None, ConditionReason.NOT_COMPARED, _NOT_COMPARED
    new = Condition(IN_SYNC, status, reason, message, now, record.generation, now)
    before, changed = (
        record.condition(IN_SYNC),
        replace(record, divergence=replace(record.divergence, drift=drift)),
    )
    same = before is not None and replace(new, since=before.since, verified=before.verified) == before
    if before is not None and before.since <= now and same:
        return changed
    return with_condition(changed, new)


# Which clusters sweeps compare, what they found, and whether the last job says why one is not Ready.

_CLOSED = frozenset(kind.__name__ for kind in (ClusterMissing, ClusterStopped, ClusterContested))


def is_at_rest(record: ClusterRecord) -> bool:
    """Return whether sweeps compare a cluster: it was verified Ready, and no job changes it."""
    unchanged = record.failed or record.phase is Phase.SUSPENDED
    return record.idle or (unchanged and record.was_ready and not record.deleting)


def own_failure(record: ClusterRecord) -> Failure | None:
    """Return the failure with which the job itself ended, whatever a sweep has found since; None for none."""
    failure = record.job.step.failure if record.failed and not record.finding else None
    return record.job.earlier or failure


def kind_found(record: ClusterRecord) -> str:
    """Return the class of what a sweep found of a whole cluster, such as ClusterMissing; "" for nothing.

    A suspension goes on whatever a sweep finds: there the condition InSync says it.
    """
    in_sync = record.condition(IN_SYNC)
    if record.phase is Phase.SUSPENDED and in_sync is not None and in_sync.reason in FINDINGS:
        return in_sync.reason
    return finding_of_sweep(record.finding)


def found_of(record: ClusterRecord) -> str:
    """Return what a sweep found of a whole cluster, as a sentence after its class; "" for nothing."""
    kind, in_sync = kind_found(record), record.condition(IN_SYNC)
    if record.phase is Phase.SUSPENDED and kind and in_sync is not None:
        return f"{kind}: {in_sync.message}"
    return record.job.reason if kind else ""


def is_closed(record: ClusterRecord) -> bool:
    """Return whether no check enters a cluster: a sweep found it missing, stopped or contested.

    One on which an operation failed runs on, and its Flux may be broken as well.
    """
    return kind_found(record) in _CLOSED


def is_exempt(record: ClusterRecord) -> bool:
    """Return whether what a sweep found of a whole cluster is ignored: an exemption has it so."""
    return bool(record.exemption and found_of(record)) and record.job.earlier is None


def shown_phase(record: ClusterRecord) -> Phase:
    """Return the phase that people see: a cluster is not Failed that an exemption has missing or stopped."""
    if record.phase is Phase.DELETING and record.desired.is_attached:
        return Phase.RELEASING
    return Phase.EXEMPT if record.finding and is_exempt(record) else record.phase


def is_unfinished(record: ClusterRecord) -> bool:
    """Return whether the last job did not verify a cluster, and says why itself: it failed, or waits."""
    return record.phase is Phase.SUSPENDED or own_failure(record) is not None


# What is known of a cluster that is missing or stopped, and the exemption that has it so. Pure.

_EXEMPTED_AS: Mapping[str, str] = {
    ClusterMissing.__name__: "missingCluster",
    ClusterStopped.__name__: "stoppedCluster",
}
"""What the fields of an exemption call what was found."""

_DONE: Mapping[str, str] = {ClusterMissing.__name__: "deleted", ClusterStopped.__name__: "stopped"}


def exemption_of(record: ClusterRecord, found: type[NoLongerReady], now: datetime) -> DriftRule | None:
    """Return the rule by which it is ignored now that a cluster is missing or stopped, None for none."""
    policy = None if record.desired.problem else record.desired.spec.drift
    return policy.exemption(_EXEMPTED_AS[found.__name__], now) if policy else None


def loss_of(record: ClusterRecord, error: NoLongerReady | None, now: datetime) -> Absence | None:
    """Return what is known after a finding; one that stays keeps its time, and who caused it."""
    if not isinstance(error, ClusterMissing | ClusterStopped):
        return None
    before = record.observation.loss
    loss = before if before is not None and before.kind == error.kind else Absence(error.kind, now)
    rule = exemption_of(record, type(error), now)
    exemption, expires = (rule.name, rule.expires or "") if rule else ("", "")
    return replace(loss, act=error.act or loss.act, exemption=exemption, expires=expires)


def reassessed(record: ClusterRecord, now: datetime) -> ClusterRecord:
    """Return the record with the exemption that counts now for a missing or stopped cluster."""
    loss = record.observation.loss
    found = next(
        (error for error in (ClusterMissing, ClusterStopped) if loss and error.__name__ == loss.kind), None
    )
    return (
        replace(record, observation=replace(record.observation, loss=loss_of(record, found(""), now)))
        if found
        else record
    )


def with_act(error: NoLongerReady, act: FieldAuthor | None) -> NoLongerReady:
    """Return what was found of a cluster with who deleted or stopped it; None: that is not known."""
    if act is None or error.kind not in _DONE:
        return error
    return type(error)(f"{error}; {_DONE[error.kind]} {moment(act.at)} by {act.by}", act=act)


def act_known(record: ClusterRecord, error: NoLongerReady) -> FieldAuthor | None:
    """Return who did what was found, as an earlier sweep has named them; None where none has."""
    same = record.observation.loss is not None and record.observation.loss.kind == error.kind
    return record.observation.loss.act if same and record.observation.loss else None


def unnamed_since(record: ClusterRecord) -> datetime | None:
    """Return since when nobody is known who deleted or stopped a cluster, None where that is not asked."""
    loss = record.observation.loss
    return loss.since if loss is not None and loss.act is None and found_of(record) else None


def exempt_text(record: ClusterRecord) -> str:
    """Return by which exemption what was found is ignored, as a sentence; "" where it is not."""
    policy = record.desired.spec.drift if is_exempt(record) else None
    rule = next((rule for rule in policy.rules if rule.name == record.exemption), None) if policy else None
    return described(rule) if rule else ""


def described(rule: DriftRule) -> str:
    """Return an exemption as a sentence."""
    return f"the exemption {rule.name} of {rule.owner} ignores that until {rule.expires}: {rule.reason}"
