"""The values of the Azure world: groups, clusters, operations, and the answer to a write."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from localcloud.azure.world.arm_errors import AksError, ArmError, busy, precondition_failed
from localcloud.azure.world.pools.pool_power import shown_pool
from shared.json_tree import Json
from shared.resource_ids import ClusterId


@dataclass(frozen=True)
class Timings:
    """How long Azure takes, in seconds."""

    create_cluster: float = 4.0
    update_cluster: float = 2.0
    delete_cluster: float = 3.0
    create_pool: float = 2.0
    update_pool: float = 1.0
    delete_pool: float = 1.0
    upgrade_pool: float = 1.0
    delete_group: float = 1.0
    start_cluster: float = 2.0
    stop_cluster: float = 2.0
    abort_cluster: float = 1.0
    abort_pool: float = 1.0
    put_extension: float = 3.0
    put_configuration: float = 1.0
    delete_configuration: float = 1.0
    put_namespace: float = 1.0
    delete_namespace: float = 1.0
    listed_after_delete: float = 30.0
    """How long the list of a group still has a deleted cluster, which a GET no longer shows: Azure Resource
    Manager answers it from a cache (Azure/azure-rest-api-specs#21221 and #38962). How long is assumed."""

    def of(self, kind: str) -> float:
        """Return the seconds of an operation by its kind, as "create-pool"."""
        return float(getattr(self, (kind if "-" in kind else f"{kind}-cluster").replace("-", "_")))


@dataclass(frozen=True)
class WriteCondition:
    """The If-Match and If-None-Match of a write; both empty: no condition."""

    if_match: str = ""
    if_none_match: str = ""

    def check(self, etag: str | None) -> None:
        """Raise 412 unless the condition holds for what exists (None: nothing).

        400 for both at once, and for an If-None-Match of an ETag (docs use-etags, "Common issues").
        """
        if self.if_none_match not in ("", "*"):
            raise AksError(400, "BadRequest", "The If-None-Match header can only be empty or *.")
        if self.if_match and self.if_none_match:
            raise AksError(400, "BadRequest", "If-Match and If-None-Match cannot be given together.")
        if self.if_none_match and etag is not None:
            raise precondition_failed(exists=True)
        if self.if_match and etag is None:
            raise precondition_failed(exists=False)
        if self.if_match not in ("", "*", etag):
            raise precondition_failed(exists=True)


@dataclass(frozen=True)
class OperationFault:
    """The fault of an operation: it fails with code and message, never ends, removes its resource at its end,
    or leaves a pool's nodes at their old kubelet version.

    ``more`` are further fields of the error. ``of_delete``: it is for the next delete. ``refusal`` refuses
    the request of the next write, so there is no operation.
    """

    error: tuple[str, str] | None = None
    sticks: bool = False
    vanishes: bool = False
    lags: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)
    of_delete: bool = False
    refusal: ArmError | None = None


@dataclass
class ArmOperation:
    """A long-running operation; ``kind`` is create, stop, abort, delete, create-pool ... or delete-group.

    ``fault`` is the fault that a test set for it. ``on_end`` is what its end does where that is not a change
    of a cluster, of a pool or of a group. ``event`` is what Event Grid delivers once it has succeeded.
    """

    id: str
    kind: str
    resource: str
    location: str
    started: datetime
    due: datetime
    cluster: ClusterId | None = None
    status: str = "InProgress"
    fault: OperationFault = OperationFault()
    on_end: Callable[[ArmOperation], None] | None = None
    event: dict[str, Any] | None = None

    @property
    def error(self) -> tuple[str, str] | None:
        """The code and message with which it ends as Failed."""
        return self.fault.error

    @property
    def pool(self) -> str:
        """The name of the agent pool that it works on; empty for a whole cluster or group."""
        return self.resource.rpartition("/agentPools/")[2] if "/agentPools/" in self.resource else ""

    def document(self) -> dict[str, Any]:
        """Return the operation status as ARM shows it."""
        shown: dict[str, Any] = {
            "id": f"/operations/{self.id}",
            "name": self.id,
            "status": self.status,
            "startTime": self.started.isoformat(),
        }
        if self.status != "InProgress":
            shown["endTime"] = self.due.isoformat()
        if self.error and self.status == "Failed":
            shown["error"] = {"code": self.error[0], "message": self.error[1], **self.fault.more}
        return shown


@dataclass
class ArmGroup:
    """A resource group: its ARM JSON, and its delete operation once it is being deleted."""

    document: dict[str, Any]
    deleting: ArmOperation | None = None


@dataclass
class ArmCluster:
    """A managed cluster: its ARM JSON without pools, its pools by name, and the operation that runs.

    ``kubeconfig`` is empty until its Kubernetes API runs; ``up`` names the pools that have nodes; ``lagging``
    has the kubelet version of pools whose nodes lag behind Azure's version; ``maintenance`` the maintenance
    configurations by name, ``extensions`` the extensions, ``configurations`` those of Flux, and
    ``namespaces`` the managed ones.
    """

    id: ClusterId
    document: dict[str, Any]
    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    operation: ArmOperation | None = None
    kubeconfig: str = ""
    up: set[str] = field(default_factory=set)
    lagging: dict[str, str] = field(default_factory=dict)
    maintenance: dict[str, dict[str, Any]] = field(default_factory=dict)
    extensions: dict[str, dict[str, Any]] = field(default_factory=dict)
    configurations: dict[str, dict[str, Any]] = field(default_factory=dict)
    namespaces: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, Any]:
        """The cluster's own properties."""
        properties: dict[str, Any] = self.document["properties"]
        return properties

    def view(self) -> dict[str, Any]:
        """Return the cluster as a GET shows it."""
        return {
            **self.document,
            "properties": {**self.properties, "agentPoolProfiles": [*map(shown_pool, self.pools.values())]},
        }

    def pool_view(self, name: str) -> dict[str, Any]:
        """Return a pool as a GET of the agent pool shows it."""
        profile = shown_pool(self.pools[name])
        return {
            "id": f"{self.id.resource}/agentPools/{name}",
            "name": name,
            "type": "Microsoft.ContainerService/managedClusters/agentPools",
            "properties": {key: value for key, value in profile.items() if key != "name"},
        }

    def require_idle(self) -> None:
        """Raise 409 while another operation runs."""
        if self.operation is not None:
            verb, _, what = self.operation.kind.partition("-")
            on = f"agent pool '{self.operation.pool}'" if what == "pool" else "managed cluster"
            raise busy(f"{verb} {on}")


@dataclass(frozen=True)
class WriteAnswer:
    """The answer to a write: HTTP status, the resource as it is now, and the operation it started, if any.

    ``kind`` is what was accepted, as in ``ArmOperation``; empty when there was nothing to do.
    """

    kind: str
    resource: str
    status: int
    document: Json | None = None
    operation: ArmOperation | None = None


class OperationSchedule:
    """The operations, by id and in the order in which they end; ids come from a counter."""

    def __init__(self) -> None:
        self._count = 0
        self._queue: list[tuple[datetime, int, ArmOperation]] = []
        self._all: dict[str, ArmOperation] = {}

    def unique(self) -> str:
        """Return a new id, the same in every run."""
        self._count += 1
        return str(uuid5(NAMESPACE_OID, str(self._count)))

    def start(self, kind: str, resource: str, location: str, *, now: datetime, due: datetime) -> ArmOperation:
        """Add and return an operation that ends at ``due``."""
        operation = ArmOperation(self.unique(), kind, resource, location, now, due)
        self._all[operation.id] = operation
        heapq.heappush(self._queue, (due, self._count, operation))
        return operation

    def due(self, now: datetime) -> Iterator[ArmOperation]:
        """Remove and yield the operations that have ended by now, in the order of their end."""
        while self._queue and self._queue[0][0] <= now:
            operation = heapq.heappop(self._queue)[2]
            if operation.status == "InProgress":
                yield operation

    def find(self, identifier: str) -> ArmOperation | None:
        """Return an operation, running or ended."""
        return self._all.get(identifier)
