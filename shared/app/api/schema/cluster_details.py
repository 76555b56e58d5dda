"""What the API shows of a cluster for a time: a try, lifetime, sleep, and readiness for an upgrade."""

from __future__ import annotations

from typing import TypedDict, final


class BlockerView(TypedDict):
    """What blocks the upgrade of a cluster.

    ``object`` names it, ``why`` is the rest of the sentence, ``act`` what to do, ``who`` who can, and
    ``source`` the address of the rule.
    """

    kind: str
    object: str
    why: str
    act: str
    who: str
    source: str


class ClusterReadiness(TypedDict):
    """A cluster: ``state`` is ready, blocked or unknown, for an upgrade ``to`` a version.

    ``unknown`` says what is not known of it, ``notes`` what blocks nothing. ``readAt`` is when it was read,
    None for never, with so many ``reads`` of its API server.
    """

    name: str
    to: str
    state: str
    blockers: list[BlockerView]
    unknown: list[str]
    notes: list[str]
    readAt: str | None
    reads: int


@final
class ReadinessView(TypedDict):
    """``GET readiness``; ``count`` counts the clusters on all pages, ``note`` says what no reading proves."""

    clusters: list[ClusterReadiness]
    count: int
    note: str
    next: str | None


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
