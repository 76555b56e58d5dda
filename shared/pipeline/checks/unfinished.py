"""What a check says of a cluster whose last job failed or is suspended: not everything may be applied."""

from __future__ import annotations

from collections.abc import Iterable

from shared.fleet.kubernetes.health.health import CHANGED, MISSING, Fault
from shared.frozen import replace
from shared.jobs.findings.at_rest import is_unfinished
from shared.jobs.record import ClusterRecord, Phase

_APPLIED = frozenset({CHANGED, MISSING})


def as_far_as_known(faults: Iterable[Fault], record: ClusterRecord) -> list[Fault]:
    """Return the faults; what the last job may not have applied is not called a change by somebody."""
    if not is_unfinished(record):
        return list(faults)
    job = "is suspended" if record.phase is Phase.SUSPENDED else "has failed"
    return [_by_job(each, job) if each.reason in _APPLIED else each for each in faults]


def _by_job(fault: Fault, job: str) -> Fault:
    what = "it does not exist" if fault.reason == MISSING else "it is not as git has it"
    return replace(fault, message=f"{what}, and the job that applies it {job}")
