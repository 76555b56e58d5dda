"""What a cluster does for a time: a try of a pull request, its lifetime, its sleep."""

from __future__ import annotations

from typing import TypedDict


class TrialView(TypedDict):
    """A try of a pull request: the commit that Flux pulls instead of the cluster's own, and until when.

    From ``endedAt`` on the cluster goes back; ``result`` is what had become of it then.
    """

    pull: int
    commit: str
    by: str
    startedAt: str | None
    until: str | None
    reason: str
    endedAt: str | None
    result: str


class LifetimeView(TypedDict):
    """When the lifetime of a cluster is over, and what becomes of it then.

    ``endsAt`` is what git says, with an extension. Where somebody holds the cluster, it stays until
    ``heldUntil``. ``by`` and ``reason`` are those of the hold that lasts, or else of the extension.
    ``pullRequest`` removes the cluster, "" for none; ``waits`` is why a cluster stays whose end has come, ""
    for nothing.
    """

    endsAt: str | None
    extended: bool
    heldUntil: str | None
    by: str
    reason: str
    pullRequest: str
    waits: str


class SleepView(TypedDict):
    """Whether a cluster is to be awake, until when, and by whose order, "" for its schedules."""

    awake: bool
    until: str | None
    by: str
    reason: str
