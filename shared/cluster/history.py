"""What a fleet remembers: acts of people, events of clusters, and gaps in its webhooks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from shared.frozen import dataclass

LIVE = "live"
"""The action of a caller who had clusters read from Azure. It changes nothing: it is no act on a cluster."""


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


@dataclass(frozen=True)
class Event:
    """Something that happened to a cluster; (uid, sequence, reason) identifies it however often it is saved.

    ``started`` is when its step began, ``at`` when this happened; ``request_ids`` are those of the service.
    """

    cluster: str
    uid: str
    generation: int
    sequence: int
    at: datetime
    warning: bool
    reason: str
    message: str
    step: str = ""
    started: datetime | None = None
    request_ids: tuple[str, ...] = ()


class FoundBy(StrEnum):
    """What found a head before a webhook had it planned."""

    TIMER = "timer"
    SYNC = "sync"
    """An operator asked."""


@dataclass(frozen=True)
class Gap:
    """A head that no webhook had planned, when it was found by our clock, and by what."""

    commit: str
    found: datetime
    by: FoundBy


@dataclass(frozen=True)
class Gaps:
    """How many gaps were repaired since the fleet was planned first, and the last of them."""

    count: int = 0
    last: Gap | None = None
