"""A step that waits for Flux stays in its message where leaving would cost a kubeconfig.

AKS gives one kubeconfig a second for each subscription. The client certificate in it is a secret, so it stays
in the memory of this worker, and after a message another worker would continue. So this worker runs the step
again by itself, for half a lease at most. Where a token opens the cluster, a wait ends the message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from shared.app.access.context import ClusterAccess
from shared.app.access.lease_guard import LeasedRecord
from shared.app.access.rate_limiter import RateLimited
from shared.cluster.failures.errors import Retryable
from shared.cluster.outcomes import Outcome, Wait
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.ports import Ports

FIRST = 0.5
"""Seconds of the first pause, for which no place is needed: then the definitions of Flux are served."""
PAUSE = 5.0
"""The most seconds between two reads of the cluster; each pause is twice as long as the one before."""
SHARE = 0.5
"""The part of a lease in which a step may begin again; the rest is for what it then does."""


class Stay:
    """The patience of one step of a record; no run of it starts after ``last_start``."""

    def __init__(self, leased: LeasedRecord, ports: Ports, access: ClusterAccess, last_start: float) -> None:
        self._leased, self._ports, self._access = leased, ports, access
        self._pauses = 0
        self._end = min(last_start, leased.since + SHARE * ports.config.timing.lease_seconds)

    def run(self, step: Callable[[ClusterRecord], Outcome]) -> Outcome:
        """Run the step, and again while it waits and this worker stays; return its last outcome.

        A wait for one of Azure's limits is no other; raise RateLimited when it would be too long, and
        LeaseLost when a newer commit was accepted meanwhile.
        """
        result = _result(step, self._leased.record)
        if self._stays(result) and self._pause(result) <= FIRST and self._may_wait():
            result = self._again(step, result)
        if self._stays(result):
            with self._ports.process.stays.place() as free:
                while free and self._stays(result) and self._may_wait():
                    result = self._again(step, result)
        if isinstance(result, RateLimited):
            raise result
        return result

    def _again(
        self, step: Callable[[ClusterRecord], Outcome], result: Wait | RateLimited
    ) -> Outcome | RateLimited:
        self._ports.sleep(self._pause(result))
        self._pauses += 1
        return _result(step, _waiting(self._leased.record, result))

    def _stays(self, result: Outcome | RateLimited) -> TypeGuard[Wait | RateLimited]:
        flux = self._leased.record.job.step.name.inside and self._access.with_secret
        return flux and _passes(result) and self._ports.elapsed() + self._pause(result) <= self._end

    def _may_wait(self) -> bool:
        """Return whether the state has our lease: others find it while this worker waits."""
        try:
            self._leased.secure()
        except Retryable:
            return False
        return True

    def _pause(self, result: Wait | RateLimited) -> float:
        if isinstance(result, RateLimited):
            return max(0.0, (result.at - self._ports.clock()).total_seconds())
        return min(PAUSE, FIRST * 2.0**self._pauses, result.seconds)


def _result(step: Callable[[ClusterRecord], Outcome], record: ClusterRecord) -> Outcome | RateLimited:
    try:
        return step(record)
    except RateLimited as limited:
        return limited


def _passes(result: Outcome | RateLimited) -> TypeGuard[Wait | RateLimited]:
    """Return whether a result is a wait that no person has to end.

    A write that Azure has just accepted is saved first: without it, the next run of the step would send it
    again, also where it has no effect or fails.
    """
    if isinstance(result, Wait):
        return not (result.action_required or result.open_ended or result.write)
    return isinstance(result, RateLimited)


def _waiting(record: ClusterRecord, result: Wait | RateLimited) -> ClusterRecord:
    if isinstance(result, RateLimited):
        return record
    step = replace(record.job.step, waiting_on=result.waiting_on)
    return replace(record, job=replace(record.job, step=step))
