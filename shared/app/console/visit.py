"""What a page gets and gives: a visit of somebody, and a template with its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from shared.app.api.access import Principal
from shared.app.health import Health
from shared.cluster.failures.errors import ReconcileError
from shared.frozen import dataclass
from shared.ports import Ports


@dataclass(frozen=True)
class Visit:
    """A visit of a page: the parts of its address, its query, and who comes.

    ``ports`` read the tables at most once in some seconds for all visits, and a page only reads.
    """

    path: Mapping[str, str]
    query: Mapping[str, str]
    principal: Principal
    ports: Ports
    health: Health

    def asked(self, name: str) -> str:
        """Return a parameter of the query, "" for none."""
        return (self.query.get(name) or "").strip()

    def ahead(self, *reads: Callable[[], Any]) -> None:
        """Do reads at a time that the page needs, and that are shared: it waits for the slowest one alone.

        What fails here fails again where the page needs it, which then shows why.
        """
        self.ports.together(_tried, reads)


def _tried(read: Callable[[], Any]) -> None:
    with suppress(ReconcileError):
        read()


@dataclass(frozen=True)
class Page:
    """A page: its title, its template, and the values that the template shows.

    ``live``: it is read again while somebody looks at it. ``status`` is the HTTP status.
    """

    title: str
    template: str
    values: Mapping[str, Any]
    live: bool = True
    status: int = 200


def message(title: str, sentence: str, status: int, back: str = "/") -> Page:
    """Return a page with one sentence, such as a refusal; that something fails now is read again."""
    values = {"sentence": sentence, "back": back}
    return Page(title, "message.html", values, live=status == 503, status=status)


Make = Callable[[Visit], Page]
"""Returns the page of a visit."""
