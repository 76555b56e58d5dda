"""Azure Resource Manager in memory: resource groups, AKS clusters and their agent pools, as ARM JSON.

As strict as the service about names, versions, fixed properties, one operation at a time per cluster,
ETags and request limits. Refusals are ``ArmError``; time and operations are ``azure_engine``'s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from datetime import timedelta
from typing import Any

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.arm_errors import ArmError, group_being_deleted, no_resource
from localcloud.azure.world.arm_resources import Accepted, Condition, Group
from localcloud.azure.world.azure_engine import group_key, key_of, mark
from localcloud.azure.world.catalog import REGIONS, region
from localcloud.azure.world.pool_changes import pool_after, require_system_pool
from localcloud.azure.world.upkeep import AzureUpkeep
from shared.fleet.resource_ids import ClusterId

Json = Mapping[str, Any]

_ANY = Condition()
_GROUP_NAME = re.compile(r"[-\w._()]{1,89}[-\w_()]|[-\w_()]")


class AzureWorld(AzureUpkeep):
    """What Azure Resource Manager offers: one method per request that it answers."""

    # Resource groups

    def get_group(self, subscription: str, name: str) -> Json:
        """Return a resource group."""
        with self._request(subscription, limits.ARM_READ):
            return deepcopy(self._group(subscription, name).document)

    def put_group(self, subscription: str, name: str, body: Json) -> Accepted:
        """Create or update a resource group; its location is fixed."""
        with self._request(subscription, limits.ARM_WRITE):
            location = region(str(body.get("location") or ""))
            group = self._groups.get(group_key(subscription, name))
            _check_group(name, location, group)
            document = {
                "id": f"/subscriptions/{subscription}/resourceGroups/{name}",
                "name": name,
                "type": "Microsoft.Resources/resourceGroups",
                **(group.document if group else {}),
                "location": location,
                "tags": dict(body.get("tags") or {}),
                "properties": {"provisioningState": "Succeeded"},
            }
            self._groups[group_key(subscription, name)] = Group(document)
            kind, status = ("update-group", 200) if group else ("create-group", 201)
            return self._accept(Accepted(kind, document["id"], status, document))

    def delete_group(self, subscription: str, name: str) -> Accepted:
        """Start to delete a group and all that is in it."""
        with self._request(subscription, limits.ARM_DELETE) as now:
            group = self._group(subscription, name)
            if group.deleting is not None:
                return Accepted("", group.document["id"], 202, operation=group.deleting)
            inside = self._inside(subscription, name)
            ends = [now, *(self._start_delete(cluster, now).due for cluster in inside)]
            due = max(ends) + timedelta(seconds=self.timings.of("delete-group"))
            group.deleting = self._schedule.start(
                "delete-group", group.document["id"], group.document["location"], now=now, due=due
            )
            group.document["properties"] = {"provisioningState": "Deleting"}
            return self._accept(Accepted("delete-group", group.document["id"], 202, operation=group.deleting))

    def list_resources(self, subscription: str, name: str) -> list[Json]:
        """Return what is in a group: id, name, type, location, tags."""
        with self._request(subscription, limits.ARM_READ):
            self._group(subscription, name)
            keys = ("id", "name", "type", "location", "tags")
            inside = self._inside(subscription, name)
            return [deepcopy({key: cluster.document[key] for key in keys}) for cluster in inside]

    # Managed clusters

    def get_cluster(self, cluster: ClusterId) -> Json:
        """Return a cluster with its agent pools."""
        with self._request(cluster.subscription, limits.ARM_READ, limits.GET_CLUSTER, key_of(cluster)):
            return deepcopy(self._cluster(cluster).view())

    def put_cluster(self, cluster: ClusterId, body: Json, condition: Condition = _ANY) -> Accepted:
        """Start to create or update a cluster."""
        with self._request(
            cluster.subscription, limits.ARM_WRITE, limits.PUT_CLUSTER, key_of(cluster)
        ) as now:
            self._writable_group(cluster)
            existing = self._clusters.get(key_of(cluster))
            condition.check(existing.document["eTag"] if existing else None)
            if existing is None:
                return self._create(cluster, body, now)
            self._require_ready(existing)
            return self._update(existing, body, now)

    def delete_cluster(self, cluster: ClusterId, condition: Condition = _ANY) -> Accepted:
        """Start to delete a cluster, whatever else is going on there."""
        with self._request(cluster.subscription, limits.ARM_DELETE, limits.ANY_OTHER) as now:
            self._group(cluster.subscription, cluster.resource_group)
            existing = self._clusters.get(key_of(cluster))
            if existing is None:
                return Accepted("", cluster.resource, 204)
            condition.check(existing.document["eTag"])
            repeated = existing.operation is not None and existing.operation.kind == "delete"
            operation = self._start_delete(existing, now)
            kind = "" if repeated else "delete"
            return self._accept(Accepted(kind, existing.id.resource, 202, operation=operation))

    def credentials(self, cluster: ClusterId) -> str:
        """Return the kubeconfig; there is none before the cluster has been created."""
        with self._request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            existing = self._cluster(cluster)
            if not existing.kubeconfig:
                state = existing.properties["provisioningState"]
                raise ArmError(400, "BadRequest", f"No credentials: the managed cluster is in state {state}.")
            return existing.kubeconfig

    # Agent pools

    def get_pool(self, cluster: ClusterId, pool: str) -> Json:
        """Return an agent pool."""
        with self._request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            existing = self._cluster(cluster)
            if pool not in existing.pools:
                raise no_resource(f"{existing.id.resource}/agentPools/{pool}")
            return deepcopy(existing.pool_view(pool))

    def list_pools(self, cluster: ClusterId) -> list[Json]:
        """Return all agent pools of a cluster."""
        with self._request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            existing = self._cluster(cluster)
            return [deepcopy(existing.pool_view(name)) for name in existing.pools]

    def put_pool(self, cluster: ClusterId, pool: str, body: Json, condition: Condition = _ANY) -> Accepted:
        """Start to create or update an agent pool."""
        key = (key_of(cluster), pool)
        with self._request(cluster.subscription, limits.ARM_WRITE, limits.PUT_POOL, key) as now:
            self._writable_group(cluster)
            existing = self._cluster(cluster)
            before = existing.pools.get(pool)
            condition.check(before["eTag"] if before else None)
            self._require_ready(existing)
            after = pool_after(existing.document, pool, body.get("properties") or {}, before)
            pools = {**existing.pools, pool: after}
            require_system_pool(pools)
            self._check_quota(existing.id, existing.document["location"], pools)
            kind = "update-pool" if before else "create-pool"
            existing.pools[pool] = after
            operation = self._begin(existing, kind, now, pool)
            mark(after, "Updating" if before else "Creating", self._schedule.unique())
            view = deepcopy(existing.pool_view(pool))
            return self._accept(Accepted(kind, view["id"], 200 if before else 201, view, operation))

    def delete_pool(self, cluster: ClusterId, pool: str, condition: Condition = _ANY) -> Accepted:
        """Start to delete an agent pool; the last System pool must stay."""
        with self._request(cluster.subscription, limits.ARM_DELETE, limits.ANY_OTHER) as now:
            existing = self._cluster(cluster)
            resource = f"{existing.id.resource}/agentPools/{pool}"
            if pool not in existing.pools:
                return Accepted("", resource, 204)
            condition.check(existing.pools[pool]["eTag"])
            self._require_ready(existing)
            require_system_pool({name: p for name, p in existing.pools.items() if name != pool})
            operation = self._begin(existing, "delete-pool", now, pool)
            mark(existing.pools[pool], "Deleting", self._schedule.unique())
            return self._accept(Accepted("delete-pool", resource, 202, operation=operation))

    # Operations

    def operation(self, subscription: str, identifier: str) -> Json:
        """Return the status of a long-running operation."""
        with self._request(subscription, limits.ARM_READ, limits.GET_OPERATION):
            found = self._schedule.find(identifier)
            if found is None:
                raise ArmError(404, "NotFound", f"The operation '{identifier}' was not found.")
            return found.document()


def _check_group(name: str, location: str, existing: Group | None) -> None:
    if not _GROUP_NAME.fullmatch(name):
        raise ArmError(400, "InvalidResourceGroupName", f"The resource group name '{name}' is invalid.")
    if location not in REGIONS:
        raise ArmError(
            400,
            "LocationNotAvailableForResourceGroup",
            f"The provided location '{location}' is not available for resource group.",
        )
    if existing is None:
        return
    if existing.deleting is not None:
        raise group_being_deleted(name)
    if existing.document["location"] != location:
        raise ArmError(
            409,
            "InvalidResourceGroupLocation",
            f"Invalid resource group location '{location}'. The Resource group already exists in location "
            f"'{existing.document['location']}'.",
        )
