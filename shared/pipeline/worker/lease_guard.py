"""The lease guard: a check before every write to Azure and to a cluster.

A worker can be frozen between its read and its write, for longer than its lease lasts. Another worker then
continues, and may even have deleted the cluster; the write of the first worker would create it again, and no
record would show it. So the guard reads the record before each write, or saves it with the lease if that is
still to be done: both show that nobody else has written it. It refuses the write in the last part of the
lease, and once a newer spec or a removal was accepted: nothing is created after a tombstone. A step makes
many small writes to a cluster, so there the record is read once a second. A slow read does not count: the
step is retried. Ages are measured without the clock, which may jump while a worker is frozen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar

from shared.jobs.failures.errors import Unavailable
from shared.pipeline.worker.guarded_kubernetes import GuardedKubernetes
from shared.pipeline.worker.leased_record import LeasedRecord, LeaseLost
from shared.ports import Azure, Ports
from shared.ports.azure import AzureCall

MARGIN = 1 / 3
"""The last part of a lease, in which no write starts; a call takes some seconds."""
SLOW = 3.0
"""Seconds; a read takes tenths of one, and the result of an older read may have changed since."""
FRESH = 1.0
"""How many seconds one read of the record serves for writes to a cluster."""

T = TypeVar("T")


def with_lease_guard(leased: LeasedRecord, ports: Ports) -> Ports:
    """Return the ports with a guard before every write to Azure or a cluster, for the step with the lease."""

    def check() -> None:
        asked_at = ports.elapsed()
        require_time()
        leased.secure()
        require_time()
        _require_fresh("the record", ports.elapsed() - asked_at)

    def require_time() -> None:
        lease = leased.record.job.lease
        if lease is None or ports.clock() + margin > lease.until or ports.elapsed() > end:
            raise LeaseLost(f"{leased.record.name}: the lease has nearly ended")

    def check_once_a_second(*_: object) -> None:
        require_time()
        if not leased.stored or ports.elapsed() - leased.confirmed_at > FRESH:
            check()

    margin = timedelta(seconds=ports.config.lease_seconds * MARGIN)
    end = leased.since + ports.config.lease_seconds - margin.total_seconds()
    return replace(
        ports,
        azure=_Azure(ports.azure, check, ports.elapsed, ports.elapsed()),
        kubernetes=GuardedKubernetes(ports.kubernetes, check_once_a_second),
    )


def _require_fresh(what: str, seconds: float) -> None:
    """Raise Unavailable when the read on which a write relies is older than ``SLOW``."""
    if seconds > SLOW:
        raise Unavailable(f"the read of {what} is {seconds:.0f} s old, too old for a write; reading again")


@dataclass(frozen=True)
class _Azure:
    """``read_at`` is when each read was requested last; ``started`` is when the step started."""

    inner: Azure
    check: Callable[[], None]
    elapsed: Callable[[], float]
    started: float
    read_at: dict[AzureCall[Any], float] = field(default_factory=dict)

    def call(self, operation: AzureCall[T]) -> T:
        if not operation.writes:
            self.read_at[operation] = self.elapsed()
            return self.inner.call(operation)
        self.check()
        read = operation.relies_on
        if read is not None:
            _require_fresh(str(read), self.elapsed() - self.read_at.get(read, self.started))
        return self.inner.call(operation)
