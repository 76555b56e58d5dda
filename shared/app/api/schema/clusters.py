"""A cluster: its phase, conditions, events, why, its tree and its outputs."""

from __future__ import annotations

from typing import Any, TypedDict, final

from shared.app.api.schema.cluster_details import ClusterReadiness, LifetimeView, SleepView, TrialView
from shared.app.api.schema.rollouts import WaitingCluster

NOT_CREATED = "NotCreated"
"""The phase of a cluster that git has and that the newest plan does not create: its manifest is invalid."""
DELETED = "Deleted"
"""The phase of a cluster of which only events remain."""
RELEASED = "Released"
"""Likewise, of a cluster outside Azure: it is no longer of the fleet, and goes on."""


class PlanPart(TypedDict):
    """What the newest plan does to one cluster.

    ``notCarriedOut``: it does not do what the commit requests. ``cause`` says why and ``remedy`` what changes
    that, each "" for nothing; ``reason`` is both as one sentence. ``since`` is since when it is on hold, None
    where it is not or that is not known. Where a freeze, a change window or a suspension holds it, ``until``
    says when it starts by itself, None for never, ``owner`` answers for the freeze or the suspension, and
    ``because`` says why, "" for neither. ``releases``: a cluster outside Azure leaves the fleet, and what
    runs there stays. ``lags``: Flux is to have an earlier commit first, which goes through the stages before.
    """

    action: str
    notCarriedOut: bool
    reason: str
    cause: str
    remedy: str
    needsApproval: bool
    releases: bool
    lags: bool
    since: str | None
    until: str | None
    owner: str
    because: str


Failure = TypedDict(
    "Failure",
    {
        "class": str,
        "message": str,
        "since": str | None,
        "code": str,
        "requestId": str,
        "entry": str,
        "meaning": str,
        "who": str,
        "link": str,
    },
)
"""The last error of a cluster's job; ``class`` is one of docs/errors.md, ``since`` when it first occurred.

``entry`` is the key of the catalogue's entry, with who has to act and a page of Microsoft's about it.
"""


class ConditionView(TypedDict):
    """A condition, as Kubernetes writes one; ``lastVerifiedTime`` is when it was found to be so at last."""

    type: str
    status: str
    reason: str
    message: str
    lastTransitionTime: str | None
    lastVerifiedTime: str | None
    observedGeneration: int


class EventView(TypedDict):
    """Something that happened to a cluster."""

    at: str | None
    type: str
    reason: str
    step: str
    message: str
    generation: int
    startedAt: str | None
    requestIds: list[str]


class FleetProblemView(TypedDict):
    """What prevents a newer commit from being carried out, or is wrong in fleet.yaml; "" for nothing."""

    problem: str
    waiting: str
    paused: str
    fleetSuggestedAction: str


class RetirementView(TypedDict):
    """What AKS has retired, or will within 180 days, of what a cluster has.

    ``field`` is the field below ``spec`` that asks for it, ``on`` the last day of its support, ``message`` a
    sentence with what to do, and ``source`` the announcement.
    """

    field: str
    what: str
    on: str
    message: str
    source: str


class EndingCertificate(TypedDict):
    """A certificate of a cluster's API server, or of its authority, that has ended or will within 30 days."""

    of: str
    endsAt: str | None
    message: str


class Policy(TypedDict):
    """A policy of the manifest, and what Azure Policy found of the cluster.

    ``state`` is Azure's word for the worst of its definitions, ``NotEvaluated`` where it shows none, and ""
    before a check has read it. ``nonCompliant`` is how many definitions are NonCompliant, ``evaluatedAt``
    when Azure found the oldest of it, and ``readAt`` when a check read that.
    """

    name: str
    definition: str
    enforcementMode: str
    state: str
    nonCompliant: int
    evaluatedAt: str | None
    readAt: str | None


class ClusterSummaryView(TypedDict):
    """A cluster: its phase, the reason for it and since when, and when it is checked next.

    ``actionRequired`` is what an operator must do before the job continues, "" for nothing; with
    ``awaitsTakeover`` a takeover is one way. ``trial`` is a try of a pull request, and ``lifetime`` when the
    cluster ends; both, and ``sleep``, are None for none. ``behind`` is how many commits of the branch follow
    the one that Flux pulls, None where no newer one is for the cluster, or that is not known. ``comparedAt``
    is when it was compared with Azure last, None for never.
    """

    name: str
    phase: str
    step: str
    stepNumber: int
    stepCount: int
    jobStartedAt: str | None
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
    clusterClass: str
    labels: dict[str, str]
    location: str
    resourceGroup: str
    subscriptionId: str
    kubernetesVersion: str
    runningVersion: str
    nodes: int
    behind: int | None
    fluxRevision: str
    fluxReadAt: str | None
    conditions: list[ConditionView]
    trial: TrialView | None
    lifetime: LifetimeView | None
    sleep: SleepView | None
    retirements: list[RetirementView]
    certificates: list[EndingCertificate]
    createdAt: str | None
    updatedAt: str | None
    comparedAt: str | None


@final
class ClusterView(ClusterSummaryView, FleetProblemView):
    """``GET clusters/NAME``: a cluster with its spec and its newest events.

    ``rollout`` is why a cluster that is behind waits, None where it does not.
    """

    rollout: WaitingCluster | None
    policies: list[Policy]
    spec: dict[str, Any]
    events: list[EventView]


@final
class MissingCluster(FleetProblemView):
    """``GET clusters/NAME`` of a cluster that was deleted, or that the newest plan does not create."""

    name: str
    phase: str
    plan: PlanPart | None
    events: list[EventView]


@final
class Events(TypedDict):
    """``GET clusters/NAME/events``, the newest first; ``next`` is the ``before`` of the next page."""

    name: str
    events: list[EventView]
    next: str | None


class ActView(TypedDict):
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
class Why(FleetProblemView):
    """``GET clusters/NAME/why``: why a cluster is in its phase, in sentences.

    ``retirementsNote`` says that the table of retirements is old, "" otherwise. ``rollout`` is why the
    rollout that is under way does not change the cluster now, None where it does not wait. ``comparedAt`` is
    when the cluster was compared with Azure last, None for never. ``behind`` is that of the cluster, and so
    is ``lifetime``. ``readiness`` is what was read of it before an upgrade, None for nothing.
    """

    name: str
    phase: str
    doing: str
    behind: int | None
    comparedAt: str | None
    since: str | None
    attempts: int
    lastError: Failure | None
    plan: PlanPart | None
    rollout: WaitingCluster | None
    next: str
    nextAt: str | None
    suggestedAction: str
    retirements: list[RetirementView]
    retirementsNote: str
    certificates: list[EndingCertificate]
    lifetime: LifetimeView | None
    readiness: ClusterReadiness | None
    acts: list[ActView]


# A cluster as a tree: its conditions, its node pools, Flux and the workloads.


class UnhealthyObjectView(TypedDict):
    """An object that is not healthy: why, and since when; ``namespace`` is "" for a kind without one."""

    kind: str
    name: str
    namespace: str
    reason: str
    message: str
    since: str | None


class ObjectGroup(TypedDict):
    """The objects of one kind; what is neither ready nor suspended nor failed is at work.

    ``failed`` also counts objects that are missing. ``unhealthy`` names the first of those that failed.
    """

    kind: str
    total: int
    ready: int
    suspended: int
    failed: int
    unhealthy: list[UnhealthyObjectView]


class NodePoolView(TypedDict):
    """A node pool: ``name`` is "" for nodes of none, ``wantedVersion`` "" where git has no such pool.

    ``versions`` are those of its nodes, ``image`` the oldest image of them, "" for one that is not known.
    ``notReady`` names the first of its nodes that are not ready.
    """

    name: str
    wantedVersion: str
    versions: list[str]
    image: str
    nodes: int
    ready: int
    failed: int
    notReady: list[UnhealthyObjectView]


class SystemOnCluster(TypedDict):
    """A team's system on a cluster; ``unhealthy`` are those of the tree's objects in its namespaces.

    ``revision`` is what Flux applied of it last, "" for nothing yet, and None where no check has read that.
    """

    name: str
    owners: list[str]
    namespaces: list[str]
    unhealthy: list[UnhealthyObjectView]
    revision: str | None


@final
class TreeView(TypedDict):
    """``GET clusters/NAME/tree``.

    ``checkedAt`` is when a check read the node pools, ``flux`` and ``workloads``; None before that, and then
    they have no objects. ``conditions`` are those of the whole cluster.
    """

    name: str
    phase: str
    reason: str
    kubernetesVersion: str
    runningVersion: str
    fluxRevision: str
    fluxReadAt: str | None
    conditions: list[ConditionView]
    checkedAt: str | None
    nodePools: list[NodePoolView]
    flux: list[ObjectGroup]
    workloads: list[ObjectGroup]
    systems: list[SystemOnCluster]


# The outputs of a cluster.


@final
class Outputs(TypedDict):
    """``GET clusters/NAME/output``.

    ``outputs`` are the facts that the ConfigMap cluster-facts has too, by their names. They are not ``known``
    before a job has read the cluster in Azure, and once it no longer exists there.
    """

    name: str
    phase: str
    generation: int
    observedGeneration: int
    known: bool
    outputs: dict[str, str]
