"""Creations and deletions that Azure accepts without effect: they are sent twice, then the job fails."""

from __future__ import annotations

from shared.jobs.errors import Aborted
from shared.jobs.outcomes import Fail
from shared.pipeline.worker.steps.context import StepContext

_AGAIN = ":again"


def once_more(context: StepContext, what: str) -> str:
    """Return the ``wrote`` of a creation or a deletion that may be sent now, "" after it was sent twice.

    ``what`` tells it from other writes of the job.
    """
    again = f"{what}{_AGAIN}"
    if context.job.wrote == again:
        return ""
    return again if context.job.wrote == what else what


def asked_for(context: StepContext, what: str) -> bool:
    """Tell whether the last write of the step was this one, sent once or twice."""
    return context.job.wrote in (what, f"{what}{_AGAIN}")


def still_there(what: str) -> Fail:
    """End the job after two deletions that Azure accepted and that had no effect."""
    problem = f"Azure accepted the deletion of {what} twice, and it is still there"
    return Fail(Aborted(f"{problem}; its activity log says what prevents the deletion"))


def gone_again(what: str) -> Fail:
    """End the job after two creations that Azure accepted and that had no effect."""
    problem = f"Azure accepted the creation of {what} twice, and it is not there"
    return Fail(Aborted(f"{problem}; its activity log says who removes it"))
