"""Which clusters sweeps compare, and whether the last job of one says itself why it is not Ready. Pure."""

from __future__ import annotations

from shared.jobs.job import Failure
from shared.jobs.record import ClusterRecord, Phase


def is_at_rest(record: ClusterRecord) -> bool:
    """Return whether sweeps compare a cluster: it was verified Ready, and no job changes it.

    That is so of an idle one, of one whose later job has failed, and of a suspended one.
    """
    unchanged = record.failed or record.phase is Phase.SUSPENDED
    return record.idle or (unchanged and record.was_ready and not record.deleting)


def own_failure(record: ClusterRecord) -> Failure | None:
    """Return the failure with which the job itself ended, whatever a sweep has found since; None for none."""
    failure = record.job.step.failure if record.failed and not record.finding else None
    return record.job.earlier or failure


def is_unfinished(record: ClusterRecord) -> bool:
    """Return whether the last job did not verify a cluster, and says why itself: it failed, or waits."""
    return record.phase is Phase.SUSPENDED or own_failure(record) is not None
