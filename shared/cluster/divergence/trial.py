"""A try: a cluster has a commit of a pull request for a time, instead of the one of its stage.

The record keeps the pin that the stage gives the cluster, and a newer one that a rollout gives it meanwhile:
to that the cluster goes back. Whether the cluster has it, a rollout counts once the try is over.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from shared.frozen import dataclass
from shared.language.pin import Pin


class TrialEnd(StrEnum):
    """Why a try ends."""

    TIME = "its time was over"
    MERGED = "the pull request was merged"
    CLOSED = "the pull request was closed"
    ASKED = "somebody ended it"
    RESTORED = "the tables were restored"


@dataclass(frozen=True)
class Trial:
    """The try of ``commit``, the head of the pull request ``pull`` when ``by`` asked for it.

    ``pulls`` is a digest of what Flux has of it. Once it has ended, for ``end``, the cluster goes back, and
    is ``back`` when that is verified. ``result`` is what had become of it, and ``ended_by`` who ended it.
    """

    pull: int
    commit: str
    pulls: str
    by: str
    at: datetime
    until: datetime
    reason: str = ""
    ended: datetime | None = None
    end: TrialEnd | None = None
    ended_by: str = ""
    result: str = ""
    back: bool = False

    def pin(self, own: Pin | None = None) -> Pin:
        """Return the pin of the cluster while the try lasts; ``own`` is the one that its stage gives it."""
        return Pin(self.commit, self.pulls, own.commit if own else "", tried=True)

    def __str__(self) -> str:
        what = f"pull request {self.pull} at {self.commit[:8]}"
        if self.end is not None:
            return f"goes back from {what}, because {self.end.value}"
        return f"tries {what} until {self.until:%Y-%m-%d %H:%M} UTC, asked by {self.by}"
