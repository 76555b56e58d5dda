"""What is stored of the acts of callers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from shared.cluster.forms import Listed
from shared.cluster.history import LIVE, Act

RECENT = 100
"""Among how many of the newest acts one is looked for."""
MOST_PAGES = 20
"""So many pages of acts are read for that: callers who only read can fill some of them."""


class Acts(Protocol):
    """What callers asked for, and the settings that were seen last."""

    def save_act(self, act: Act) -> None:
        """Save an act, over one with the same time and id."""
        ...

    def acts(self, limit: int, before: datetime | None = None) -> Listed[Act]:
        """Return the newest acts (before a millisecond), newest first."""
        ...

    def prune_acts(self, before: datetime) -> int:
        """Remove older acts; return how many were removed."""
        ...

    def settings_seen(self) -> Mapping[str, str]:
        """Return what ``save_settings_seen`` wrote last, nothing before the first time."""
        ...

    def save_settings_seen(self, settings: Mapping[str, str]) -> None:
        """Write the settings over those that were seen before."""
        ...


def newest_changes(acts: Acts) -> Sequence[Act]:
    """Return the newest acts that are more than a read, newest first."""
    found = list[Act]()
    before: datetime | None = None
    for _ in range(MOST_PAGES):
        page = acts.acts(RECENT, before)
        found += [act for act in page if act.action != LIVE]
        if len(page) < RECENT or len(found) >= RECENT:
            break
        before = page[-1].at
    return found[:RECENT]
