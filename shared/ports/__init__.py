"""The seams: one small Protocol per outside system, and the bundle that the pipeline is given.

Every method makes at most a bounded number of calls, never sleeps and never retries; what goes wrong is
raised as a class of ``shared.jobs.errors``. ``shared.adapters`` implements the protocols on the real
client libraries, others do so in memory; ``tests/contract`` runs one suite on both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux_objects import GitCredentials
from shared.jobs.retry import DEFAULTS, Policies
from shared.ports.clouds import GroupWrite, Kubernetes, KubernetesApi, ManagedClusters, ResourceGroups
from shared.ports.queue import Message, Queue
from shared.ports.repository import (
    Annotation,
    BranchHead,
    Check,
    Comment,
    CommitStatus,
    Pull,
    PullRequests,
    Repository,
    TreeEntry,
)
from shared.ports.state import DeadLetter, FleetRecord, PlanRecord, State
from shared.ports.token_cache import TokenCache

__all__ = [
    "Annotation",
    "BranchHead",
    "Check",
    "Clock",
    "Comment",
    "CommitStatus",
    "DeadLetter",
    "FleetConfig",
    "FleetRecord",
    "GroupWrite",
    "Json",
    "Kubernetes",
    "KubernetesApi",
    "ManagedClusters",
    "Message",
    "PlanRecord",
    "Ports",
    "Pull",
    "PullRequests",
    "Queue",
    "Repository",
    "ResourceGroups",
    "State",
    "TreeEntry",
]

Clock = Callable[[], datetime]
"""Returns the time now, in UTC."""


@dataclass(frozen=True)
class FleetConfig:
    """Which fleet this app serves.

    ``lease_seconds`` bounds one step, ``poll_seconds`` is the time between looks at a long operation,
    ``public_url`` begins the links on commit statuses, ``retries`` says how often errors are tried again,
    ``events_kept`` about how many events are kept of a cluster, ``previous_repository`` what the repository
    was called before a rename.
    """

    fleet: str
    repository: str
    branch: str = "main"
    public_url: str = ""
    lease_seconds: float = 90
    poll_seconds: float = 20
    events_kept: int = 500
    previous_repository: str = ""
    git_credentials: GitCredentials | None = None
    retries: Policies = field(default_factory=lambda: DEFAULTS)


@dataclass(frozen=True)
class Ports:
    """Everything the pipeline may touch.

    ``random`` returns a float in [0, 1), ``unique`` a fresh id of 8 hexadecimal digits;
    ``purse`` holds what this process took of Azure's token buckets in advance.
    """

    config: FleetConfig
    state: State
    plans: Queue
    jobs: Queue
    repository: Repository
    pulls: PullRequests
    groups: ResourceGroups
    aks: ManagedClusters
    kubernetes: Kubernetes
    clock: Clock
    random: Callable[[], float]
    unique: Callable[[], str]
    token_cache: TokenCache = field(default_factory=TokenCache)
