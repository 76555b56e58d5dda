"""Plans of commits, their approval, and what a plan compares the files with."""

from __future__ import annotations

from typing import Any, TypedDict, final

from shared.pipeline.api.schema.clusters import PlanPart
from shared.pipeline.api.schema.health import UnreadableRecord


class Approval(TypedDict):
    """The approval of a plan's deletes."""

    by: str
    at: str | None
    clusterCount: int
    reason: str


class PlanSummary(TypedDict):
    """A plan; ``howToApprove`` is "" when it has no delete that can be approved now.

    ``needsReleaseCount`` and ``approvedReleaseCount`` are those of them that release clusters outside Azure.
    ``reviews`` is what the reviews on GitHub said when they were read last, "" if they were not read.
    """

    commit: str
    plannedAt: str | None
    summary: str
    status: str
    problemCount: int
    needsApprovalCount: int
    needsReleaseCount: int
    approval: Approval | None
    approvedReleaseCount: int
    howToApprove: str
    reviews: str


@final
class Plans(TypedDict):
    """``GET plans``, the newest first; ``corrections`` are the clusters with a correction to approve."""

    plans: list[PlanSummary]
    corrections: list[str]


class Change(TypedDict):
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
    ``waits`` is why its rollout does not start it now, or "".
    """

    cluster: str
    generation: int
    changes: list[Change]
    retainedSystems: list[str]
    waits: str


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


class RecordedCluster(TypedDict):
    """A cluster as its last accepted commit has it.

    ``ready``: that was verified, and is so.
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
    rebuiltFor: str
    ready: bool
    needsApproval: bool
    approved: bool


@final
class Recorded(TypedDict):
    """``GET recorded``: what ``roadstead plan`` compares the files with.

    ``durations`` are the seconds that changes of each kind took, and ``replacing`` has, by removed cluster,
    those that are to replace it, or were; ``unreadable`` are the records that the list lacks because they
    cannot be read.
    """

    fleet: str
    commit: str
    approval: Approval | None
    durations: dict[str, list[int]]
    replacing: dict[str, list[str]]
    clusters: list[RecordedCluster]
    unreadable: list[UnreadableRecord]
    next: str | None
