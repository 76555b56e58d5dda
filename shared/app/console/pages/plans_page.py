"""The plans of the last days."""

from __future__ import annotations

from shared.app.api.views.plans import plans_view
from shared.app.console.pages.plan_page import make_pull
from shared.app.console.visit import Page, Visit


def make(visit: Visit) -> Page:
    """Return the list, newest first, or the plan of the pull request that somebody asks for."""
    if visit.asked("pull"):
        return make_pull(visit)
    return Page("Plans", "plans_page.html", {"view": plans_view(visit.ports)})
