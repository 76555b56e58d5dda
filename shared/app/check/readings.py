"""What a check has read of a cluster, and what may be said of one whose job failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from shared.cluster.findings.conditions import is_unfinished
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.kubernetes.health import CHANGED, MISSING, Fault
from shared.kubernetes.inside import Inside


@dataclass(frozen=True)
class Reporting:
    """Since when Flux is to report what it does, and when a source had something new last, None for never."""

    since: datetime
    newest: datetime | None


@dataclass(frozen=True)
class Reading:
    """What is wrong in a cluster, what hurts most first, and what it has.

    ``nodes`` and ``objects`` of Flux were read. ``facts`` is the ConfigMap with the facts of the cluster, as
    Roadstead applied it; None where there is none. ``reporting`` is None where Flux reports nothing.
    ``revision`` is what the first Kustomization says it applied last, "" for nothing, and None where Azure
    does not say it. ``from_azure``: nothing was read inside; ``nodes`` are then node pools, as Azure shows
    them.
    """

    flux: Sequence[Fault]
    platform: Sequence[Fault]
    objects: int
    nodes: int
    inside: Inside
    facts: Json | None = None
    reporting: Reporting | None = None
    from_azure: bool = False
    revision: str | None = None


# What a check says of a cluster whose last job failed or is suspended: not everything may be applied.

_APPLIED = frozenset({CHANGED, MISSING})


def as_far_as_known(faults: Iterable[Fault], record: ClusterRecord) -> list[Fault]:
    """Return the faults; what the last job may not have applied is not called a change by somebody."""
    if not is_unfinished(record):
        return list(faults)
    job = "is suspended" if record.phase is Phase.SUSPENDED else "has failed"
    return [_by_job(fault, job) if fault.reason in _APPLIED else fault for fault in faults]


def _by_job(fault: Fault, job: str) -> Fault:
    what = "it does not exist" if fault.reason == MISSING else "it is not as git has it"
    return replace(fault, message=f"{what}, and the job that applies it {job}")
