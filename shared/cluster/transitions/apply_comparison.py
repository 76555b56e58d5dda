"""The one place that applies a comparison with Azure to the record of a cluster that no job works on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from shared.azure.drift.policy import DriftDecision, released
from shared.cluster.divergence.drift import (
    CorrectionApproval,
    Drift,
    DriftedField,
    corrected,
    drift_from,
    is_news,
)
from shared.cluster.divergence.verification import Verification
from shared.cluster.failures.errors import ClusterMissing, ClusterStopped, NoLongerReady, Unhealthy
from shared.cluster.findings.conditions import (
    IN_SYNC,
    MESSAGE_LIMIT,
    loss_of,
    with_condition,
    with_in_sync,
)
from shared.cluster.findings.health import HealthCondition
from shared.cluster.recipes import CONDITIONS, Step
from shared.cluster.record import FINDINGS, ClusterRecord, at_another_moment
from shared.cluster.record_parts import UNREAD_COMPANIONS, Condition
from shared.cluster.transitions.acceptance import accept_retry
from shared.frozen import replace
from shared.language.model.cluster.drift import DriftAction
from shared.masking import cut


def apply_comparison(
    record: ClusterRecord, decided: Sequence[DriftDecision], verified: Verification, *, now: datetime
) -> ClusterRecord:
    """Return the record after a comparison; ``verified`` is what the cluster has now."""
    drift = drift_from(decided, record.divergence.drift, now, life=record.uid, generation=record.generation)
    after = with_in_sync(record, drift, now)
    after = replace(after, observation=replace(after.observation, verified=verified))
    if not is_news(drift, record.divergence.drift):
        return after
    return at_another_moment(after, now)


def apply_finding(record: ClusterRecord, error: NoLongerReady | None, now: datetime) -> ClusterRecord:
    """Return the record with what a finding says of its other conditions; None ends one of a sweep.

    A cluster that is missing or stopped is not as git has it, and nothing is known of what runs in it. One
    that is contested, or on which an operation failed, is not compared, and nor is one that an exemption has
    missing or stopped. After that a comparison and a check say how it is.
    """
    record = replace(record, observation=replace(record.observation, loss=loss_of(record, error, now)))
    if error is None:
        before = record.condition(IN_SYNC)
        over = before is not None and before.reason in FINDINGS
        return with_in_sync(record, record.divergence.drift, now, compared=False) if over else record
    if isinstance(error, Unhealthy):
        return record
    known: dict[str, bool | None] = {IN_SYNC: None}
    if isinstance(error, ClusterMissing | ClusterStopped):
        known = {IN_SYNC: None if record.exemption else False, **dict.fromkeys(HealthCondition)}
    if isinstance(error, ClusterMissing):
        known |= dict.fromkeys((CONDITIONS[Step.CLUSTER], CONDITIONS[Step.NODE_POOLS]), False)
        # What ran, what the cluster had beyond git, and its address are no part of another in its place.
        record = replace(
            record,
            observation=replace(
                record.observation,
                verified=None,
                running=None,
                inside=None,
                companions=UNREAD_COMPANIONS,
                api_server=None,
                facts=None,
            ),
        )
        record = replace(record, divergence=replace(record.divergence, drift=None))
    for kind, status in known.items():
        if record.condition(kind) is not None:
            message, generation = cut(str(error), MESSAGE_LIMIT), record.observed_generation
            new = Condition(kind, status, error.kind, message, now, generation, now)
            record = with_condition(record, new)
    return record


def start_correction(
    record: ClusterRecord, decided: Sequence[DriftDecision], *, now: datetime
) -> tuple[ClusterRecord, Sequence[str]]:
    """Return the record with the job that writes git's values of some fields, and these fields.

    The job leaves the others. The record is as it was where no field is to be corrected. Where somebody
    approved exactly the corrections that need it, the job carries them out as well.
    """
    decided = released(decided) if record.divergence.drift and record.divergence.drift.approval else decided
    wanted = [decision for decision in decided if decision.action is DriftAction.CORRECT]
    if not wanted:
        return record, ()
    left = tuple(decision.path for decision in decided if decision.action is not DriftAction.CORRECT)
    record = replace(
        record,
        divergence=replace(
            record.divergence, corrections=corrected(record.divergence.corrections, wanted, now)
        ),
    )
    return accept_retry(record, now=now, left=left), [decision.path for decision in wanted]


def accept_correction(
    record: ClusterRecord, drift: Drift, approval: CorrectionApproval, *, now: datetime
) -> ClusterRecord:
    """Return the record with an approval of the corrections of its drift that need one; no job starts yet."""
    divergence = replace(record.divergence, drift=replace(drift, approval=approval))
    return at_another_moment(replace(record, divergence=divergence), now)


def accept_drift(
    record: ClusterRecord,
    verified: Verification,
    fields: Sequence[DriftedField],
    by: str,
    *,
    now: datetime,
    reason: str = "",
) -> ClusterRecord:
    """Return the record with what somebody added as accepted; the next comparison has it no longer."""
    for field in fields:
        verified = verified.accepting(field, by, now, reason)
    observation = replace(record.observation, verified=verified)
    return at_another_moment(replace(record, observation=observation), now)
