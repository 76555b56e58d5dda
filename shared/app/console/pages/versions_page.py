"""Versions: what each environment runs, how long that is supported, and what is ready for the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from shared.app.api.parts import ClusterPage
from shared.app.api.projection import projected
from shared.app.api.schema import CredentialHealth
from shared.app.api.views.cluster_list import ClusterSelection
from shared.app.api.views.versions import readiness_view, versions_view
from shared.app.console.visit import Page, Visit
from shared.app.health import credentials_of
from shared.azure.availability.retirements import AHEAD
from shared.kubernetes_versions import numbers

ROWS = 50
"""Of so many clusters it is shown whether they are ready for a version."""


def make(visit: Visit) -> Page:
    """Return the matrix of versions and images by environment."""
    view, today = versions_view(visit.ports), visit.ports.clock().date()
    environments, environment, to = view["environments"], visit.asked("environment"), visit.asked("to")
    versions, readiness = _columns([found["versions"] for found in environments]), None
    if environment or to:
        selection = ClusterSelection(environment=environment)
        readiness = readiness_view(visit.ports, ClusterPage("", ROWS), selection, to)
    clusters = readiness["clusters"] if readiness else []
    return Page(
        "Versions",
        "versions_page.html",
        {
            "view": view,
            "versions": versions,
            "images": _columns([found["images"] for found in environments]),
            "today": today.isoformat(),
            "tokens": _tokens(visit),
            "environment": environment,
            "to": to,
            "next_version": _next_minor(versions),
            "readiness": readiness,
            "names": [found["name"] for found in clusters],
            "states": Counter(found["state"] for found in clusters),
            "ends": {version: _end(on, today) for version, on in view["supportEnds"].items()},
        },
    )


def _tokens(visit: Visit) -> Sequence[CredentialHealth]:
    """Return the token for the git host, where the last read of the branch said when it ends."""
    last, host = visit.ports.state.fleet().reads.last, visit.ports.git_host
    found = credentials_of(host.credential, last.head if last else None, visit.ports.clock())
    return [projected(CredentialHealth, token) for token in found]


def _next_minor(versions: Sequence[str]) -> str:
    """Return the minor after the newest that runs, "" where none is known."""
    newest = max((numbers(version)[:2] for version in versions), default=())
    return f"{newest[0]}.{newest[1] + 1}" if len(newest) == 2 else ""


def _columns(counts: list[dict[str, int]]) -> list[str]:
    """Return what any environment has, the newest first, and last what is not known."""
    found = {name for names in counts for name in names}
    return sorted(found, key=lambda name: (name != "unknown", _numbers(name)), reverse=True)


def _numbers(name: str) -> Any:
    return [
        (part.isdecimal(), int(part) if part.isdecimal() else 0, part)
        for part in name.replace("-", ".").split(".")
    ]


def _end(on: str, today: date) -> Mapping[str, Any]:
    """Return the last day of support, and the class of how near it is."""
    day = date.fromisoformat(on)
    return {"on": on, "kind": "bad" if day < today else "work" if day - today <= AHEAD else "dim"}
