"""The last accepted write of a step, and whether the same write may be sent again.

A creation or a deletion that Azure accepts without effect is sent twice, then the job fails.
"""

from __future__ import annotations

from shared.frozen import replace
from shared.jobs.failures.errors import Aborted
from shared.jobs.job import AcceptedWrite
from shared.jobs.outcomes import Fail, Wait
from shared.pipeline.worker.steps.context import StepContext
from shared.ports.azure import Written


def was_accepted(context: StepContext, write: AcceptedWrite) -> bool:
    """Return whether this was the last write of the step, sent once or twice."""
    return write.repeats(context.job.step.last_write)


def next_attempt(context: StepContext, write: AcceptedWrite) -> AcceptedWrite | None:
    """Return a creation or a deletion with the number of its next attempt, None after two attempts."""
    last = context.job.step.last_write
    if last is None or not write.repeats(last):
        return write
    return replace(write, attempt=2) if last.attempt == 1 else None


def wait_for(context: StepContext, reason: str, write: AcceptedWrite, written: Written) -> Wait:
    """Return the wait for an operation that Azure has just accepted."""
    return Wait(context.poll_seconds, reason, replace(write, request_id=written.request_id))


def still_exists(what: str) -> Fail:
    """Return the failure after two deletions that Azure accepted without effect."""
    problem = f"Azure accepted the deletion of {what} twice, and it still exists"
    return Fail(Aborted(f"{problem}; its activity log shows what prevents the deletion"))


def vanished_again(what: str) -> Fail:
    """Return the failure after two creations that Azure accepted without effect."""
    problem = f"Azure accepted the creation of {what} twice, and it does not exist"
    return Fail(Aborted(f"{problem}; its activity log shows who removes it"))
