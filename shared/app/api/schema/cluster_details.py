"""What else a cluster is asked about: tries, lifetime, sleep, readiness, drift, and how Azure has it now."""

from __future__ import annotations

from typing import Any, TypedDict, final


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


class DriftedFieldView(TypedDict):
    """A field below ``spec``: ``git`` and ``live`` are JSON, "" for no value; a long one is cut.

    ``leftAlone``: no job changes it, because git does not name it, or because AKS cannot go back.
    ``action`` is what the policy does, ``note`` why it is not what the policy asks for; "" for nothing.
    ``source`` is the "file:line" that sets the value of git; "" where git has none.
    ``effect`` is what the correction does where ``action`` is ``approve``, "" otherwise.
    ``changedBy`` and ``changedAt`` are from Azure's activity log, "" and None where that does not say.
    ``pullRequest`` is the address of the pull request that takes the value of Azure into the manifest, "" for
    none. ``acceptable``: somebody added it, and an Operator may accept it.
    """

    path: str
    git: str
    live: str
    since: str | None
    leftAlone: bool
    action: str
    note: str
    source: str
    changedBy: str
    changedAt: str | None
    effect: str
    pullRequest: str
    acceptable: bool


class AcceptedFieldView(TypedDict):
    """A field that somebody added to the cluster ``name``, and that somebody accepted with its value."""

    name: str
    path: str
    live: str
    by: str
    at: str | None
    reason: str


class CorrectionApprovalView(TypedDict):
    """Who approved the corrections of a cluster."""

    by: str
    at: str | None
    reason: str


class HeldCorrection(TypedDict):
    """The freeze or the change window that holds a correction ``until`` a time, None for never.

    ``owner`` answers for the freeze, and ``because`` says why, "" for a window.
    """

    name: str
    since: str
    until: str | None
    owner: str
    because: str


class DriftedCluster(TypedDict):
    """A cluster that differs; ``more`` counts the fields that are not shown.

    ``needsApproval`` identifies the corrections that wait for an approval, "" for none. ``approval`` is the
    one that they have, until the sweep has compared once more and started the job. ``finding`` is what a
    sweep found of the whole cluster, such as who deleted it, "" for nothing. ``held`` is what keeps a
    correction from starting, None for nothing. ``comparedAt`` is when it was compared with Azure last.
    """

    name: str
    generation: int
    commit: str
    fields: list[DriftedFieldView]
    more: int
    needsApproval: str
    approval: CorrectionApprovalView | None
    finding: str
    held: HeldCorrection | None
    comparedAt: str | None


class InsideFinding(TypedDict):
    """What a check found inside a cluster ``at`` a time, or why it could not read it."""

    name: str
    finding: str
    at: str | None


@final
class DriftView(TypedDict):
    """``GET drift``; ``count`` is the number of clusters that differ, on all pages.

    What is inside clusters is checked and not compared: ``inside`` are the first findings of checks, and
    ``insideCount`` is how many clusters have one. ``outside`` counts the clusters of which nothing is
    compared, because they are not in Azure.

    ``activityLog`` is why who changed something is not known of some subscriptions, ``proposals`` why pull
    requests are not opened that should be; "" for nothing. ``comparedAt`` is how old all this is: when the
    cluster that is asked for was compared last, and of the fleet the oldest list of a subscription.
    ``accepted`` is what counts no more, of the clusters that are shown or asked for.
    """

    clusters: list[DriftedCluster]
    count: int
    inside: list[InsideFinding]
    insideCount: int
    outside: int
    activityLog: str
    proposals: str
    comparedAt: str | None
    accepted: list[AcceptedFieldView]
    next: str | None


# Clusters as Azure shows them now.

LIVE_CLUSTERS = 10
"""So many clusters are read in one request: each is a call to Azure, and takes up to a second."""


class LiveCluster(TypedDict):
    """A cluster: ``live`` is ARM's document, None where Azure has none, or with a ``problem``.

    ``unmanaged`` names what it had beyond git when it was verified, or what somebody accepted of that since
    with the value that it has; None where nobody looked then. ``removed`` are the labels and taints that git
    had and a job has still to remove, by node pool.
    ``lowered`` are the versions that git had and has lowered since, by their paths below ``spec``.
    """

    name: str
    resource: str
    phase: str
    live: dict[str, Any] | None
    unmanaged: list[str] | None
    removed: dict[str, list[str]]
    lowered: dict[str, str]
    problem: str


@final
class Live(TypedDict):
    """``GET live``; the names of the fleet and of its repository are those in the tags of its clusters."""

    fleet: str
    repository: str
    previousRepository: str
    readAt: str | None
    clusters: list[LiveCluster]
