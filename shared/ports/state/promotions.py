"""What is stored of pull requests that promote what is proven to another environment."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from shared.cluster.forms import Listed
from shared.frozen import dataclass, field
from shared.promotions import Value


@dataclass(frozen=True)
class Lifted:
    """A hold of a value that a person lifted, by promoting it."""

    value: Value
    at: datetime


@dataclass(frozen=True)
class Promotion:
    """The pull request of one environment, and what came of earlier ones.

    ``source`` is where the values of the newest pull request were proven; ``by`` is who asked for it, "" for
    a rule of fleet.yaml, and ``asked`` when. ``values`` are what it gives, () once it is merged or closed.
    ``commits`` are the commits of ours that its branch may point to. ``number`` and ``url`` are 0 and ""
    before the first one.

    ``merged`` and ``declined`` are the values of pull requests that were merged, or closed without that;
    ``lifted`` are those that a person promoted nevertheless. ``digest`` is what a rule was carried out for,
    ``problem`` why nothing is proposed, or why the branch is left as it is.
    ``etag`` is the version that was read, "" for one not saved yet.
    """

    target: str
    source: str = ""
    by: str = ""
    asked: datetime | None = None
    values: tuple[Value, ...] = ()
    number: int = 0
    url: str = ""
    commits: tuple[str, ...] = ()
    merged: tuple[Value, ...] = ()
    declined: tuple[Value, ...] = ()
    lifted: tuple[Lifted, ...] = ()
    digest: str = ""
    problem: str = ""
    etag: str = field(default="", compare=False)


class Promotions(Protocol):
    """The promotions of the fleet, one for an environment."""

    def promotions(self) -> Listed[Promotion]:
        """Return all promotions, by environment."""
        ...

    def promotion(self, target: str) -> Promotion | None:
        """Return the promotion to an environment, or None; raise Unreadable."""
        ...

    def save_promotion(self, promotion: Promotion) -> Promotion:
        """Write a promotion over the version that was read, and return it as saved; raise Stale."""
        ...
