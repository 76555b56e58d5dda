"""What a call answers that changes something, rehearses, or imports."""

from __future__ import annotations

from typing import Any, TypedDict, final


@final
class Receipt(TypedDict):
    """What an act answers that has nothing more to say: what it was about, and by whom."""

    target: str
    by: str


@final
class TryReceipt(TypedDict):
    """``POST clusters/NAME/try``: the commit of the pull request that the cluster gets, and until when."""

    cluster: str
    pull: int
    commit: str
    until: str
    by: str


@final
class ClusterRequestReceipt(TypedDict):
    """``POST requests``: the pull request that adds the cluster is open.

    ``merge`` says who merges it; with ``autoMerge`` that is the git host, by the rules of the branch.
    """

    cluster: str
    environment: str
    lifetime: str
    file: str
    pullRequest: str
    autoMerge: bool
    merge: str
    by: str


@final
class LifetimeReceipt(TypedDict):
    """``POST clusters/NAME/extend``: when the cluster ends now, and until when somebody holds it."""

    cluster: str
    ends: str | None
    heldUntil: str | None
    by: str


@final
class RefreshReceipt(TypedDict):
    """``POST refresh``: which clusters are compared with Azure, or ``all``; asked for ``at`` a time."""

    clusters: list[str]
    all: bool
    by: str
    at: str


@final
class SyncReceipt(TypedDict):
    """``POST sync``: the head of the branch, and whether a plan of it was queued."""

    commit: str
    queued: bool
    by: str


@final
class PauseReceipt(TypedDict):
    """``POST pause`` and ``resume``: whether the fleet is paused now, and until when, None for no end."""

    paused: bool
    until: str | None
    by: str


@final
class ExaminationReceipt(TypedDict):
    """``POST doctor``: the apps that were asked to examine themselves; what is older than ``at`` is older."""

    apps: list[str]
    at: str
    by: str


@final
class SleepReceipt(TypedDict):
    """``POST clusters/NAME/wake``, ``sleep`` and ``postpone``: until when the cluster is awake, or sleeps."""

    cluster: str
    awake: bool
    until: str
    by: str


@final
class SourceReceipt(TypedDict):
    """``POST takeover``: where the fleet is planned from now on."""

    repositoryId: int
    branch: str
    by: str


@final
class SuspensionReceipt(TypedDict):
    """``POST suspensions``: the pull request that suspends clusters until a time."""

    clusters: list[str]
    until: str
    owner: str
    pullRequest: str
    by: str


class DeadLetterView(TypedDict):
    """A message that a queue gave up and that could not be handled; ``body`` is its beginning.

    ``replayable``: it is stored whole, and is one that this app knows.
    """

    queue: str
    id: str
    at: str | None
    reason: str
    description: str
    body: str
    size: int
    replayable: bool


@final
class DeadLettersView(TypedDict):
    """``GET dead-letters``, the newest first."""

    deadLetters: list[DeadLetterView]


@final
class LettersReceipt(TypedDict):
    """``POST dead-letters/replay``: how many messages were sent again."""

    replayed: int
    by: str


@final
class DismissReceipt(TypedDict):
    """``POST dead-letters/dismiss``: how many were removed."""

    dismissed: int


class ImportableCluster(TypedDict):
    """A managed cluster by its ARM id; ``fleet`` is the one whose tag it has, "" for none."""

    resource: str
    fleet: str


@final
class Importable(TypedDict):
    """``GET importable``: the managed clusters of a subscription."""

    subscription: str
    clusters: list[ImportableCluster]


@final
class Import(TypedDict):
    """``GET import``: the manifest of a managed cluster.

    ``spec`` has every field, ``manifest`` omits those that have the same effect when absent. ``left`` are
    sentences about what a manifest cannot express, ``differences`` the fields that an
    adoption would change.
    """

    resource: str
    manifest: dict[str, Any]
    spec: dict[str, Any]
    left: list[str]
    differences: list[str]


# The rollback of a node pool, as the API shows it.


@final
class PoolVersionsView(TypedDict):
    """What a node pool runs."""

    orchestratorVersion: str
    nodeImageVersion: str


@final
class RollbackReceipt(TypedDict):
    """``POST clusters/{name}/pools/{pool}/rollback``: the pull request is open.

    ``lastUsed`` is until when the pool ran the versions of ``target``.
    """

    cluster: str
    pool: str
    running: PoolVersionsView
    target: PoolVersionsView
    lastUsed: str
    pullRequest: str
    by: str


# The routes of notifications.


class SentMessageView(TypedDict):
    """A message of a route: its title, when it was sent last, and why it has not arrived, "" if it has."""

    title: str
    at: str | None
    problem: str


class RouteView(TypedDict):
    """A route, and how it is. ``severity`` is "" for a route that names its ``events``.

    ``sent`` counts its messages, ``pending`` the notifications that it has not received, until ``nextAt`` at
    least. ``problem`` is why it does not deliver, "" for nothing. ``messages`` has the newest, newest first.
    """

    name: str
    type: str
    severity: str
    events: list[str]
    environments: list[str]
    labels: dict[str, str]
    sent: int
    pending: int
    problem: str
    failingSince: str | None
    nextAt: str | None
    messages: list[SentMessageView]


@final
class RoutesView(TypedDict):
    """``GET notifications``: the routes of the newest plan."""

    routes: list[RouteView]
