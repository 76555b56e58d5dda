"""The fleet as a whole, and the health of the app."""

from __future__ import annotations

from typing import TypedDict, final

from shared.app.api.schema.clusters import ActView, ClusterSummaryView, FleetProblemView

# The health of the app.


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


class UnreadableRecordView(TypedDict):
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


class HealthView(TypedDict):
    """``GET health``: the services and timers as of ``checkedAt``, and the records that cannot be read.

    ``lacks`` says what the git host does not offer, and what is lost. ``unreadable`` is None before this
    instance has read them. ``paused`` is the pause that lasts, "" for none.
    """

    live: bool
    ready: bool
    checkedAt: str | None
    services: list[ServiceHealth]
    credentials: list[CredentialHealth]
    timers: list[TimerHealth]
    lacks: list[str]
    paused: str
    unreadable: list[UnreadableRecordView] | None


class ExaminedApp(TypedDict):
    """An app, when it examined itself last, None for never, and the version and the functions that it has."""

    app: str
    examinedAt: str | None
    version: str
    functions: list[str]


class FindingView(TypedDict):
    """What is wrong with ``what`` of an app, since when, and the command or the act that mends it."""

    app: str
    what: str
    problem: str
    since: str | None
    remedy: str


@final
class DoctorView(TypedDict):
    """``GET doctor``: the apps, and everything that is wrong with them."""

    apps: list[ExaminedApp]
    findings: list[FindingView]


class Counts(TypedDict):
    """How many clusters the fleet has, how many of them the list has, and how many are in each phase.

    ``environments`` has the phases of each environment, "" for clusters of none.
    """

    total: int
    matching: int
    phases: dict[str, int]
    environments: dict[str, dict[str, int]]


class SweepProblem(TypedDict):
    """A subscription whose newest list concludes nothing, or too little; ``listedAt``: the last good one."""

    subscription: str
    problem: str
    listedAt: str | None


class OrphanView(TypedDict):
    """A cluster with this fleet's tags that the fleet does not know; ``cluster`` is the name in its tags."""

    resource: str
    cluster: str
    installation: str
    since: str | None


class Sweep(TypedDict):
    """When the fleet was compared with Azure, and what no cluster shows of it; the first of each list."""

    startedAt: str | None
    finishedAt: str | None
    problems: list[SweepProblem]
    problemCount: int
    orphans: list[OrphanView]
    orphanCount: int


class FailingRoute(TypedDict):
    """A route of notifications that does not deliver, why, and since when."""

    route: str
    problem: str
    since: str | None


class GapView(TypedDict):
    """A head that no webhook had planned; ``foundBy`` is ``timer``, or ``sync`` for an operator."""

    commit: str
    foundAt: str | None
    foundBy: str


class GapsView(TypedDict):
    """How many such heads were planned so far, and the last one."""

    count: int
    last: GapView | None


@final
class FollowedSource(TypedDict):
    """A source besides the fleet repository that clusters follow by rollout, as the last plan took it.

    ``problem`` is why its clusters keep the commits that they have, "" for nothing.
    """

    repository: str
    branch: str
    commit: str
    clusterCount: int
    problem: str
    suggestedAction: str


class AttentionPlace(TypedDict):
    """An environment in a region, and how many clusters wait there."""

    environment: str
    location: str
    clusterCount: int


@final
class AttentionView(TypedDict):
    """Clusters in a phase that wait for the same, the first of so many, since when, and who acts.

    ``places`` are where they are, the one with the most first. ``cause`` selects them in ``GET clusters``.
    """

    cause: str
    phase: str
    places: list[AttentionPlace]
    detail: str
    who: str
    since: str | None
    clusterCount: int
    clusters: list[str]


@final
class FleetView(FleetProblemView):
    """``GET clusters``. ``notCreated`` are the first clusters that the newest plan does not create.

    ``needsApproval`` are the first deletes of the newest plan that need approval, ``corrections`` the first
    clusters with a correction of drift that does; a later page of the list of all clusters has none of
    these. ``counts`` is None on such a page, and ``sweep`` on any later page. ``rollout`` says how far the
    rollout is that is under way, "" for none and on a later page. ``unreadable`` are the records of clusters
    that the page lacks because they cannot be read. ``needsReleaseCount`` are the releases of clusters
    outside Azure among those that need approval. ``ending`` are the first clusters of which something leaves
    support within 180 days or has left it, or a certificate ends within 30 days or has ended. ``attention``
    are the first causes for which clusters wait for a person, and ``attentionCount`` counts these clusters.
    """

    fleet: str
    repository: str
    branch: str
    commit: str
    plannedAt: str | None
    rollout: str
    unreadable: list[UnreadableRecordView]
    deadLetterCount: int
    notCreated: list[str]
    notCreatedCount: int
    needsApproval: list[str]
    needsApprovalCount: int
    needsReleaseCount: int
    corrections: list[str]
    correctionCount: int
    ending: list[str]
    endingCount: int
    attention: list[AttentionView]
    attentionCount: int
    followed: list[FollowedSource]
    failingRoutes: list[FailingRoute]
    counts: Counts | None
    sweep: Sweep | None
    repairedGaps: GapsView
    clusters: list[ClusterSummaryView]
    next: str | None


@final
class Audit(TypedDict):
    """``GET audit``, the newest first; ``next`` is the ``before`` of the next page."""

    acts: list[ActView]
    next: str | None


# What the fleet runs, and whose it is.


class EnvironmentVersions(TypedDict):
    """The clusters of an environment in Azure, "" for those of none.

    ``versions`` has how many run each version of Kubernetes, ``images`` how many have nodes with each image;
    what was not read yet is "unknown". ``notAsGit`` counts those that run another version than git has.
    """

    environment: str
    clusters: int
    versions: dict[str, int]
    images: dict[str, int]
    notAsGit: int


class ChannelView(TypedDict):
    """An environment that gets something from a channel: the pull request that is open, or why none is.

    ``what`` is ``version`` for that of Kubernetes, ``images``, or ``components`` for Flux.
    ``proposed`` and ``pullRequest`` are "" without one, ``problem`` where nothing is in the way.
    """

    environment: str
    what: str
    channel: str
    proposed: str
    pullRequest: str
    problem: str


class EndView(TypedDict):
    """What leaves support within 180 days, or has left it, or a certificate that ends within 30 days.

    ``on`` is the last day; ``message`` says what to do, and ``source`` is the announcement, "" for a
    certificate. ``clusters`` are the first of so many.
    """

    what: str
    on: str
    message: str
    source: str
    clusterCount: int
    clusters: list[str]


@final
class VersionsView(TypedDict):
    """``GET versions``; ``supportEnds`` is the last day of the community's support, by version.

    ``channels`` are the environments to which the app proposes versions of their channels, in order. ``ends``
    is what ends soon, or has ended, the soonest first. ``note`` says that the table of these days is
    old, "" otherwise.
    """

    environments: list[EnvironmentVersions]
    channels: list[ChannelView]
    supportEnds: dict[str, str]
    ends: list[EndView]
    note: str


class SystemRevision(TypedDict):
    """What Flux applied last of a system, "" for nothing yet, and on how many clusters."""

    revision: str
    clusterCount: int


@final
class SystemView(TypedDict):
    """A team's system; ``clusters``, ``revisions`` and ``unhealthy`` are the first of so many.

    ``unreadCount`` are the clusters of which no check has read what runs there, or could not.
    """

    name: str
    owners: list[str]
    namespaces: list[str]
    clusterCount: int
    clusters: list[str]
    revisions: list[SystemRevision]
    unreadCount: int
    unhealthyCount: int
    unhealthy: list[str]


@final
class SystemsView(TypedDict):
    """``GET systems``, by name."""

    systems: list[SystemView]
