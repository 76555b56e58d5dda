"""The seams: one small Protocol per outside system, and the bundle that the pipeline is given.

Every method makes at most a bounded number of calls, never sleeps and never retries; an error is
raised as a class of ``shared.jobs.errors``. ``shared.adapters`` implements the protocols on the real
client libraries, others do so in memory; ``tests/contract`` runs one suite on both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from shared.fleet.kubernetes.flux_objects import GitCredentials
from shared.jobs.retry import DEFAULTS, Policies
from shared.ports.azure import Azure
from shared.ports.kubernetes import Kubernetes, KubernetesApi
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
from shared.ports.state import DeadLetter, FleetRecord, GroupDeleteIntent, PlanRecord, State
from shared.ports.token_cache import TokenCache

__all__ = [
    "Annotation",
    "Azure",
    "BranchHead",
    "Check",
    "Clock",
    "Comment",
    "CommitStatus",
    "DeadLetter",
    "FleetConfig",
    "FleetRecord",
    "GroupDeleteIntent",
    "Kubernetes",
    "KubernetesApi",
    "Message",
    "PlanRecord",
    "Ports",
    "Pull",
    "PullRequests",
    "Queue",
    "Repository",
    "State",
    "TreeEntry",
]

Clock = Callable[[], datetime]
"""Returns the time now, in UTC."""


@dataclass(frozen=True)
class FleetConfig:
    """Which fleet this app serves.

    ``lease_seconds`` bounds one step, ``poll_seconds`` is the time between reads of a long operation,
    ``public_url`` begins the links on commit statuses, ``retries`` says how often errors are retried,
    ``events_kept`` about how many events a cluster keeps, ``previous_repository`` is the name of the
    repository before a rename.
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
    ``token_cache`` holds what this process took from Azure's token buckets in advance.
    """

    config: FleetConfig
    state: State
    plans: Queue
    jobs: Queue
    repository: Repository
    pulls: PullRequests
    azure: Azure
    kubernetes: Kubernetes
    clock: Clock
    random: Callable[[], float]
    unique: Callable[[], str]
    token_cache: TokenCache = field(default_factory=TokenCache)
