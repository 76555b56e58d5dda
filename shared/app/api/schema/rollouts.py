"""Rollouts, as the API shows them."""

from __future__ import annotations

from typing import TypedDict, final


class RolloutDecision(TypedDict):
    """What a person decided of a rollout; ``subject`` is the stage or the cluster, "" for all of it."""

    act: str
    by: str
    at: str | None
    subject: str
    reason: str


class RolloutGroup(TypedDict):
    """A group of a stage: its bounds, and how many of its clusters stand where.

    Of ``failed`` and ``changing`` together there are never more than ``failureBudget``. ``passedAt`` is None
    until the group has passed.
    """

    maxConcurrency: int
    failureBudget: int
    minSuccess: int
    soakSeconds: int
    clusters: int
    ready: int
    changing: int
    failed: list[str]
    waiting: int
    setAside: list[str]
    passedAt: str | None


@final
class RolloutEstimate(TypedDict):
    """How many seconds are left, without approvals, windows and freezes.

    ``samples`` is how many changes of this ``kind`` that comes from, 0 for what is assumed; ``text`` is
    all of it as a sentence.
    """

    kind: str
    lowSeconds: int
    likelySeconds: int
    highSeconds: int
    samples: int
    text: str


class RolloutCheck(TypedDict):
    """A check of a gate, and what it said last: ``state`` is passed, failed, running, missing or unknown.

    ``kind`` is github, http, prometheus, azureMonitor or alerts. ``askedAt`` is None until it was read,
    ``nextAt`` where it is not read again. ``expected`` is what a success is. Of a check run, the numbers
    are 0 and the limits None.
    """

    name: str
    kind: str
    state: str
    answer: str
    expected: str
    askedAt: str | None
    nextAt: str | None
    consecutiveSuccesses: int
    consecutiveSuccessLimit: int | None
    failures: int
    failureLimit: int | None


class RolloutGate(TypedDict):
    """What a stage waits for once those before it have passed: who answers for that, and why.

    ``reachedAt`` is None until they have, ``opensAt`` where no time is known yet. ``role`` is who approves
    it, "" for nobody. ``entered``: it was approved or opened, and starts clusters.
    """

    owner: str
    reason: str
    reachedAt: str | None
    opensAt: str | None
    role: str
    entered: bool
    checks: list[RolloutCheck]


class RolloutPace(TypedDict):
    """How many clusters of a stage became ready, and how many failed and still are, in a part of the time."""

    ready: int
    failed: int


class RolloutStage(TypedDict):
    """A stage; ``approval`` is "needed", "given" or "" where it needs none.

    ``approvalsMissing`` is how many more people must approve it, ``gate`` None for one without a gate.
    ``pace`` has parts of equal length from the beginning until now, none of a rollout that has ended.
    """

    name: str
    approval: str
    approvalsMissing: int
    gate: RolloutGate | None
    groups: list[RolloutGroup]
    pace: list[RolloutPace]


class RolloutSummary(TypedDict):
    """A rollout in a list; ``state`` is what `rollout list` shows, ``progress`` a sentence.

    ``strategy`` is the name of its strategy, "" in a fleet with the same stages for all changes;
    ``selected``: the commit selects it.
    """

    commit: str
    strategy: str
    selected: bool
    state: str
    progress: str
    beganAt: str | None
    endedAt: str | None
    underWay: bool


@final
class WaitingCluster(TypedDict):
    """A cluster that does not start now: why, as a value and as a sentence, and what to do about it.

    ``since`` is when that began, by what is recorded, None where that is not known; ``owner`` who decided it
    or answers for it, and ``because`` why, "" for nobody.
    """

    cluster: str
    reason: str
    stage: str
    group: int | None
    waits: str
    suggestedAction: str
    since: str | None
    owner: str
    because: str


class RolloutFailure(TypedDict):
    """A cluster of a rollout that has failed: in which stage, why, and since when."""

    cluster: str
    stage: str
    reason: str
    since: str | None


class RolloutFailureClass(TypedDict):
    """A class of errors by which clusters have failed, and ``pace`` as of a stage, with the failed alone."""

    name: str
    clusterCount: int
    pace: list[RolloutPace]


@final
class RolloutView(RolloutSummary):
    """``GET rollouts/COMMIT``; ``waiting`` is a page of the clusters that do not start now.

    ``failures`` are the first 100 clusters that have failed, and ``failureClasses`` count all of them, the
    class with the most first. ``estimate`` is None where nothing is left. ``paceSeconds`` is how long each
    part of a ``pace`` is, 0 where there is none.
    """

    estimate: RolloutEstimate | None
    paceSeconds: int
    stages: list[RolloutStage]
    failures: list[RolloutFailure]
    failureClasses: list[RolloutFailureClass]
    decisions: list[RolloutDecision]
    waiting: list[WaitingCluster]
    next: str | None


@final
class RolloutsView(TypedDict):
    """``GET rollouts``, the newest first."""

    rollouts: list[RolloutSummary]
