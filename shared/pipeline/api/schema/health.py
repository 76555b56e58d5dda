"""The health of the app."""

from __future__ import annotations

from typing import TypedDict, final


class ServiceHealth(TypedDict):
    """A service that the app needs; ``problem`` is what is wrong with it, "" for nothing."""

    name: str
    ok: bool
    problem: str


class TimerHealth(ServiceHealth):
    """A timer: when it ran last, and when the run after that is or was due."""

    schedule: str
    lastRunAt: str | None
    dueAt: str | None


class CredentialHealth(ServiceHealth):
    """A credential, and when it ends; ``problem`` is set 30 days before that, and stops nothing."""

    expiresAt: str | None


class UnreadableRecord(TypedDict):
    """A record that cannot be read: what it is of, its place in Table Storage, why, and what to do."""

    kind: str
    table: str
    partition: str
    key: str
    problem: str
    suggestedAction: str


@final
class Readiness(TypedDict):
    """``GET ready``: what anybody may know."""

    live: bool
    ready: bool


@final
class Health(TypedDict):
    """``GET health``: the services and timers as of ``checkedAt``, and the records that cannot be read."""

    live: bool
    ready: bool
    checkedAt: str | None
    services: list[ServiceHealth]
    credentials: list[CredentialHealth]
    timers: list[TimerHealth]
    unreadable: list[UnreadableRecord]
