"""What Azure accepts and then does not keep: creations and deletions are made once more, then told."""

from __future__ import annotations

from shared.jobs.errors import Aborted
from shared.jobs.outcomes import Fail
from shared.jobs.record import ClusterRecord

_AGAIN = ":again"


def once_more(what: str, record: ClusterRecord) -> str:
    """Return what to note of a creation or a deletion, made now or once more; "" when it is not to be made.

    ``what`` tells it from other writes of the job.
    """
    again = f"{what}{_AGAIN}"
    if record.job.wrote == again:
        return ""
    return again if record.job.wrote == what else what


def asked_for(what: str, record: ClusterRecord) -> bool:
    """Tell whether the last write of the step was this one, made once or twice."""
    return record.job.wrote in (what, f"{what}{_AGAIN}")


def still_there(what: str) -> Fail:
    """Give up the deletion that Azure has accepted twice and not made."""
    told = f"Azure accepted the deletion of {what} twice, and it is still there"
    return Fail(Aborted(f"{told}; its activity log says what keeps it"))


def gone_again(what: str) -> Fail:
    """Give up what Azure has accepted twice and does not have."""
    told = f"Azure accepted the creation of {what} twice, and it is not there"
    return Fail(Aborted(f"{told}; its activity log says who removes it"))
