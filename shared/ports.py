"""The seams: one small Protocol per outside system, and the bundle that the pipeline is given.

Every method makes at most a bounded number of calls, never sleeps and never retries; what goes wrong is
raised as a class of ``shared.jobs.errors``. ``shared.adapters`` implements the protocols on the real
client libraries, ``localcloud.world`` in memory; ``tests/contract`` runs one suite on both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from shared.fleet.ids import ClusterId, ObjectRef

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

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Write the commit status."""
        ...


class ResourceGroups(Protocol):
    """Azure resource groups, as ARM JSON."""

    def get(self, subscription: str, name: str) -> Json | None:
        """Return the group (``location``, ``tags``, ``properties.provisioningState``), or None."""
        ...

    def put(self, subscription: str, name: str, body: Json) -> None:
        """Create or update the group; ``body`` has ``location`` and ``tags``."""
        ...

    def delete(self, subscription: str, name: str) -> None:
        """Start to delete the group; a group that is gone is success."""
        ...

    def resources(self, subscription: str, name: str) -> Sequence[str]:
        """Return the resource ids inside the group; empty when the group is gone."""
        ...


class ManagedClusters(Protocol):
    """AKS managed clusters and their agent pools, as ARM JSON (``properties``, ``eTag``, ``tags`` ...).

    Each profile in ``properties.agentPoolProfiles`` has its own ``eTag``; a pool operation changes only
    that one, a cluster operation both. ``etag`` of a write: a value writes only over that version, None
    only where nothing is yet (``If-None-Match: *``); both raise Conflict when that does not hold. Writes
    start an operation and return; look at ``properties.provisioningState`` to see its end.
    """

    def get(self, cluster: ClusterId) -> Json | None:
        """Return the cluster with its ``properties.agentPoolProfiles``, or None."""
        ...

    def put(self, cluster: ClusterId, body: Json, *, etag: str | None) -> None:
        """Start to create or update the cluster."""
        ...

    def delete(self, cluster: ClusterId) -> None:
        """Start to delete the cluster; one that is gone is success."""
        ...

    def put_pool(self, cluster: ClusterId, pool: str, body: Json, *, etag: str | None) -> None:
        """Start to create or update one agent pool; ``body`` has ``properties``."""
        ...

    def delete_pool(self, cluster: ClusterId, pool: str) -> None:
        """Start to delete one agent pool; one that is gone is success."""
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


class Kubernetes(Protocol):
    """Reaches the Kubernetes APIs of the fleet."""

    def connect(self, cluster: ClusterId) -> KubernetesApi:
        """Return the API of a cluster; its credentials live in memory only."""
        ...


Clock = Callable[[], datetime]
"""Returns the time now, in UTC."""
