"""The plans of the last days."""

from __future__ import annotations

from shared.app.api.views.plans import plans_view
from shared.app.console.visit import Page, Visit


def make(visit: Visit) -> Page:
    """Return the list, newest first."""
    return Page("Plans", "plans_page.html", {"view": plans_view(visit.ports)})
