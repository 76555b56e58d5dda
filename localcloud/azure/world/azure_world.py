"""Azure Resource Manager in memory: resource groups, AKS clusters and their agent pools, as ARM JSON.

As strict as the service about names, versions, fixed properties, one operation at a time per cluster,
ETags and request limits. Refusals are ``ArmError``; time and operations are ``azure_engine``'s.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.access.identities import Identities
from localcloud.azure.world.access.policy_assignments import PolicyAssignments
from localcloud.azure.world.access.role_assignments import RoleAssignments
from localcloud.azure.world.arm_errors import AksError, ArmError, no_pool
from localcloud.azure.world.arm_keys import group_key, key_of
from localcloud.azure.world.arm_resources import Timings, WriteAnswer, WriteCondition
from localcloud.azure.world.azure_engine import AzureEngine
from localcloud.azure.world.body_shapes import (
    read_cluster,
    read_pool,
    read_tags,
)
from localcloud.azure.world.catalog import SUBSCRIPTION
from localcloud.azure.world.clusters.credentials import given_kubeconfig
from localcloud.azure.world.clusters.managed_clusters import check_pools
from localcloud.azure.world.clusters.managed_namespaces import NamespaceRequests
from localcloud.azure.world.clusters.power import PowerOperations
from localcloud.azure.world.clusters.upkeep import MaintenanceRequests
from localcloud.azure.world.completions import set_state
from localcloud.azure.world.costs import CostQuery
from localcloud.azure.world.flux.kubernetes_configuration import KubernetesConfiguration
from localcloud.azure.world.interventions import Interventions
from localcloud.azure.world.offers import Offers
from localcloud.azure.world.pools import rollbacks
from localcloud.azure.world.pools.pool_changes import pool_after, require_system_pool
from localcloud.azure.world.pools.pool_power import state_of_put
from localcloud.azure.world.resource_groups import ResourceGroups
from localcloud.common.control_plane import ControlPlane
from localcloud.common.json_copy import copied
from shared.json_tree import Json
from shared.resource_ids import ClusterId

_ANY = WriteCondition()


class AzureWorld(
    ResourceGroups,
    MaintenanceRequests,
    KubernetesConfiguration,
    NamespaceRequests,
    PowerOperations,
    CostQuery,
):
    """Azure Resource Manager: one method for each operation; what it inherits shares its engine.

    ``interventions`` is what happens without a request: faults, the portal, an autoscaler. ``identities``,
    ``roles``, ``policies`` and ``offers`` have operations of their own. ``withheld`` are the versions of
    Kubernetes, node images and Flux that no list has yet.
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
        self.engine = AzureEngine(
            clock, plane=plane, timings=timings, throttle=throttle, subscriptions=subscriptions
        )
        self.interventions = Interventions(self.engine)
        self.called_by = self.engine.activity.called_by
        self.complete_due, self.request_id = self.engine.complete_due, self.engine.request_id
        self.identities, self.roles = Identities(self.engine), RoleAssignments(self.engine)
        self.policies = PolicyAssignments(self.engine)
        self.withheld = set()
        self.offers = Offers(self.engine)

    def answering(self, operation: str) -> Callable[..., Any]:
        """Return the method that has the name of an operation: one of the world, or of a part of it."""
        for part in (self, self.identities, self.roles, self.policies, self.offers):
            method: Callable[..., Any] | None = getattr(part, operation, None)
            if method is not None:
                return method
        raise AttributeError(f"localcloud/azure/world: no part of it has {operation}")

    # State, without a request

    @property
    def accepted(self) -> list[dict[str, str]]:
        """Every write that was accepted, as {"accepted": "create", "resource": id}."""
        return self.engine.accepted

    @property
    def limits(self) -> limits.Limits:
        """The request limits, and the requests of each."""
        return self.engine.limits

    def ids(self) -> list[ClusterId]:
        """Return the clusters that exist, in all subscriptions."""
        with self.engine.lock:
            self.complete_due()
            return [cluster.id for cluster in self.engine.clusters.values()]

    def groups(self) -> list[tuple[str, str]]:
        """Return the resource groups that exist, as (subscription, name) in lower case."""
        with self.engine.lock:
            self.complete_due()
            return list(self.engine.groups)

    def peek(self, cluster: ClusterId) -> Json | None:
        """Return a cluster as it is, or None; counts as no request, and is not to be written to."""
        with self.engine.lock:
            self.complete_due()
            found = self.engine.clusters.get(key_of(cluster))
            return found.view() if found else None

    def peek_pools(self) -> dict[ClusterId, list[Json]]:
        """Return the agent pools of every cluster as they are, by its key; see ``peek``."""
        with self.engine.lock:
            self.complete_due()
            return {key: [*found.pools.values()] for key, found in self.engine.clusters.items()}

    def peek_maintenance(self, cluster: ClusterId) -> dict[str, Json]:
        """Return the maintenance configurations of a cluster by name; counts as no request."""
        with self.engine.lock:
            found = self.engine.clusters.get(key_of(cluster))
            return dict(found.maintenance) if found else {}

    # Subscriptions

    @property
    def subscriptions(self) -> Sequence[str]:
        """The ids of the subscriptions that exist."""
        return self.engine.subscriptions

    def location_of(self, subscription: str, group: str) -> str:
        """Return the region of a group; empty without one."""
        with self.engine.lock:
            found = self.engine.groups.get(group_key(subscription, group))
            return str(found.document["location"]) if found else ""

    def seconds_left(self, operation: str) -> float:
        """Return how long an operation still runs; 0 once it has ended."""
        with self.engine.lock:
            return self.engine.seconds_left(operation)

    # Managed clusters

    def get_cluster(self, cluster: ClusterId) -> Json:
        """Return a cluster with its agent pools."""
        with self.engine.request(cluster.subscription, limits.ARM_READ, limits.GET_CLUSTER, key_of(cluster)):
            return copied(self.engine.cluster(cluster).view())

    def list_clusters(self, subscription: str, page: str = "") -> tuple[list[Json], str]:
        """Return a page of the clusters of a subscription, and what the next one is called, "" for none."""
        with self.engine.request(subscription, limits.ARM_READ, limits.LIST_SUBSCRIPTION):
            clusters = sorted(self.engine.clusters.items())
            left = [(key, c) for key, c in clusters if key.subscription == subscription.lower()]
            left = [(key, c) for key, c in left if f"{key.resource_group}|{key.name}" > page]
            shown = left[: self.engine.page_size]
            last = f"{shown[-1][0].resource_group}|{shown[-1][0].name}" if len(left) > len(shown) else ""
            return [copied(cluster.view()) for _, cluster in shown], last

    def list_activity(self, subscription: str, wanted: str, page: str = "") -> tuple[list[Json], str]:
        """Return a page of the activity log, and what the next one is called, "" for none."""
        with self.engine.request(subscription, limits.ARM_READ) as now:
            events, following = self.engine.activity.page(subscription, wanted, page, now)
            return [dict(event) for event in events], following

    def list_clusters_of_group(self, subscription: str, group: str) -> list[Json]:
        """Return the clusters of a resource group."""
        key = f"{subscription}/{group}".lower()
        with self.engine.request(subscription, limits.ARM_READ, limits.LIST_GROUP, key):
            self.engine.group(subscription, group)
            return [copied(cluster.view()) for cluster in self.engine.inside(subscription, group)]

    def patch_cluster(self, cluster: ClusterId, body: Json, condition: WriteCondition = _ANY) -> WriteAnswer:
        """Start to set the tags of a cluster."""
        with self.engine.request(cluster.subscription, limits.ARM_WRITE, limits.ANY_OTHER) as now:
            existing = self.engine.cluster(cluster)
            condition.check(existing.document["eTag"])
            return self.engine.update(existing, {"tags": read_tags(body)}, now)

    def put_cluster(self, cluster: ClusterId, body: Json, condition: WriteCondition = _ANY) -> WriteAnswer:
        """Start to create or update a cluster."""
        with self.engine.request(
            cluster.subscription, limits.ARM_WRITE, limits.PUT_CLUSTER, key_of(cluster)
        ) as now:
            self.engine.writable_group(cluster)
            existing = self.engine.clusters.get(key_of(cluster))
            condition.check(existing.document["eTag"] if existing else None)
            self.engine.refuse(cluster.name)
            body = read_cluster(body)
            if existing is None:
                return self.engine.create(cluster, body, now)
            self.engine.require_ready(existing)
            return self.engine.update(existing, body, now)

    def delete_cluster(self, cluster: ClusterId, condition: WriteCondition = _ANY) -> WriteAnswer:
        """Start to delete a cluster, even while another operation runs."""
        with self.engine.request(cluster.subscription, limits.ARM_DELETE, limits.ANY_OTHER) as now:
            self.engine.group(cluster.subscription, cluster.resource_group)
            existing = self.engine.clusters.get(key_of(cluster))
            if existing is None:
                return WriteAnswer("", cluster.resource, 204)
            condition.check(existing.document["eTag"])
            repeated = existing.operation is not None and existing.operation.kind == "delete"
            operation = self.engine.start_delete(existing, now)
            kind = "" if repeated else "delete"
            return self.engine.accept(WriteAnswer(kind, existing.id.resource, 202, operation=operation))

    def get_kubeconfig(self, cluster: ClusterId, who: str = "user") -> Json:
        """Return the credentials of a user or an admin; there are none while the cluster is being created."""
        with self.engine.request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            existing = self.engine.cluster(cluster)
            if not existing.kubeconfig:
                state = existing.properties["provisioningState"]
                raise AksError(400, "BadRequest", f"No credentials: the managed cluster is in state {state}.")
            text = given_kubeconfig(existing.kubeconfig, existing.properties, who)
            return {
                "kubeconfigs": [{"name": f"cluster{who.title()}", "value": b64encode(text.encode()).decode()}]
            }

    # Agent pools

    def get_pool(self, cluster: ClusterId, pool: str) -> Json:
        """Return an agent pool."""
        with self.engine.request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            existing = self.engine.cluster(cluster)
            if pool not in existing.pools:
                raise no_pool(existing.id.name, pool)
            return copied(existing.pool_view(pool))

    def list_pools(self, cluster: ClusterId) -> list[Json]:
        """Return all agent pools of a cluster."""
        with self.engine.request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            existing = self.engine.cluster(cluster)
            return [copied(existing.pool_view(name)) for name in existing.pools]

    def put_pool(
        self, cluster: ClusterId, pool: str, body: Json, condition: WriteCondition = _ANY
    ) -> WriteAnswer:
        """Start to create or update an agent pool."""
        key = (key_of(cluster), pool)
        with self.engine.request(cluster.subscription, limits.ARM_WRITE, limits.PUT_POOL, key) as now:
            self.engine.writable_group(cluster)
            existing = self.engine.cluster(cluster)
            before = existing.pools.get(pool)
            condition.check(before["eTag"] if before else None)
            self.engine.refuse(cluster.name)
            properties = read_pool(body).get("properties") or {}
            self.engine.require_ready(existing)
            back = rollbacks.asked_in(properties, before, existing.properties, now)
            given = rollbacks.without_versions(properties, before) if back and before else properties
            after = pool_after(existing.document, pool, given, before)
            if back:
                rollbacks.begin(after, back)
            pools = {**existing.pools, pool: after}
            require_system_pool(pools)
            check_pools(existing.document, [*pools.values()])
            self.engine.quotas.check(
                self.engine.clusters, key_of(existing.id), existing.document["location"], pools
            )
            kind = "update-pool" if before else "create-pool"
            existing.pools[pool] = after
            operation = self.engine.begin(existing, kind, now, pool)
            set_state(after, state_of_put(before, after), self.engine.schedule.unique())
            view = copied(existing.pool_view(pool))
            return self.engine.accept(WriteAnswer(kind, view["id"], 200 if before else 201, view, operation))

    def delete_pool(self, cluster: ClusterId, pool: str, condition: WriteCondition = _ANY) -> WriteAnswer:
        """Start to delete an agent pool; the last System pool must stay."""
        with self.engine.request(cluster.subscription, limits.ARM_DELETE, limits.ANY_OTHER) as now:
            existing = self.engine.cluster(cluster)
            resource = f"{existing.id.resource}/agentPools/{pool}"
            if pool not in existing.pools:
                return WriteAnswer("", resource, 204)
            condition.check(existing.pools[pool]["eTag"])
            self.engine.require_ready(existing)
            require_system_pool({name: p for name, p in existing.pools.items() if name != pool})
            operation = self.engine.begin(existing, "delete-pool", now, pool)
            set_state(existing.pools[pool], "Deleting", self.engine.schedule.unique())
            return self.engine.accept(WriteAnswer("delete-pool", resource, 202, operation=operation))

    # Operations

    def operation(self, subscription: str, identifier: str) -> Json:
        """Return the status of a long-running operation."""
        with self.engine.request(subscription, limits.ARM_READ, limits.GET_OPERATION):
            found = self.engine.schedule.find(identifier)
            if found is None:
                raise ArmError(404, "NotFound", f"The operation '{identifier}' was not found.")
            return found.document()
