"""The pages: each a file that makes the values, and a template of the same name that shows them.

A new page is these two files and a line in ``PAGES``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from shared.app.console.pages import (
    activity_page,
    cluster_page,
    clusters_page,
    costs_page,
    fleet_page,
    plan_page,
    plans_page,
    requests_page,
    rollouts_page,
    systems_page,
    versions_page,
)
from shared.app.console.visit import Make
from shared.frozen import dataclass

SECTIONS: Sequence[tuple[str, str]] = (
    ("Fleet", "/"),
    ("Clusters", "/clusters"),
    ("Plans", "/plans"),
    ("Rollouts", "/rollouts"),
    ("Versions", "/versions"),
    ("Systems", "/systems"),
    ("Costs", "/costs"),
    ("Requests", "/requests"),
    ("Activity", "/activity"),
)
"""The pages that each page links to, with their addresses."""


@dataclass(frozen=True)
class PageRoute:
    """The address of a page, with its parts in braces, the section that it is in, and what makes it.

    ``own``: everybody has one of their own.
    """

    address: str
    section: str
    make: Make
    own: bool = False

    def parts(self, path: str) -> Mapping[str, str] | None:
        """Return the parts that an address has, None for the address of another page."""
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.address)
        match = re.fullmatch(pattern, path)
        return {name: unquote(part) for name, part in match.groupdict().items()} if match else None


PAGES = (
    PageRoute("/", "Fleet", fleet_page.make),
    PageRoute("/clusters", "Clusters", clusters_page.make),
    PageRoute("/clusters/{name}", "Clusters", cluster_page.make),
    PageRoute("/plans", "Plans", plans_page.make),
    PageRoute("/plans/{commit}", "Plans", plan_page.make),
    PageRoute("/pulls/{number}", "Plans", plan_page.make_pull),
    PageRoute("/rollouts", "Rollouts", rollouts_page.make),
    PageRoute("/rollouts/{commit}", "Rollouts", rollouts_page.make_one),
    PageRoute("/versions", "Versions", versions_page.make),
    PageRoute("/systems", "Systems", systems_page.make),
    PageRoute("/costs", "Costs", costs_page.make),
    PageRoute("/requests", "Requests", requests_page.make, own=True),
    PageRoute("/activity", "Activity", activity_page.make),
)


def page_at(path: str) -> tuple[PageRoute, Mapping[str, str]] | None:
    """Return the page of an address, and the parts of it; None for no page."""
    for route in PAGES:
        parts = route.parts(path)
        if parts is not None:
            return route, parts
    return None
