"""What makes the Azure world go: its state, the lock around it, operations that begin and end.

There are no threads: every access first settles what is due by the clock. Ids and ETags come from a
counter, so two runs are the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.aks_nodes import nodes_of
from localcloud.azure.world.arm_errors import (
    ArmError,
    group_being_deleted,
    no_group,
    no_resource,
    not_allowed,
)
from localcloud.azure.world.arm_resources import Accepted, Cluster, Doom, Group, Operation, Schedule, Timings
from localcloud.azure.world.catalog import NODE_IMAGES, cluster_version, pool_version
from localcloud.azure.world.managed_clusters import created_cluster, updated_cluster
from localcloud.azure.world.pool_changes import Pools, cores, pools_after_update, pools_of_new_cluster
from localcloud.common.control_plane import ControlPlane
from shared.fleet.resource_ids import ClusterId

Json = Mapping[str, Any]

NEVER = datetime.max.replace(tzinfo=UTC)


class AzureEngine:
    """The resources of any number of subscriptions, as one principal sees them; safe between threads.

    ``throttle`` applies the documented request limits. ``accepted`` lists every write that was accepted,
    as {"accepted": "create", "resource": id}.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        *,
        plane: ControlPlane,
        timings: Timings | None = None,
        throttle: bool = True,
    ) -> None:
        self._clock, self._plane, self.timings = clock, plane, timings or Timings()
        self.limits = limits.Limits(enabled=throttle)
        self._lock = threading.RLock()
        self._groups: dict[tuple[str, str], Group] = {}
        self._clusters: dict[ClusterId, Cluster] = {}
        self._schedule = Schedule()
        self._dooms: dict[str, Doom] = {}
        self._quotas: dict[tuple[str, str], int] = {}
        self.accepted: list[dict[str, str]] = []

    def settle(self) -> None:
        """Let everything happen that is due by now."""
        with self._lock:
            for operation in self._schedule.due(self._clock()):
                self._complete(operation)

    def request_id(self) -> str:
        """Return an id for a request that somebody may ask about."""
        with self._lock:
            return self._schedule.unique()

    # Requests

    @contextmanager
    def _request(
        self, subscription: str, front: limits.Limit, behind: limits.Limit | None = None, key: Hashable = None
    ) -> Iterator[datetime]:
        """Take the lock, settle, count the request at ARM's front and at the service; give the time."""
        with self._lock:
            now = self._clock()
            self.settle()
            self.limits.take(front, subscription.lower(), now)
            if behind is not None:
                self.limits.take(behind, key or subscription.lower(), now)
            yield now

    def _accept(self, accepted: Accepted) -> Accepted:
        if accepted.kind:
            self.accepted.append({"accepted": accepted.kind, "resource": accepted.resource})
        return accepted

    def _group(self, subscription: str, name: str) -> Group:
        group = self._groups.get(group_key(subscription, name))
        if group is None:
            raise no_group(name)
        return group

    def _writable_group(self, cluster: ClusterId) -> None:
        if self._group(cluster.subscription, cluster.resource_group).deleting is not None:
            raise group_being_deleted(cluster.resource_group)

    def _inside(self, subscription: str, name: str) -> list[Cluster]:
        wanted = group_key(subscription, name)
        return [c for key, c in self._clusters.items() if (key.subscription, key.resource_group) == wanted]

    def _cluster(self, cluster: ClusterId) -> Cluster:
        found = self._clusters.get(key_of(cluster))
        if found is None:
            self._group(cluster.subscription, cluster.resource_group)
            raise no_resource(cluster.resource)
        return found

    def _require_ready(self, cluster: Cluster) -> None:
        cluster.require_idle()
        if cluster.properties["powerState"]["code"] == "Stopped":
            raise not_allowed("The operation is not allowed while the managed cluster is stopped.")

    def _check_quota(self, cluster: ClusterId, location: str, pools: Pools) -> None:
        limit = self._quotas.get((cluster.subscription.lower(), location))
        if limit is None:
            return
        key = key_of(cluster)
        others = [
            other
            for other_key, other in self._clusters.items()
            if other_key != key
            and other_key.subscription == key.subscription
            and other.document["location"] == location
        ]
        left = limit - sum(cores(other.pools) for other in others)
        if cores(pools) > left:
            raise ArmError(
                400,
                "ErrCode_InsufficientVCPUQuota",
                f"Insufficient vcpu quota requested {cores(pools)}, remaining {max(left, 0)} "
                f"for region {location}.",
            )

    # Operations begin

    def _create(self, cluster: ClusterId, body: Json, now: datetime) -> Accepted:
        document = created_cluster(cluster, body)
        version = cluster_version(cluster.name, document["properties"]["kubernetesVersion"])
        document["properties"]["currentKubernetesVersion"] = version
        pools = pools_of_new_cluster(document, body)
        self._check_quota(cluster, document["location"], pools)
        created = self._clusters[key_of(cluster)] = Cluster(cluster, document, pools)
        operation = self._begin(created, "create", now)
        self._mark_all(created, "Creating")
        return self._accept(Accepted("create", cluster.resource, 201, deepcopy(created.view()), operation))

    def _update(self, existing: Cluster, body: Json, now: datetime) -> Accepted:
        document = updated_cluster(existing.document, body)
        wanted, current = (
            document["properties"][k] for k in ("kubernetesVersion", "currentKubernetesVersion")
        )
        version = cluster_version(existing.id.name, wanted, current)
        pools = pools_after_update(existing, document, body, version)
        self._check_quota(existing.id, document["location"], pools)
        existing.document, existing.pools = document, pools
        operation = self._begin(existing, "update", now)
        self._mark_all(existing, "Updating" if version == current else "Upgrading")
        view = deepcopy(existing.view())
        return self._accept(Accepted("update", existing.id.resource, 200, view, operation))

    def _start_delete(self, cluster: Cluster, now: datetime) -> Operation:
        """Begin to delete; a delete that runs goes on, anything else that runs is cancelled."""
        if cluster.operation is not None:
            if cluster.operation.kind == "delete":
                return cluster.operation
            cluster.operation.status = "Canceled"
        operation = self._begin(cluster, "delete", now)
        self._mark_all(cluster, "Deleting")
        return operation

    def _begin(self, cluster: Cluster, kind: str, now: datetime, pool: str = "") -> Operation:
        resource = cluster.id.resource + (f"/agentPools/{pool}" if pool else "")
        doom = Doom()
        if not kind.startswith("delete"):
            doom = self._dooms.pop(cluster.id.name.lower(), doom)
        due = NEVER if doom.sticks else now + timedelta(seconds=self.timings.of(kind))
        operation = self._schedule.start(kind, resource, cluster.document["location"], now=now, due=due)
        operation.cluster, operation.doom = key_of(cluster.id), doom
        cluster.operation = operation
        return operation

    def _mark_all(self, cluster: Cluster, state: str) -> None:
        mark(cluster.properties, state)
        cluster.document["eTag"] = self._schedule.unique()
        for pool in cluster.pools.values():
            mark(pool, state, self._schedule.unique())

    # Operations end

    def _complete(self, operation: Operation) -> None:
        operation.status = "Failed" if operation.error else "Succeeded"
        if operation.cluster is None:
            self._groups = {k: g for k, g in self._groups.items() if g.deleting is not operation}
            return
        cluster = self._clusters[operation.cluster]
        cluster.operation = None
        gone = operation.kind == "delete" or operation.doom.vanishes
        if gone and not operation.pool:
            del self._clusters[operation.cluster]
            self._plane.stop(cluster.id)
        elif operation.pool:
            self._complete_pool(cluster, operation)
        else:
            self._complete_cluster(cluster, operation)

    def _complete_cluster(self, cluster: Cluster, operation: Operation) -> None:
        self._mark_all(cluster, operation.status)
        if operation.error:
            cluster.properties["status"] = _failure(operation)
            return
        properties = cluster.properties
        version = cluster_version(
            cluster.id.name, properties["kubernetesVersion"], properties["currentKubernetesVersion"]
        )
        properties["currentKubernetesVersion"] = version
        for name in cluster.pools:
            self._move_version(cluster, name, operation.doom)
        cluster.up = set(cluster.pools)
        if cluster.kubeconfig:
            self._tell_plane(cluster)
        else:
            cluster.kubeconfig = self._plane.start(cluster.id, nodes_of(cluster))

    def _complete_pool(self, cluster: Cluster, operation: Operation) -> None:
        pool = cluster.pools[operation.pool]
        mark(pool, operation.status, self._schedule.unique())
        vanishes = operation.doom.vanishes and not _is_last_system_pool(cluster, operation.pool)
        if operation.kind == "delete-pool" or vanishes:
            del cluster.pools[operation.pool]
            cluster.up.discard(operation.pool)
            cluster.lagging.pop(operation.pool, None)
        elif operation.error:
            pool["status"] = _failure(operation)
            return
        else:
            self._move_version(cluster, operation.pool, operation.doom)
            if operation.kind == "upgrade-pool":
                pool["nodeImageVersion"] = NODE_IMAGES[-1]
            cluster.up.add(operation.pool)
        self._tell_plane(cluster)

    def _move_version(self, cluster: Cluster, name: str, doom: Doom) -> None:
        """Bring a pool to its version, and its nodes with it unless they are doomed to stay behind."""
        pool, control_plane = cluster.pools[name], cluster.properties["currentKubernetesVersion"]
        current = pool["currentOrchestratorVersion"]
        moved = pool_version(name, pool["orchestratorVersion"], control_plane, current)
        if doom.lags == name and moved != current:
            cluster.lagging[name] = current
        else:
            cluster.lagging.pop(name, None)
        if moved != current:
            pool |= {"currentOrchestratorVersion": moved, "nodeImageVersion": NODE_IMAGES[-1]}

    def _tell_plane(self, cluster: Cluster) -> None:
        if cluster.kubeconfig:
            self._plane.set_nodes(cluster.id, nodes_of(cluster))


def _is_last_system_pool(cluster: Cluster, name: str) -> bool:
    """Tell whether a pool is the one that AKS does not let go: no cluster is without a System pool."""
    return not any(p["mode"] == "System" for other, p in cluster.pools.items() if other != name)


def key_of(cluster: ClusterId) -> ClusterId:
    """Return the id as a key: ARM's names do not differ by case."""
    return ClusterId(cluster.subscription.lower(), cluster.resource_group.lower(), cluster.name.lower())


def group_key(subscription: str, name: str) -> tuple[str, str]:
    """Return a resource group's key."""
    return subscription.lower(), name.lower()


def mark(holder: dict[str, Any], state: str, etag: str = "") -> None:
    """Set the provisioning state, forget an earlier failure, and set the ETag when there is one."""
    holder["provisioningState"] = state
    holder.pop("status", None)
    if etag:
        holder["eTag"] = etag


def _failure(operation: Operation) -> dict[str, Any]:
    code, message = operation.error or ("", "")
    return {"provisioningError": {"code": code, "message": message}}
