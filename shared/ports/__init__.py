"""The ports: one small protocol per outside system, and ``Ports``, which the app gets.

Every method makes at most a bounded number of calls, never sleeps and never retries; an error is raised as a
class of ``shared.cluster.failures.errors``. ``shared.adapters`` implements the protocols on the real client
libraries, and the local cloud does so in memory; ``tests/contract`` runs one suite on both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from shared.cluster.failures.retry import DEFAULTS, Policies
from shared.cluster.pace import SMALL_CHANGE
from shared.frozen import dataclass, field
from shared.kubernetes.flux_objects import GitCredentials
from shared.language.resolve.work import PLAN_WORK
from shared.platform.pins import FleetSource
from shared.ports.azure import Azure
from shared.ports.git_host import BranchHead, Capability, CommitStatus, GitHost, TreeEntry
from shared.ports.kubernetes import Kubernetes, KubernetesApi, ObjectListPage
from shared.ports.process import Process, Together, in_threads
from shared.ports.pull_requests import (
    Annotation,
    Check,
    Comment,
    MergedPull,
    NewCommit,
    Pull,
    PullAuthors,
    PullText,
    Review,
    ReviewState,
)
from shared.ports.services import (
    Endpoints,
    Message,
    Monitor,
    Probe,
    Queue,
    Registries,
    Routes,
    Services,
    Telemetry,
    Vaults,
    VaultSecret,
    Vulnerabilities,
)
from shared.ports.state import (
    BranchRead,
    DeadLetter,
    FleetRecord,
    Handover,
    PlanRecord,
    Source,
    State,
)
from shared.ports.state.clusters import GroupMember
from shared.resource_ids import GroupId
from shared.schedules import CLOCK_SKEW

__all__ = [
    "Annotation",
    "Azure",
    "BranchHead",
    "BranchRead",
    "Capability",
    "Check",
    "Clock",
    "Comment",
    "CommitStatus",
    "DeadLetter",
    "Endpoints",
    "FleetConfig",
    "FleetRecord",
    "GitHost",
    "GroupMember",
    "Handover",
    "Kubernetes",
    "KubernetesApi",
    "MergedPull",
    "Message",
    "Monitor",
    "NewCommit",
    "ObjectListPage",
    "PlanRecord",
    "Ports",
    "Probe",
    "Pull",
    "PullAuthors",
    "PullText",
    "Queue",
    "Registries",
    "Review",
    "ReviewState",
    "Routes",
    "Services",
    "Source",
    "State",
    "Telemetry",
    "Together",
    "TreeEntry",
    "VaultSecret",
    "Vaults",
    "Vulnerabilities",
]

Clock = Callable[[], datetime]
"""Returns the time now, in UTC."""


@dataclass(frozen=True)
class Timing:
    """How long the pipeline waits for what."""

    lease_seconds: float = 90
    """How long a lease lasts: the time limit of a step."""
    poll_seconds: float = 20
    """The time between two reads of a long operation."""
    lag_seconds: float = 20
    """How late Azure may show what it did: a resource that it does not show is read again after that."""
    clock_skew: timedelta = CLOCK_SKEW
    """How far the clock of an instance may be from that of Table Storage."""
    unhealthy_seconds: float = 1800
    """How long Flux, or a node, may be unhealthy before the cluster is no longer Ready."""
    retries: Policies = field(default_factory=lambda: DEFAULTS)
    """How often, and at what intervals, each class of error is retried."""


@dataclass(frozen=True)
class PlanLimits:
    """How much one plan may take."""

    small_change: int = SMALL_CHANGE
    """How many clusters may be in small changes at a time."""
    plan_work: int = PLAN_WORK
    """How many units of work a plan may take; a pull request half of it, and one from a fork a twentieth."""
    pull_seconds: float = 120
    """How long a pull request may be planned."""
    fork_seconds: float = 20
    """How long a pull request from a fork may be validated."""
    build_seconds: float = 120
    """How long the planner builds what Flux applies: what is then unbuilt counts as a removal."""
    handover_clusters: int = 40
    """How many clusters the planner hands over between two checks that no other planner has started."""
    handover_seconds: float = 60
    """After how many seconds the hand-over of a plan continues by another message."""


@dataclass(frozen=True)
class History:
    """How much of what happened is stored."""

    events: int = 500
    """About how many events of a cluster."""
    act_days: int = 365
    """For how many days acts."""


@dataclass(frozen=True)
class ApprovalRules:
    """Who approves deletes."""

    by_others: bool = False
    """Whether only somebody who did not remove the cluster approves its delete."""
    teams: tuple[str, ...] = ()
    """The teams on the git host, as "owner/slug", whose members approve by a review."""


@dataclass(frozen=True)
class FleetConfig:
    """The settings of the pipeline: which fleet this app serves, and within which limits."""

    fleet: str
    repository: str
    """The fleet repository, as "owner/name"."""
    branch: str = "main"
    installation: str = ""
    """The id of this app on the tags of its clusters, "" where that of its tables is."""
    public_url: str = ""
    """The start of links on commit statuses; "" for no links."""
    timing: Timing = Timing()
    limits: PlanLimits = PlanLimits()
    history: History = History()
    warm_instances: int | None = None
    """How many instances of all apps are always ready; None where nobody says."""
    previous_repository: str = ""
    """The name of the repository before a rename, "" for none."""
    git_server: str = "github.com"
    """The server of the repository, as Flux reads it: a name, with its port unless that is 443."""
    git_credentials: GitCredentials | None = None
    """What Flux needs to read the repository; None for a public one."""
    vaults: frozenset[str] | None = None
    """The vaults that manifests may name, in lower case; None where nobody says, as without an app."""
    reaches_private: bool | None = None
    """Whether the app is in a network that reaches private API servers; None where nobody says."""
    principals: frozenset[str] = frozenset()
    """The ids of the app's identities, in lower case: what these do is no change by hand."""
    identities: Mapping[str, str] = field(default_factory=dict)
    """The object ids of the identities of the apps, by app; "" where nobody says."""
    app_group: GroupId | None = None
    """The resource group of the app, whose tag has the epoch of the tables; None where nobody names it."""
    approvals: ApprovalRules = ApprovalRules()
    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings by name as acts may show them; of a secret, a few bits that change with it."""
    timers: Mapping[str, str] = field(default_factory=dict)
    """The schedules of the timers, as NCRONTAB in UTC, by the names of their functions."""

    @property
    def worker(self) -> str:
        """The object id of the worker's identity, whose rights a plan is compared with."""
        return self.identities.get("worker", "")

    @property
    def mark(self) -> str:
        """What marks the requests of this app to Azure: what they cause is no change by hand either."""
        return f"{self.fleet}|{self.repository}|{self.branch}|{self.installation}"

    @property
    def source(self) -> FleetSource:
        """The tracked branch of the fleet repository, as Flux names it."""
        names = filter(None, (self.repository, self.previous_repository))
        return FleetSource(self.git_server, frozenset(name.lower() for name in names), self.branch)

    @property
    def clocks_differ(self) -> timedelta:
        """By how much the clocks of two instances may differ."""
        return 2 * self.timing.clock_skew


@dataclass(frozen=True)
class Ports:
    """The settings of the pipeline, and everything outside that it may use.

    ``jobs`` carries the messages of the jobs that create and change clusters, ``changes`` those of the jobs
    of small changes, ``deletes`` those of the jobs that delete clusters. ``random`` returns a float in [0,
    1), ``unique`` a new id of 8 hexadecimal digits. ``table_time`` reads the time of Table Storage, in whole
    seconds. ``elapsed`` returns seconds since some moment: it measures ages, as somebody may set the clock
    meanwhile. ``sleep`` waits so many seconds: less than one between two tries of a write, and a few in a
    cluster that a secret opens; for the rest a step sends a message. ``together`` does the same work for
    several values at a time.
    """

    config: FleetConfig
    state: State
    plans: Queue
    jobs: Queue
    changes: Queue
    deletes: Queue
    previews: Queue
    git_host: GitHost
    azure: Azure
    kubernetes: Kubernetes
    vaults: Vaults
    services: Services
    clock: Clock
    table_time: Clock
    random: Callable[[], float]
    unique: Callable[[], str]
    process: Process = field(default_factory=Process)
    elapsed: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    together: Together = in_threads

    @property
    def reviewers(self) -> tuple[str, ...]:
        """The teams whose reviews approve deletes: none on a git host without reviews."""
        return self.config.approvals.teams if Capability.REVIEWS in self.git_host.capabilities else ()
