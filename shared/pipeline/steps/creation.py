"""Creations that Azure accepts and then does not have: made once more, then told."""

from __future__ import annotations

from shared.jobs.errors import Aborted
from shared.jobs.outcomes import Fail
from shared.jobs.row import ClusterRow


def creation(digest: str, row: ClusterRow) -> str:
    """Return what to note of a creation that is needed (now, or once more); "" when it is not to be made.

    ``digest`` tells it from other writes of the job.
    """
    again = f"{digest}:again"
    if row.job.wrote == again:
        return ""
    return again if row.job.wrote == digest else digest


def gone_again(what: str) -> Fail:
    """Give up what Azure has accepted twice and does not have."""
    told = f"Azure accepted the creation of {what} twice, and it is not there"
    return Fail(Aborted(f"{told}; its activity log says who removes it"))
