"""Acts: what somebody asked of Roadstead, who it was, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

LIVE = "live"
"""The action of a caller who had clusters read from Azure. It changes nothing: it is no act on a cluster."""

DRILL = "drill"
"""The action of a caller who had a loss of the tables rehearsed. It changes nothing either."""


@dataclass(frozen=True)
class Act:
    """An act; (at, id) identifies it however often it is saved.

    ``by`` and ``by_id`` are the verified identity, ``address`` and ``client`` where the request came from.
    The ``target`` is what ``action`` is about, ``clusters`` the clusters that it concerns, ``reason`` what
    the caller gave. ``result`` is "" until the act has ended, and stays so if it was interrupted.
    """

    id: str
    at: datetime
    action: str
    target: str
    by: str
    by_id: str = ""
    address: str = ""
    client: str = ""
    clusters: tuple[str, ...] = ()
    reason: str = ""
    result: str = ""


def by_whom(by: str, reason: str) -> str:
    """Return who acted, and the reason if one was given."""
    return f"{by}: {reason}" if reason else by


def changed_settings(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings that differ, each with its values, by name; a value that is not set is ""."""
    names = sorted(name for name in before.keys() | now.keys() if before.get(name, "") != now.get(name, ""))
    return tuple(
        f"{name}: {before.get(name, '') or 'unset'} -> {now.get(name, '') or 'unset'}" for name in names
    )
