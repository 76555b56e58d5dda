"""The seams: one small Protocol per outside system, and the bundle that the pipeline is given.

Every method makes at most a bounded number of calls, never sleeps and never retries; what goes wrong is
raised as a class of ``shared.jobs.errors``. ``shared.adapters`` implements the protocols on the real
client libraries, others do so in memory; ``tests/contract`` runs one suite on both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from shared.fleet.flux import GitCredentials
from shared.fleet.ids import ClusterId, ObjectRef
from shared.fleet.plan import Plan
from shared.jobs.buckets import Bucket
from shared.jobs.messages import Approval
from shared.jobs.retry import DEFAULTS, Policies
from shared.jobs.row import ClusterRow
from shared.jobs.settle import Event
from shared.purse import Purse

Json = Mapping[str, Any]
"""A JSON object, as the service writes it."""


@dataclass(frozen=True)
class Message:
    """A message to a session-enabled queue.

    ``id`` is at most 128 characters and is what duplicate detection compares; ``at`` (UTC) schedules it.
    """

    session: str
    id: str
    body: str
    at: datetime | None = None


class Queue(Protocol):
    """A Service Bus queue with sessions and duplicate detection."""

    def send(self, message: Message) -> None:
        """Send, or schedule when ``message.at`` is set; raise Throttled or Unavailable."""
        ...


@dataclass(frozen=True)
class TreeEntry:
    """A file in a git tree: path from the root, blob id, size in bytes, and whether it is a plain file."""

    path: str
    sha: str
    size: int
    plain: bool = True


@dataclass(frozen=True)
class CommitStatus:
    """What GitHub shows on a commit; ``state`` is pending, success, failure or error.

    GitHub's limits: description 140 characters; one status per context, the newest counts.
    """

    state: str
    description: str
    context: str
    target_url: str = ""


class Repository(Protocol):
    """The fleet repository at its host."""

    def head(self, branch: str) -> str:
        """Return the commit id that the branch points to; raise Dependency when there is no such branch."""
        ...

    def tree(self, commit: str) -> Sequence[TreeEntry]:
        """Return every file at a commit; raise Unavailable when the answer is truncated or partial."""
        ...

    def blob(self, sha: str) -> bytes:
        """Return a file's content by its blob id; raise Dependency when there is none."""
        ...

    def archive(self, commit: str, paths: Collection[str]) -> Mapping[str, bytes]:
        """Return the plain files at these paths of a commit, however many, in one answer.

        A file may be left out, or be another than the tree says (git's export attributes can do that):
        hold each against its blob id. Raise Unavailable when the answer is cut off, broken or too large.
        """
        ...

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Write the commit status."""
        ...


@dataclass(frozen=True)
class Pull:
    """A pull request: ``head`` is its newest commit, ``base`` the branch it would be merged into.

    ``merge`` is the commit that a merge would make, "" with conflicts, None while GitHub has not tried yet.
    ``fork``: the head belongs to another repository.
    """

    number: int
    head: str
    base: str
    merge: str | None = None
    fork: bool = False
    open: bool = True


@dataclass(frozen=True)
class Comment:
    """One of our own comments on a pull request."""

    id: int
    body: str


@dataclass(frozen=True)
class Annotation:
    """A message at a line of a file; ``level`` is notice, warning or failure."""

    path: str
    line: int
    message: str
    level: str = "failure"


@dataclass(frozen=True)
class Check:
    """A finished check run; ``conclusion`` is success, neutral or failure.

    GitHub's limit: 65,535 characters for ``summary`` (Markdown).
    """

    name: str
    conclusion: str
    title: str
    summary: str
    annotations: tuple[Annotation, ...] = ()
    details_url: str = ""


class PullRequests(Protocol):
    """The fleet repository's pull requests."""

    @property
    def can_check(self) -> bool:
        """Whether we may write check runs: as a GitHub App only."""

    def open_pulls(self, base: str) -> Sequence[Pull]:
        """Return the open ones into a branch, newest first, at most 100; ``merge`` is not known here."""
        ...

    def pull(self, number: int) -> Pull | None:
        """Return a pull request, or None."""
        ...

    def comment(self, number: int, marker: str) -> Comment | None:
        """Return our oldest comment that begins with the marker, or None; others' comments do not count."""
        ...

    def write_comment(self, number: int, body: str, *, over: Comment | None) -> None:
        """Write a new comment, or over one; at most 65,536 characters."""
        ...

    def check(self, commit: str, check: Check) -> None:
        """Write a check run; raise Unauthorized unless ``can_check``."""
        ...


class ResourceGroups(Protocol):
    """Azure resource groups, as ARM JSON."""

    def get(self, subscription: str, name: str) -> Json | None:
        """Return the group (``location``, ``tags``, ``properties.provisioningState``), or None."""
        ...

    def put(self, subscription: str, name: str, body: Json) -> str:
        """Create or update the group; ``body`` has ``location`` and ``tags``. Return the request's id."""
        ...

    def delete(self, subscription: str, name: str) -> str:
        """Start to delete the group; a group that is gone is success. Return the request's id."""
        ...

    def resources(self, subscription: str, name: str) -> Sequence[str]:
        """Return the resource ids inside the group; empty when the group is gone."""
        ...


class ManagedClusters(Protocol):
    """AKS managed clusters and their agent pools, as ARM JSON (``properties``, ``eTag``, ``tags`` ...).

    Each profile in ``properties.agentPoolProfiles`` has its own ``eTag``; a pool operation changes only
    that one, a cluster operation both. ``etag`` of a put: a value writes only over that version, None
    only where nothing is yet (``If-None-Match: *``); of a delete: only that version, None whatever is
    there. All raise Conflict when that does not hold. Writes start an operation and return; look at
    ``properties.provisioningState`` to see its end.

    Every write returns the service's id of the request, for support: "" when it gave none, which it may
    where there was nothing to do.
    """

    def get(self, cluster: ClusterId) -> Json | None:
        """Return the cluster with its ``properties.agentPoolProfiles``, or None."""
        ...

    def put(self, cluster: ClusterId, body: Json, *, etag: str | None) -> str:
        """Start to create or update the cluster."""
        ...

    def delete(self, cluster: ClusterId, *, etag: str | None) -> str:
        """Start to delete the cluster; one that is gone is success."""
        ...

    def put_pool(self, cluster: ClusterId, pool: str, body: Json, *, etag: str | None) -> str:
        """Start to create or update one agent pool; ``body`` has ``properties``."""
        ...

    def delete_pool(self, cluster: ClusterId, pool: str, *, etag: str | None) -> str:
        """Start to delete one agent pool; one that is gone is success."""
        ...

    def upgrade_node_image(self, cluster: ClusterId, pool: str) -> str:
        """Start to bring one agent pool to the newest node image; nothing to do when it has it already."""
        ...

    def upgrade_profile(self, cluster: ClusterId) -> Json:
        """Return what the cluster may be upgraded to; raise Dependency when it is gone.

        ``properties.controlPlaneProfile`` and each of ``properties.agentPoolProfiles`` (by ``name``) have
        ``kubernetesVersion`` ("1.33.4", as it is now) and ``upgrades`` ([{"kubernetesVersion": "1.33.5"}],
        with "isPreview": true for previews); no ``upgrades`` when there are none.
        """
        ...

    def versions(self, subscription: str, location: str) -> Json:
        """Return the Kubernetes versions that a region offers.

        Each of ``values`` has ``version`` ("1.33"), ``patchVersions`` ({"1.33.4": {"upgrades": ["1.33.5"]}})
        and, where it is so, "isDefault": true or "isPreview": true.
        """
        ...

    def maintenance(self, cluster: ClusterId) -> Mapping[str, Json]:
        """Return the cluster's maintenance configurations by name; raise Dependency when it is gone."""
        ...

    def put_maintenance(self, cluster: ClusterId, name: str, body: Json) -> str:
        """Create or replace a maintenance configuration; ``body`` has ``properties``. It holds at once."""
        ...

    def delete_maintenance(self, cluster: ClusterId, name: str) -> str:
        """Delete a maintenance configuration; one that is gone is success."""
        ...

    def kubeconfig(self, cluster: ClusterId) -> str:
        """Return a kubeconfig for the cluster (YAML). A secret: never store, log or show it."""
        ...


class KubernetesApi(Protocol):
    """The Kubernetes API of one cluster, as JSON objects."""

    def check(self) -> None:
        """Ask ``/readyz``; raise Unavailable when it does not answer, Unauthenticated when it refuses us."""
        ...

    def get(self, ref: ObjectRef) -> Json | None:
        """Return the object, or None (also when its kind is not known to the cluster)."""
        ...

    def apply(self, manifest: Json) -> Json:
        """Server-side apply as field manager "roadstead", taking over conflicting fields.

        Raise Dependency when the cluster does not know the kind (yet), or the namespace is missing.
        """
        ...

    def list(
        self, api_version: str, kind: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Sequence[Json]:
        """Return all objects of a kind, of all namespaces when ``namespace`` is "".

        ``labels`` ("app=web,!old") and ``fields`` ("spec.nodeName=aks-a-0") are selectors as kubectl takes
        them. Raise Dependency when the cluster does not know the kind, Conflict when the list expired
        while it was read.
        """
        ...

    def cordon(self, node: str, *, on: bool = True) -> None:
        """Let no new pod be scheduled on a node, or (``on`` False) let them again; a gone node is success."""
        ...

    def evict(self, namespace: str, pod: str) -> None:
        """Ask for a pod to end, with respect for disruption budgets; one that is gone is success.

        Raise Blocked while a PodDisruptionBudget does not allow it.
        """
        ...


class Kubernetes(Protocol):
    """Reaches the Kubernetes APIs of the fleet."""

    def connect(
        self, cluster: ClusterId, *, kubeconfig: Callable[[ClusterId], str] | None = None
    ) -> KubernetesApi:
        """Return the API of a cluster; its credentials live in memory only.

        ``kubeconfig`` fetches them in place of the port's own way, when there is no connection yet.
        """
        ...


Clock = Callable[[], datetime]
"""Returns the time now, in UTC."""


@dataclass(frozen=True)
class PlanRecord:
    """A plan as kept, what was last said about it, and the approval of its held deletes.

    ``open`` while its commit status may still change, ``settled`` when only a commit or a replay can
    change it; ``not_before`` is when GitHub may be asked again to show it.
    """

    plan: Plan
    at: datetime
    open: bool = True
    settled: bool = False
    reported: str = ""
    not_before: datetime | None = None
    approval: Approval | None = None


@dataclass(frozen=True)
class FleetRow:
    """What was planned last, and why the newest commit could not be ("" when it could).

    ``planning`` is the commit whose jobs are being handed over, "" when none is; ``awaiting`` are the
    clusters to be created once their deletion has finished. ``etag`` is the version that was read, ""
    when there is none yet.
    """

    commit: str = ""
    at: datetime | None = None
    problem: str = ""
    planning: str = ""
    awaiting: tuple[str, ...] = ()
    etag: str = field(default="", compare=False)


@dataclass(frozen=True)
class DeadLetter:
    """A message that a queue gave up and that could not be understood; ``body`` is its beginning as text.

    ``size`` is the whole body's in bytes, ``at`` when it came to its queue.
    """

    queue: str
    id: str
    at: datetime
    reason: str
    description: str
    body: str
    size: int


class State(Protocol):
    """What Roadstead remembers of one fleet. No secret is ever kept here."""

    def cluster(self, name: str) -> ClusterRow | None:
        """Return a cluster's row, or None."""
        ...

    def clusters(self) -> Sequence[ClusterRow]:
        """Return the rows of the whole fleet, by name."""
        ...

    def clusters_page(self, after: str, limit: int) -> Sequence[ClusterRow]:
        """Return at most ``limit`` rows, by name, of those after a name ("": from the first)."""
        ...

    def active_clusters(self) -> Sequence[ClusterRow]:
        """Return the rows whose job is active: as many as there is work, not as there are clusters."""
        ...

    def save(self, row: ClusterRow) -> ClusterRow:
        """Write the row over the version in ``row.etag`` ("": only if there is none); raise Stale.

        Returns the row with its new etag.
        """
        ...

    def forget(self, row: ClusterRow) -> None:
        """Remove the row if it is still this version; raise Stale. One that is gone is success."""
        ...

    def append(self, events: Sequence[Event]) -> None:
        """Keep events; an event that was kept before is kept once."""
        ...

    def events(self, cluster: str, limit: int, before: datetime | None = None) -> Sequence[Event]:
        """Return a cluster's newest events (before a millisecond), newest first; also after it is gone."""
        ...

    def prune_events(self, cluster: str, keep: int) -> int:
        """Remove a cluster's events but for the newest; return how many."""
        ...

    def prune_events_before(self, at: datetime, *, living: Collection[str]) -> int:
        """Remove older events of clusters that are not among the living; return how many."""
        ...

    def fleet(self) -> FleetRow:
        """Return what was planned last."""
        ...

    def save_fleet(self, row: FleetRow) -> FleetRow:
        """Write the fleet's row over the version that was read, and return it as saved; raise Stale."""
        ...

    def plan(self, commit: str) -> PlanRecord | None:
        """Return the plan of a commit, or None."""
        ...

    def save_plan(self, record: PlanRecord) -> None:
        """Write a plan over what is kept for its commit. Only the planner writes, and it is one."""
        ...

    def plans_since(self, at: datetime) -> Sequence[PlanRecord]:
        """Return the plans made since a time, newest first."""
        ...

    def open_plans(self) -> Sequence[PlanRecord]:
        """Return the plans whose commit status may still change, newest first."""
        ...

    def blobs(self, ids: Collection[str]) -> Mapping[str, bytes]:
        """Return those of these blobs that are kept, by their ids; one read each, so ask for few."""
        ...

    def keep_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Keep blobs of at most 60,000 bytes by their ids; twice is once."""
        ...

    def marks(self) -> Mapping[str, str]:
        """Return what ``save_marks`` wrote last: by cluster, the mark of what its document was made from."""
        ...

    def save_marks(self, marks: Mapping[str, str]) -> None:
        """Write the marks of the whole fleet over those that are kept; losing them costs only time."""
        ...

    def prune_blobs(self, wanted: Collection[str]) -> int:
        """Remove every kept blob but these, by their ids; return how many."""
        ...

    def prune_plans(self, keep: int) -> int:
        """Remove plans but for the newest and every open one; return how many."""
        ...

    def bucket(self, key: str) -> Bucket | None:
        """Return one of Azure's token buckets, None when nothing was taken from it yet."""
        ...

    def save_bucket(self, key: str, bucket: Bucket) -> None:
        """Write a bucket over the version in its etag ("": only if there is none); raise Stale."""
        ...

    def keep_dead_letter(self, letter: DeadLetter) -> None:
        """Keep a dead letter; twice is once."""
        ...

    def dead_letters(self, limit: int) -> Sequence[DeadLetter]:
        """Return the newest dead letters, newest first."""
        ...

    def count_dead_letters(self) -> int:
        """Return how many dead letters are kept."""
        ...

    def delivery_seen(self, delivery: str) -> bool:
        """Tell whether a webhook delivery was queued before."""
        ...

    def prune_dead_letters(self, before: datetime) -> int:
        """Remove older dead letters; return how many."""
        ...

    def prune_deliveries(self, before: datetime) -> int:
        """Forget deliveries that were remembered before a time; return how many."""
        ...

    def remember_delivery(self, delivery: str, at: datetime) -> None:
        """Remember a webhook delivery; twice is once."""
        ...


@dataclass(frozen=True)
class FleetConfig:
    """Which fleet this app serves.

    ``claim_seconds`` bounds one step, ``poll_seconds`` is the time between looks at a long operation,
    ``public_url`` begins the links on commit statuses, ``retries`` says how often errors are tried again,
    ``events_kept`` about how many events are kept of a cluster.
    """

    fleet: str
    repository: str
    branch: str = "main"
    public_url: str = ""
    claim_seconds: float = 90
    poll_seconds: float = 20
    events_kept: int = 500
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
    purse: Purse = field(default_factory=Purse)
