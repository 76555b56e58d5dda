"""The state of the Azure world, the lock around it, and the operations that begin and end.

There are no threads: every access first completes what is due by the clock. Ids and ETags come from a
counter, so two runs are the same. The requests are in ``azure_world`` and ``upkeep``, the faults in
``interventions``; each holds the engine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.activity_log import ActivityEvents
from localcloud.azure.world.arm_errors import (
    group_being_deleted,
    no_group,
    no_resource,
    no_subscription,
    not_allowed,
)
from localcloud.azure.world.arm_keys import group_key, key_of
from localcloud.azure.world.arm_resources import (
    ArmCluster,
    ArmGroup,
    ArmOperation,
    OperationFault,
    OperationSchedule,
    Timings,
    WriteAnswer,
)
from localcloud.azure.world.catalog import SUBSCRIPTION, cluster_version
from localcloud.azure.world.clusters.credentials import has_entra
from localcloud.azure.world.clusters.managed_clusters import (
    check_cluster,
    created_cluster,
    refuse_fields_of_pools_only,
    resource_uid,
    updated_cluster,
)
from localcloud.azure.world.completions import complete_pool, failure, move_version, set_state
from localcloud.azure.world.event_grid import EventGrid
from localcloud.azure.world.pools.aks_nodes import nodes_of
from localcloud.azure.world.pools.pool_changes import pools_after_update, pools_of_new_cluster
from localcloud.azure.world.pools.pool_power import is_stopped_alone
from localcloud.azure.world.quotas import Quotas
from localcloud.common.control_plane import ControlPlane
from localcloud.common.json_copy import copied
from shared.json_tree import Json
from shared.resource_ids import ClusterId

PAGE_SIZE = 50
"""Clusters on a page of a list. Microsoft documents the link to the next page, and no size: it is assumed."""
NEVER = datetime.max.replace(tzinfo=UTC)


class AzureEngine:
    """The resources of any number of subscriptions, as one principal sees them; safe between threads.

    ``throttle`` applies the documented request limits. ``accepted`` lists every write that was accepted,
    as {"accepted": "create", "resource": id}; ``subscriptions`` the subscriptions that exist. ``page_size``
    is how many clusters a page of a list has, ``blocks`` how deletes of a cluster end that something keeps.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        *,
        plane: ControlPlane,
        timings: Timings | None = None,
        throttle: bool = True,
        subscriptions: Sequence[str] = (SUBSCRIPTION,),
    ) -> None:
        self.subscriptions = tuple(subscription.lower() for subscription in subscriptions)
        self._clock, self.plane, self.timings = clock, plane, timings or Timings()
        self.limits = limits.Limits(enabled=throttle)
        self.lock = threading.RLock()
        self.groups: dict[tuple[str, str], ArmGroup] = {}
        self.clusters: dict[ClusterId, ArmCluster] = {}
        self._deleted: dict[ClusterId, tuple[datetime, ArmCluster]] = {}
        self.schedule = OperationSchedule()
        self.next_faults: dict[str, OperationFault] = {}
        self.blocks: dict[str, OperationFault] = {}
        self.denials: dict[str, OperationFault] = {}
        self.quotas = Quotas()
        self.accepted: list[dict[str, str]] = []
        self.activity, self.grid = ActivityEvents(), EventGrid()
        self.page_size = PAGE_SIZE

    def complete_due(self) -> None:
        """Complete every operation that is due by now."""
        with self.lock:
            for operation in self.schedule.due(self._clock()):
                self._complete(operation)

    def request_id(self) -> str:
        """Return an id for a request."""
        with self.lock:
            return self.schedule.unique()

    def seconds_left(self, operation: str) -> float:
        """Return how long an operation still runs; 0 for one that has ended or is unknown."""
        found = self.schedule.find(operation)
        if found is None or found.status != "InProgress":
            return 0.0
        return max(0.0, (found.due - self._clock()).total_seconds())

    # Requests

    @property
    def now(self) -> datetime:
        """The time of its clock."""
        return self._clock()

    @contextmanager
    def request(
        self,
        subscription: str,
        front: limits.RequestLimit,
        behind: limits.RequestLimit | None = None,
        key: Hashable = None,
    ) -> Iterator[datetime]:
        """Take the lock, complete what is due, and count the request at both limits; yield the time."""
        with self.lock:
            now = self._clock()
            self.complete_due()
            if subscription.lower() not in self.subscriptions:
                raise no_subscription(subscription)
            self.limits.take(front, subscription.lower(), now)
            if behind is not None:
                self.limits.take(behind, key or subscription.lower(), now)
            yield now

    def accept(self, accepted: WriteAnswer) -> WriteAnswer:
        """Record an accepted write, and return it."""
        if accepted.kind:
            self.accepted.append({"accepted": accepted.kind, "resource": accepted.resource})
            self.announce(accepted.kind, accepted.resource, accepted.operation)
        return accepted

    def store(
        self,
        kind: str,
        held: dict[str, dict[str, Any]],
        key: str,
        document: dict[str, Any],
        operation: ArmOperation | None = None,
    ) -> WriteAnswer:
        """Hold a resource among its like, and answer its PUT: at once, or with the operation that began."""
        status = 200 if key in held else 201
        held[key] = document
        if operation is not None:
            set_state(document["properties"], "Creating" if status == 201 else "Updating")
        return self.accept(WriteAnswer(kind, document["id"], status, copied(document), operation))

    def drop(self, kind: str, held: dict[str, dict[str, Any]], key: str, resource: str) -> WriteAnswer:
        """Delete a resource from among its like, at once; one that is not there is answered 204."""
        if held.pop(key, None) is None:
            return WriteAnswer("", resource, 204)
        return self.accept(WriteAnswer(kind, resource, 200))

    def announce(self, kind: str, resource: str, operation: ArmOperation | None = None) -> None:
        """Record a write in the activity log; Event Grid delivers it once its operation has succeeded."""
        self.activity.record(kind, resource, self._clock())
        self.send_event(kind, resource, operation)

    def send_event(self, kind: str, resource: str, operation: ArmOperation | None = None) -> None:
        """Let Event Grid deliver a write, once its operation has succeeded."""
        event = self.grid.event(kind, resource, *self.activity.call)
        if event is None:
            return
        if operation is None:
            self.grid.publish(event, self._clock())
        else:
            operation.event = event

    def app_group(self, subscription: str, name: str) -> None:
        """Let the resource group of an app exist, as its deployment creates it."""
        if subscription not in self.subscriptions:
            self.subscriptions = (*self.subscriptions, subscription)
        document = {"id": f"/subscriptions/{subscription}/resourceGroups/{name}", "location": "westeurope"}
        self.groups.setdefault(
            group_key(subscription, name), ArmGroup({**document, "name": name, "tags": {}})
        )

    def group(self, subscription: str, name: str) -> ArmGroup:
        """Return a resource group; raise ArmError (404) when there is none."""
        group = self.groups.get(group_key(subscription, name))
        if group is None:
            raise no_group(name)
        return group

    def writable_group(self, cluster: ClusterId) -> None:
        """Raise ArmError (409) while the group of a cluster is being deleted."""
        if self.group(cluster.subscription, cluster.resource_group).deleting is not None:
            raise group_being_deleted(cluster.resource_group)

    def inside(self, subscription: str, name: str) -> list[ArmCluster]:
        """Return the clusters in a resource group."""
        wanted = group_key(subscription, name)
        return [c for key, c in self.clusters.items() if (key.subscription, key.resource_group) == wanted]

    def listed(self, subscription: str, name: str) -> list[ArmCluster]:
        """Return the clusters that the list of a group has: those in it, and those deleted a moment ago."""
        wanted, now = group_key(subscription, name), self._clock()
        deleted = [
            cluster
            for key, (until, cluster) in self._deleted.items()
            if (key.subscription, key.resource_group) == wanted and key not in self.clusters and now < until
        ]
        return [*self.inside(subscription, name), *deleted]

    def cluster(self, cluster: ClusterId) -> ArmCluster:
        """Return a cluster; raise ArmError (404) when there is none."""
        found = self.clusters.get(key_of(cluster))
        if found is None:
            self.group(cluster.subscription, cluster.resource_group)
            raise no_resource(cluster.resource)
        return found

    def require_ready(self, cluster: ArmCluster) -> None:
        """Raise ArmError while another operation runs, or while the cluster is stopped."""
        cluster.require_idle()
        if cluster.properties["powerState"]["code"] == "Stopped":
            raise not_allowed("The operation is not allowed while the managed cluster is stopped.")

    # Operations begin

    def create(self, cluster: ClusterId, body: Json, now: datetime) -> WriteAnswer:
        """Start to create a cluster."""
        refuse_fields_of_pools_only(body)
        document = created_cluster(cluster, body)
        version = cluster_version(cluster.name, document["properties"]["kubernetesVersion"])
        document["properties"]["currentKubernetesVersion"] = version
        pools = pools_of_new_cluster(document, body)
        check_cluster(body, document, [*pools.values()], None)
        self.quotas.check(self.clusters, key_of(cluster), document["location"], pools)
        created = self.clusters[key_of(cluster)] = ArmCluster(cluster, document, pools)
        operation = self.begin(created, "create", now)
        document["properties"]["resourceUID"] = resource_uid(operation.id)
        self.set_all_states(created, "Creating")
        return self.accept(WriteAnswer("create", cluster.resource, 201, copied(created.view()), operation))

    def update(self, existing: ArmCluster, body: Json, now: datetime) -> WriteAnswer:
        """Start to update a cluster."""
        document = updated_cluster(existing.document, body)
        wanted, current = (
            document["properties"][k] for k in ("kubernetesVersion", "currentKubernetesVersion")
        )
        version = cluster_version(existing.id.name, wanted, current)
        pools = pools_after_update(existing, document, body, version)
        check_cluster(body, document, [*pools.values()], existing.document)
        self.quotas.check(self.clusters, key_of(existing.id), document["location"], pools)
        existing.document, existing.pools = document, pools
        operation = self.begin(existing, "update", now)
        self.set_all_states(existing, "Updating" if version == current else "Upgrading")
        view = copied(existing.view())
        return self.accept(WriteAnswer("update", existing.id.resource, 200, view, operation))

    def start_delete(self, cluster: ArmCluster, now: datetime) -> ArmOperation:
        """Start to delete; a running delete continues, any other running operation is cancelled."""
        block = self.blocks.get(cluster.id.name.lower(), OperationFault())
        if block.refusal is not None:
            raise block.refusal
        if cluster.operation is not None:
            if cluster.operation.kind == "delete":
                return cluster.operation
            cluster.operation.status = "Canceled"
        operation = self.begin(cluster, "delete", now)
        self.set_all_states(cluster, "Deleting")
        return operation

    def begin(self, cluster: ArmCluster, kind: str, now: datetime, pool: str = "") -> ArmOperation:
        """Start an operation on a cluster, with the fault that was set for the next one."""
        resource = cluster.id.resource + (f"/agentPools/{pool}" if pool else "")
        name, fault = cluster.id.name.lower(), OperationFault()
        if kind == "delete":
            fault = self.blocks.get(name, fault)
        elif kind != "abort":
            fault = self.denials.get(name, fault)
        coming = self.next_faults.get(name, fault)
        fits = kind == "delete" if coming.of_delete else not kind.startswith(("delete", "abort"))
        if fits and coming.refusal is None:
            fault = self.next_faults.pop(name, fault)
        due = NEVER if fault.sticks else now + timedelta(seconds=self.timings.of(kind))
        operation = self.schedule.start(kind, resource, cluster.document["location"], now=now, due=due)
        operation.cluster, operation.fault = key_of(cluster.id), fault
        cluster.operation = operation
        return operation

    def refuse(self, name: str) -> None:
        """Raise the refusal that was set for the next write to the cluster of a name, or for all."""
        coming = self.next_faults.get(name.lower())
        denial = self.denials.get(name.lower(), OperationFault())
        if denial.refusal is not None:
            raise denial.refusal
        if coming is not None and coming.refusal is not None:
            del self.next_faults[name.lower()]
            raise coming.refusal

    def set_all_states(self, cluster: ArmCluster, state: str) -> None:
        """Set the provisioning state of a cluster and of all its pools, each with a new ETag."""
        set_state(cluster.properties, state)
        cluster.document["eTag"] = self.schedule.unique()
        for pool in cluster.pools.values():
            set_state(pool, state, self.schedule.unique())

    # Operations end

    def _complete(self, operation: ArmOperation) -> None:
        operation.status = "Failed" if operation.error else "Succeeded"
        if operation.event is not None and not operation.error:
            self.grid.publish(operation.event, operation.due)
        if operation.on_end is not None:
            operation.on_end(operation)
            return
        if operation.cluster is None:
            self.groups = {k: g for k, g in self.groups.items() if g.deleting is not operation}
            return
        cluster = self.clusters[operation.cluster]
        cluster.operation = None
        removed = (operation.kind == "delete" and not operation.error) or operation.fault.vanishes
        if removed and not operation.pool:
            self._note_deleted(operation.due, self.clusters.pop(operation.cluster))
            self.plane.stop(cluster.id)
        elif operation.pool:
            if complete_pool(cluster, operation, self.schedule.unique(), self._clock()):
                self.report_nodes(cluster)
        else:
            self._complete_cluster(cluster, operation)

    def set_power(self, cluster: ArmCluster, code: str) -> None:
        """Run or stop a cluster: its nodes and its API come and go.

        A pool that was stopped by itself is assumed to stay stopped.
        """
        pools = (pool for pool in cluster.pools.values() if not is_stopped_alone(pool))
        for holder in (cluster.properties, *pools):
            holder["powerState"] = {"code": code}
        self.report_nodes(cluster)
        self.plane.set_power(cluster.id, on=code == "Running")

    def _complete_cluster(self, cluster: ArmCluster, operation: ArmOperation) -> None:
        self.set_all_states(cluster, "Canceled" if operation.kind == "abort" else operation.status)
        if operation.error:
            cluster.properties["status"] = failure(operation)
            return
        if operation.kind in ("stop", "start"):
            self.set_power(cluster, "Stopped" if operation.kind == "stop" else "Running")
        if operation.kind in ("stop", "start", "abort"):
            return
        properties = cluster.properties
        version = cluster_version(
            cluster.id.name, properties["kubernetesVersion"], properties["currentKubernetesVersion"]
        )
        properties["currentKubernetesVersion"] = version
        for name in cluster.pools:
            move_version(cluster, name, operation.fault, self._clock())
        cluster.up = set(cluster.pools)
        if cluster.kubeconfig:
            self.report_nodes(cluster)
        else:
            cluster.kubeconfig = self.plane.start(cluster.id, nodes_of(cluster))
        self.plane.set_entra(cluster.id, on=has_entra(properties))

    def _note_deleted(self, now: datetime, cluster: ArmCluster) -> None:
        until = now + timedelta(seconds=self.timings.listed_after_delete)
        self._deleted = {key: noted for key, noted in self._deleted.items() if noted[0] > now}
        self._deleted[key_of(cluster.id)] = (until, cluster)

    def report_nodes(self, cluster: ArmCluster) -> None:
        """Report the nodes of a cluster to its control plane."""
        if cluster.kubeconfig:
            self.plane.set_nodes(cluster.id, nodes_of(cluster))
