"""Plans, their approval, what a plan compares with, and promotions."""

from __future__ import annotations

from typing import Any, TypedDict, final

from shared.app.api.schema.clusters import PlanPart
from shared.app.api.schema.fleet import FollowedSource, UnreadableRecordView


class ApprovalView(TypedDict):
    """The approval of a plan's deletes."""

    by: str
    at: str | None
    clusterCount: int
    reason: str


class PlanSummary(TypedDict):
    """A plan; ``howToApprove`` is "" when it has no delete that can be approved now.

    ``needsReleaseCount`` and ``approvedReleaseCount`` are those of them that release clusters outside Azure.
    ``reviews`` is what the reviews said when they were read last, "" if they were not read.
    """

    commit: str
    plannedAt: str | None
    summary: str
    status: str
    problemCount: int
    needsApprovalCount: int
    needsReleaseCount: int
    approval: ApprovalView | None
    approvedReleaseCount: int
    howToApprove: str
    reviews: str


@final
class PlansView(TypedDict):
    """``GET plans``, the newest first; ``corrections`` are the clusters with a correction to approve."""

    plans: list[PlanSummary]
    corrections: list[str]


class ChangeView(TypedDict):
    """A changed field of a cluster."""

    path: str
    old: str
    new: str
    effect: str
    destroys: bool
    source: str


class PlanItem(PlanPart):
    """What a plan does to one cluster, field by field.

    ``retainedSystems`` stay as they are although the commit takes namespaces from them: the reason says why.
    ``removal`` is what it takes away, carried out or not: a delete, release or rebuild of the cluster, or a
    "loss" of what Flux has applied there. ``waits`` is why its rollout does not start it now, or "".
    """

    cluster: str
    generation: int
    changes: list[ChangeView]
    removal: str
    retainedSystems: list[str]
    waits: str


class ProgressView(TypedDict):
    """How many clusters of a plan are in sync, and the first problem."""

    total: int
    ready: int
    failed: int
    firstProblem: str


class ListPriceChange(TypedDict):
    """Clusters whose list price of a month changes alike, each from ``low`` to ``high``."""

    clusters: list[str]
    low: float
    high: float


class ListPriceView(TypedDict):
    """The difference of the list price of a month: no cost, and before every discount.

    ``low`` has each autoscaled pool at its minimum, ``high`` at its maximum; ``spotLow`` and ``spotHigh`` are
    the part of spot nodes. ``day`` is that of the prices, "" where there are none: ``problem`` says why.
    ``changes`` are the 50 largest. ``missing`` has no price, ``leftOut`` is not counted, and ``waiting``
    clusters are on hold. ``summary`` and ``details`` say the same in sentences.
    """

    currency: str
    day: str
    low: float
    high: float
    spotLow: float
    spotHigh: float
    changes: list[ListPriceChange]
    missing: list[str]
    leftOut: list[str]
    waiting: int
    problem: str
    summary: str
    details: list[str]


@final
class PlanView(PlanSummary):
    """``GET plans/COMMIT``. ``needsApproval`` are the deletes of this page that need approval.

    ``listPrice`` is by how much the commit changes the list price, null where it does not.
    """

    listPrice: ListPriceView | None
    problems: list[str]
    needsApproval: list[str]
    items: list[PlanItem]
    next: str | None
    progress: ProgressView


@final
class PullPlanView(TypedDict):
    """``GET pulls/NUMBER``: what a merge of a pull request would do, as its head was planned last.

    ``outdated``: ``base`` is no longer the newest commit. ``title`` is the result in a line; ``note`` and
    ``refusal`` are about the plan as a whole, "" for none. One from a ``fork`` is validated, and has no
    items. ``needsApproval`` are the deletes of this page that need approval. ``listPrice`` is by how much it
    changes the list price, null where it does not.
    """

    number: int
    url: str
    head: str
    base: str
    plannedAt: str | None
    outdated: bool
    title: str
    note: str
    refusal: str
    fork: bool
    listPrice: ListPriceView | None
    problems: list[str]
    needsApproval: list[str]
    items: list[PlanItem]
    next: str | None


class RunningPool(TypedDict):
    """The oldest versions that the nodes of a pool of the manifest run, as they were read last."""

    name: str
    kubernetesVersion: str
    nodeImageVersion: str


class RecordedCluster(TypedDict):
    """A cluster as its last accepted commit has it.

    ``heldUntil`` is until when somebody holds it, None for a cluster without a hold. ``runningVersion`` and
    ``runningPools`` are what ran when it was read last. ``ready``: that was verified, and is so.
    """

    name: str
    document: dict[str, Any]
    digest: str
    generation: int
    uid: str
    deleting: bool
    restorable: bool
    retryableFailure: bool
    runningVersion: str
    runningPools: list[RunningPool]
    rebuiltFor: str
    heldUntil: str | None
    heldBy: str
    heldBecause: str
    ready: bool
    needsApproval: bool
    approved: bool


@final
class TrackedBranch(TypedDict):
    """The tracked branch of the fleet repository, as Flux names it: clusters that pull it are pinned."""

    server: str
    repositories: list[str]
    branch: str


@final
class RecordedFleet(TypedDict):
    """``GET recorded``: what ``roadstead plan`` compares the files with.

    ``durations`` are the seconds that changes of each kind took, and ``replacing`` has, by removed cluster,
    those that are to replace it, or were; ``unreadable`` are the records that the list lacks because they
    cannot be read.
    """

    fleet: str
    commit: str
    source: TrackedBranch
    followed: list[FollowedSource]
    approval: ApprovalView | None
    durations: dict[str, list[int]]
    replacing: dict[str, list[str]]
    clusters: list[RecordedCluster]
    unreadable: list[UnreadableRecordView]
    next: str | None


OFFERED_CLUSTERS = 1000
"""So many clusters are taken by one ``POST offers``."""


@final
class OffersView(TypedDict):
    """``POST offers``: a sentence for each thing that Azure does not have, or does not say."""

    short: list[str]


# What lies between an environment and the head of the branch.


class PulledCommit(TypedDict):
    """The newest commit that clusters have, "" for those whose Flux pulls another source or follows the
    branch by itself.

    ``behind`` is how many commits of the branch follow it, None where that is not known: over 250, or the
    branch does not contain it. ``clusters`` are the first of ``clusterCount``. Of so many of these as
    ``unverifiedCount``, a job runs or has failed.
    """

    commit: str
    behind: int | None
    clusterCount: int
    unverifiedCount: int
    clusters: list[str]


class LogCommit(TypedDict):
    """A commit of the branch; ``files`` are the first of ``fileCount``, which ends at 300."""

    commit: str
    title: str
    author: str
    fileCount: int
    files: list[str]


@final
class Log(TypedDict):
    """``GET log``: the commits that a cluster of the environment lacks, newest first.

    ``more`` are older ones that are not shown.
    """

    fleet: str
    environment: str
    branch: str
    head: str
    pulled: list[PulledCommit]
    commits: list[LogCommit]
    more: int


# Promotions, as the API shows them.


@final
class PromotionValue(TypedDict):
    """A field below ``spec``, with the value that an environment is to get."""

    field: str
    value: str


@final
class PromotionHold(TypedDict):
    """A value that no rule gives to the environment; a person still can."""

    field: str
    value: str
    reason: str


@final
class PromotionView(TypedDict):
    """What an environment is to get: by a rule of fleet.yaml, or because somebody asked.

    ``state`` is open, merged, declined or none; ``problem`` is why nothing is proposed, "" for nothing.
    """

    target: str
    source: str
    rule: bool
    state: str
    values: list[PromotionValue]
    pullRequest: str
    by: str
    askedAt: str | None
    problem: str
    holds: list[PromotionHold]


@final
class PromotionsView(TypedDict):
    """``GET promotions``, by environment."""

    promotions: list[PromotionView]


@final
class PromotionReceipt(TypedDict):
    """``POST promotions``: the pull request is queued, with these values for these clusters."""

    queued: str
    source: str
    target: str
    values: list[PromotionValue]
    clusters: list[str]
    by: str
