"""The teams' systems: whose they are, where they are, and where something of them is unhealthy."""

from __future__ import annotations

from shared.app.api.views.versions import systems_view
from shared.app.console.visit import Page, Visit


def make(visit: Visit) -> Page:
    """Return the systems, or those of an owner."""
    owner, view = visit.asked("owner"), systems_view(visit.ports)
    shown = [system for system in view["systems"] if not owner or owner in system["owners"]]
    return Page("Systems", "systems_page.html", {"systems": shown, "owner": owner})
