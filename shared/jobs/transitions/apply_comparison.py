"""The one place that applies a comparison with Azure to the record of a cluster that no job works on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from shared.fleet.drift.policy import Decided, released
from shared.fleet.manifests.cluster.drift import DriftAction
from shared.jobs.conditions import with_in_sync
from shared.jobs.drift import CorrectionApproval, Drift, Verified, corrected, drift_from, is_news
from shared.jobs.record import ClusterRecord
from shared.jobs.transitions.acceptance import accept_retry


def apply_comparison(
    record: ClusterRecord, decided: Sequence[Decided], verified: Verified, *, now: datetime
) -> ClusterRecord:
    """Return the record after a comparison; ``verified`` is what the cluster has now.

    A comparison that finds what the one before found changes no time and no sequence.
    """
    drift = drift_from(decided, record.drift, now, life=record.uid, generation=record.generation)
    after = replace(with_in_sync(record, drift, now), verified=verified)
    if not is_news(drift, record.drift):
        return after
    job = replace(after.job, sequence=after.job.sequence + 1)
    return replace(after, job=job, updated=now)


def start_correction(
    record: ClusterRecord, decided: Sequence[Decided], *, now: datetime
) -> tuple[ClusterRecord, Sequence[str]]:
    """Return the record with the job that writes git's values of some fields, and these fields.

    The job leaves the others. The record is as it was where no field is to be corrected. Where somebody
    approved exactly the corrections that need it, the job carries them out as well.
    """
    decided = released(decided) if record.drift and record.drift.approval else decided
    wanted = [each for each in decided if each.action is DriftAction.CORRECT]
    if not wanted:
        return record, ()
    left = tuple(each.path for each in decided if each.action is not DriftAction.CORRECT)
    record = replace(record, corrections=corrected(record.corrections, wanted, now))
    return accept_retry(record, now=now, left=left), [each.path for each in wanted]


def accept_correction(
    record: ClusterRecord, drift: Drift, approval: CorrectionApproval, *, now: datetime
) -> ClusterRecord:
    """Return the record with an approval of the corrections of its drift that need one; no job starts yet."""
    job = replace(record.job, sequence=record.job.sequence + 1)
    return replace(record, drift=replace(drift, approval=approval), job=job, updated=now)
