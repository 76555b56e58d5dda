"""The objects of the HTTP API, version v1alpha, as the server writes them and the command reads them.

Times are ISO 8601 in UTC. Lists of clusters come in pages: ``next`` is the ``after`` of the next page, None
on the last one. This module imports nothing, so that the command starts quickly.
"""

from __future__ import annotations

from typing import Any, TypedDict, final

NOT_CREATED = "NotCreated"
"""The phase of a cluster that git has and that the newest plan does not create: its manifest is invalid."""
DELETED = "Deleted"
"""The phase of a cluster of which only events remain."""


class PlanPart(TypedDict):
    """What the newest plan does to one cluster.

    ``notCarriedOut``: it does not do what the commit requests. ``cause`` says why and ``remedy`` what changes
    that, each "" for nothing; ``reason`` is both as one sentence.
    """

    action: str
    notCarriedOut: bool
    reason: str
    cause: str
    remedy: str
    needsApproval: bool


Failure = TypedDict(
    "Failure", {"class": str, "message": str, "since": str | None, "code": str, "requestId": str}
)
"""The last error of a cluster's job; ``class`` is one of docs/errors.md, ``since`` when it first occurred."""


class Condition(TypedDict):
    """A condition, as Kubernetes writes one."""

    type: str
    status: str
    reason: str
    message: str
    lastTransitionTime: str | None


class Event(TypedDict):
    """Something that happened to a cluster."""

    at: str | None
    type: str
    reason: str
    step: str
    message: str
    generation: int
    startedAt: str | None
    requestIds: list[str]


class FleetProblem(TypedDict):
    """What prevents a newer commit from being planned, or an invalid fleet.yaml; each is "" for nothing."""

    problem: str
    waiting: str
    fleetSuggestedAction: str


class ClusterSummary(TypedDict):
    """A cluster: its phase, the reason for it and since when, and when it is checked next.

    ``actionRequired`` is what an operator must do before the job continues, "" for nothing; with
    ``awaitsTakeover`` a takeover is one way.
    """

    name: str
    phase: str
    step: str
    reason: str
    since: str | None
    actionRequired: str
    awaitsTakeover: bool
    nextCheckAt: str | None
    attempts: int
    failure: Failure | None
    generation: int
    observedGeneration: int
    commit: str
    plan: PlanPart | None
    environment: str
    location: str
    resourceGroup: str
    subscriptionId: str
    kubernetesVersion: str
    conditions: list[Condition]
    createdAt: str | None
    updatedAt: str | None


class Counts(TypedDict):
    """How many clusters the fleet has, how many of them the list has, and how many are in each phase."""

    total: int
    matching: int
    phases: dict[str, int]


class SweepProblem(TypedDict):
    """A subscription whose newest list concludes nothing, or too little; ``listedAt``: the last good one."""

    subscription: str
    problem: str
    listedAt: str | None


class Orphan(TypedDict):
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
    orphans: list[Orphan]
    orphanCount: int


@final
class Fleet(FleetProblem):
    """``GET clusters``. ``notCreated`` are the first clusters that the newest plan does not create.

    ``needsApproval`` are the first deletes of the newest plan that need approval. ``counts`` is None on a
    later page of the list of all clusters, and ``sweep`` on any later page.
    """

    fleet: str
    repository: str
    branch: str
    commit: str
    plannedAt: str | None
    deadLetterCount: int
    notCreated: list[str]
    notCreatedCount: int
    needsApproval: list[str]
    needsApprovalCount: int
    counts: Counts | None
    sweep: Sweep | None
    clusters: list[ClusterSummary]
    next: str | None


@final
class Cluster(ClusterSummary, FleetProblem):
    """``GET clusters/NAME``: a cluster with its spec and its newest events."""

    spec: dict[str, Any]
    events: list[Event]


@final
class MissingCluster(FleetProblem):
    """``GET clusters/NAME`` of a cluster that was deleted, or that the newest plan does not create."""

    name: str
    phase: str
    plan: PlanPart | None
    events: list[Event]


@final
class Events(TypedDict):
    """``GET clusters/NAME/events``, the newest first; ``next`` is the ``before`` of the next page."""

    name: str
    events: list[Event]
    next: str | None


class Act(TypedDict):
    """What somebody asked for; ``result`` is "" while it runs, and for good if it was interrupted."""

    id: str
    at: str | None
    action: str
    target: str
    clusters: list[str]
    by: str
    byId: str
    address: str
    client: str
    reason: str
    result: str


@final
class Audit(TypedDict):
    """``GET audit``, the newest first; ``next`` is the ``before`` of the next page."""

    acts: list[Act]
    next: str | None


@final
class Why(FleetProblem):
    """``GET clusters/NAME/why``: why a cluster is in its phase, in sentences."""

    name: str
    phase: str
    doing: str
    since: str | None
    attempts: int
    lastError: Failure | None
    plan: PlanPart | None
    next: str
    nextAt: str | None
    suggestedAction: str
    acts: list[Act]


@final
class ReplayReceipt(TypedDict):
    """``POST clusters/NAME/replay``: the recipe that starts again."""

    cluster: str
    replayed: str
    by: str


@final
class RefreshReceipt(TypedDict):
    """``POST refresh``: which clusters are compared with Azure, or ``all``."""

    clusters: list[str]
    all: bool
    by: str


@final
class TakeoverReceipt(TypedDict):
    """``POST clusters/NAME/takeover``: the installations that the takeover overrules, by id."""

    cluster: str
    overruled: list[str]
    by: str


@final
class SourceReceipt(TypedDict):
    """``POST takeover``: where the fleet is planned from now on."""

    repositoryId: int
    branch: str
    by: str


class Approval(TypedDict):
    """The approval of a plan's deletes."""

    by: str
    at: str | None
    clusterCount: int
    reason: str


class PlanSummary(TypedDict):
    """A plan; ``howToApprove`` is "" when it has no delete that can be approved now.

    ``reviews`` is what the reviews on GitHub said when they were read last, "" if they were not read.
    """

    commit: str
    plannedAt: str | None
    summary: str
    status: str
    problemCount: int
    needsApprovalCount: int
    approval: Approval | None
    howToApprove: str
    reviews: str


@final
class Plans(TypedDict):
    """``GET plans``, the newest first."""

    plans: list[PlanSummary]


class Change(TypedDict):
    """A changed field of a cluster."""

    path: str
    old: str
    new: str
    effect: str
    destroys: bool
    source: str


class PlanItem(PlanPart):
    """What a plan does to one cluster, field by field."""

    cluster: str
    generation: int
    changes: list[Change]


class Progress(TypedDict):
    """How many clusters of a plan are in sync, and the first problem."""

    total: int
    ready: int
    failed: int
    firstProblem: str


@final
class Plan(PlanSummary):
    """``GET plans/COMMIT``. ``needsApproval`` are the deletes of this page that need approval."""

    problems: list[str]
    needsApproval: list[str]
    items: list[PlanItem]
    next: str | None
    progress: Progress


@final
class ApprovalReceipt(TypedDict):
    """``POST plans/COMMIT/approve``: the deletes that were approved."""

    queued: str
    commit: str
    approved: list[str]
    by: str


class RecordedCluster(TypedDict):
    """A cluster as its last accepted commit has it."""

    name: str
    document: dict[str, Any]
    digest: str
    generation: int
    uid: str
    deleting: bool
    restorable: bool
    retryableFailure: bool
    needsApproval: bool
    approved: bool


@final
class Recorded(TypedDict):
    """``GET recorded``: what ``roadstead plan`` compares the files with."""

    fleet: str
    commit: str
    approval: Approval | None
    clusters: list[RecordedCluster]
    next: str | None


class DeadLetter(TypedDict):
    """A message that a queue gave up and that could not be handled; ``body`` is its beginning."""

    queue: str
    id: str
    at: str | None
    reason: str
    description: str
    body: str
    size: int


@final
class DeadLetters(TypedDict):
    """``GET dead-letters``, the newest first."""

    deadLetters: list[DeadLetter]


@final
class DismissReceipt(TypedDict):
    """``POST dead-letters/dismiss``: how many were removed."""

    dismissed: int


@final
class Imported(TypedDict):
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
