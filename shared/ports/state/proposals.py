"""What is stored of pull requests that take drift into a manifest."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from shared.cluster.forms import Listed
from shared.frozen import dataclass, field


@dataclass(frozen=True)
class LeftOut:
    """A field that is not proposed, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Proposal:
    """The pull request about one cluster's drift, and what came of earlier ones.

    ``digest`` is that of the drift for which everything was done (``digest_of_proposal``), "" for none.
    ``number`` and ``url`` are those of the newest pull request, 0 and "" before the first one, ``opened``
    when it was asked for. ``values`` has a digest of each field that it proposes, with both values.
    ``commits`` are the commits of ours that the branch may point to.

    ``declined`` are the values of pull requests that somebody closed without merging. ``left_out`` says why
    fields are not proposed, ``problem`` why the branch or the pull request is left as it is; ``commit`` is
    the one that was planned last when that was so.
    ``etag`` is the version that was read, "" for one not saved yet.
    """

    cluster: str
    digest: str = ""
    number: int = 0
    url: str = ""
    opened: datetime | None = None
    values: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    problem: str = ""
    commit: str = ""
    etag: str = field(default="", compare=False)


class Proposals(Protocol):
    """The proposals of the fleet, one for a cluster."""

    def proposals(self) -> Listed[Proposal]:
        """Return all proposals, by cluster."""
        ...

    def proposal(self, cluster: str) -> Proposal | None:
        """Return the proposal of a cluster, or None; raise Unreadable."""
        ...

    def save_proposal(self, proposal: Proposal) -> Proposal:
        """Write a proposal over the version that was read, and return it as saved; raise Stale."""
        ...

    def remove_proposal(self, proposal: Proposal) -> None:
        """Remove a proposal if it is still this version; raise Stale."""
        ...
