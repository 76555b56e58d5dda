"""Versions: what each environment runs, how long that is supported, and what is ready for the next."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from shared.app.api.views.versions import versions_view
from shared.app.console.visit import Page, Visit
from shared.azure.availability.retirements import AHEAD


def make(visit: Visit) -> Page:
    """Return the matrix of versions and images by environment."""
    view, today = versions_view(visit.ports), visit.ports.clock().date()
    environments = view["environments"]
    return Page(
        "Versions",
        "versions_page.html",
        {
            "view": view,
            "versions": _columns([found["versions"] for found in environments]),
            "images": _columns([found["images"] for found in environments]),
            "ends": {version: _end(on, today) for version, on in view["supportEnds"].items()},
        },
    )


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
