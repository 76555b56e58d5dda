"""The one place that applies a comparison with Azure to the record of a cluster that no job works on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from shared.fleet.drift.differences import Difference
from shared.jobs.conditions import with_in_sync
from shared.jobs.drift import Verified, drift_from, paths_of
from shared.jobs.record import ClusterRecord


def apply_comparison(
    record: ClusterRecord, differences: Sequence[Difference], verified: Verified, *, now: datetime
) -> ClusterRecord:
    """Return the record after a comparison; ``verified`` is what the cluster has now.

    A comparison that finds what the one before found changes no time and no sequence.
    """
    drift = drift_from(differences, record.drift, now)
    after = replace(with_in_sync(record, drift, now), verified=verified)
    if paths_of(drift) == paths_of(record.drift):
        return after
    job = replace(after.job, sequence=after.job.sequence + 1)
    return replace(after, job=job, updated=now)
