"""The ports of production code, answered by the Azure world in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_resources import Condition
from localcloud.azure.world.azure_world import AzureWorld
from shared.fleet.resource_ids import ClusterId
from shared.jobs.errors import from_http
from shared.ports import GroupWrite, Json


class WorldResourceGroups:
    """The port ``ResourceGroups``."""

    def __init__(self, world: AzureWorld) -> None:
        self._world = world

    def get(self, subscription: str, name: str) -> Json | None:
        """Return the group, or None."""
        with _refusals(missing_is_fine=True):
            return self._world.get_group(subscription, name)
        return None

    def put(self, subscription: str, name: str, body: Json) -> GroupWrite:
        """Create or overwrite the group."""
        with _refusals():
            accepted = self._world.put_group(subscription, name, body)
            return GroupWrite(self._world.request_id(), created=accepted.status == HTTPStatus.CREATED)

    def delete(self, subscription: str, name: str) -> str:
        """Start to delete the group; a group that is gone is success."""
        with _refusals(missing_is_fine=True):
            self._world.delete_group(subscription, name)
            return self._world.request_id()
        return ""

    def resources(self, subscription: str, name: str) -> Sequence[str]:
        """Return the resource ids inside the group; empty when the group is gone."""
        with _refusals(missing_is_fine=True):
            return [str(found["id"]) for found in self._world.list_resources(subscription, name)]
        return []


class WorldManagedClusters:
    """The port ``ManagedClusters``."""

    def __init__(self, world: AzureWorld) -> None:
        self._world = world

    def get(self, cluster: ClusterId) -> Json | None:
        """Return the cluster, or None."""
        with _refusals(missing_is_fine=True):
            return self._world.get_cluster(cluster)
        return None

    def put(self, cluster: ClusterId, body: Json, *, etag: str | None) -> str:
        """Start to create or update the cluster."""
        with _refusals():
            self._world.put_cluster(cluster, body, Condition.of(etag))
            return self._world.request_id()

    def delete(self, cluster: ClusterId, *, etag: str | None) -> str:
        """Start to delete the cluster; one that is gone is success."""
        with _refusals(missing_is_fine=True):
            self._world.delete_cluster(cluster, Condition(if_match=etag or ""))
            return self._world.request_id()
        return ""

    def put_pool(self, cluster: ClusterId, pool: str, body: Json, *, etag: str | None) -> str:
        """Start to create or update one agent pool."""
        with _refusals():
            self._world.put_pool(cluster, pool, body, Condition.of(etag))
            return self._world.request_id()

    def delete_pool(self, cluster: ClusterId, pool: str, *, etag: str | None) -> str:
        """Start to delete one agent pool; one that is gone is success."""
        with _refusals(missing_is_fine=True):
            self._world.delete_pool(cluster, pool, Condition(if_match=etag or ""))
            return self._world.request_id()
        return ""

    def upgrade_node_image(self, cluster: ClusterId, pool: str) -> str:
        """Start to bring one agent pool to the newest node image; nothing to do when it has it already."""
        with _refusals():
            accepted = self._world.upgrade_node_image(cluster, pool)
            return self._world.request_id() if accepted.kind else ""

    def upgrade_profile(self, cluster: ClusterId) -> Json:
        """Return what the cluster may be upgraded to."""
        with _refusals():
            return self._world.upgrade_profile(cluster)

    def versions(self, subscription: str, location: str) -> Json:
        """Return the Kubernetes versions that a region offers."""
        with _refusals():
            return self._world.versions(subscription, location)

    def maintenance(self, cluster: ClusterId) -> Mapping[str, Json]:
        """Return the cluster's maintenance configurations by name."""
        with _refusals():
            return {str(found["name"]): found for found in self._world.list_maintenance(cluster)}

    def put_maintenance(self, cluster: ClusterId, name: str, body: Json) -> str:
        """Create or replace a maintenance configuration."""
        with _refusals():
            self._world.put_maintenance(cluster, name, body)
            return self._world.request_id()

    def kubeconfig(self, cluster: ClusterId) -> str:
        """Return a kubeconfig for the cluster."""
        with _refusals():
            return self._world.credentials(cluster)


@contextmanager
def _refusals(*, missing_is_fine: bool = False) -> Iterator[None]:
    """Turn a refusal of the world into the error that the production adapter would raise."""
    try:
        yield
    except ArmError as error:
        if missing_is_fine and error.status == 404:
            return
        raise from_http(error.status, error.code, error.message, retry_after=error.retry_after) from error
