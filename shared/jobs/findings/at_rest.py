"""Which clusters sweeps compare, what they found, and whether the last job says why one is not Ready."""

from __future__ import annotations

from shared.jobs.failures.errors import (
    ClusterContested,
    ClusterMissing,
    ClusterStopped,
    NoLongerReady,
    classes,
)
from shared.jobs.findings.conditions import IN_SYNC
from shared.jobs.job import Failure
from shared.jobs.record import ClusterRecord, Phase, finding_of_sweep

_FINDINGS = frozenset(kind.__name__ for kind in classes(NoLongerReady))
_CLOSED = frozenset(kind.__name__ for kind in (ClusterMissing, ClusterStopped, ClusterContested))


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


def kind_found(record: ClusterRecord) -> str:
    """Return the class of what a sweep found of a whole cluster, such as ClusterMissing; "" for nothing.

    A suspension goes on whatever a sweep finds: there the condition InSync says it.
    """
    in_sync = record.condition(IN_SYNC)
    if record.phase is Phase.SUSPENDED and in_sync is not None and in_sync.reason in _FINDINGS:
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
    """Return whether what a sweep found of a whole cluster is ignored: an exemption has it so.

    A job that had failed before is no part of that.
    """
    return bool(record.exemption and found_of(record)) and record.job.earlier is None


def shown_phase(record: ClusterRecord) -> Phase:
    """Return the phase that people see: a cluster is not Failed that an exemption has missing or stopped.

    One outside Azure is released, and not deleted.
    """
    if record.phase is Phase.DELETING and record.desired.is_existing:
        return Phase.RELEASING
    return Phase.EXEMPT if record.finding and is_exempt(record) else record.phase


def is_unfinished(record: ClusterRecord) -> bool:
    """Return whether the last job did not verify a cluster, and says why itself: it failed, or waits."""
    return record.phase is Phase.SUSPENDED or own_failure(record) is not None
