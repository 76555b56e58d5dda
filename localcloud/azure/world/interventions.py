"""What a test, or whoever plays with the local cloud, does behind Azure's back."""

from __future__ import annotations

from localcloud.azure.world.arm_resources import Doom
from localcloud.azure.world.azure_engine import AzureEngine, Json, key_of
from shared.fleet.resource_ids import ClusterId


class AzureBehind(AzureEngine):
    """Trouble for the next operation of a cluster, and what people and autoscalers do without Roadstead.

    ``*_next`` take the cluster's name, wherever it is, and spare deletes; the last one counts.
    """

    def fail_next(self, name: str, code: str, message: str) -> None:
        """Let the next operation end as Failed; a create leaves the cluster behind, with pools."""
        self._doom(name, Doom(error=(code, message)))

    def stick_next(self, name: str) -> None:
        """Let the next operation never end: only ``abort`` or a delete of the cluster ends it."""
        self._doom(name, Doom(sticks=True))

    def vanish_next(self, name: str) -> None:
        """Let what the next operation works on be gone at its end, as if it had never been."""
        self._doom(name, Doom(vanishes=True))

    def lag_next(self, name: str, pool: str) -> None:
        """Let the next upgrade of a pool succeed while its nodes keep their kubelet version.

        It is the next operation of the cluster that counts; the next one after it brings the nodes along.
        """
        self._doom(name, Doom(lags=pool))

    def catch_up(self, cluster: ClusterId) -> None:
        """Bring the nodes along that kept their kubelet, as a person does who frees what held them."""
        with self._lock:
            found = self._cluster(cluster)
            found.lagging.clear()
            self._tell_plane(found)

    def abort(self, cluster: ClusterId) -> None:
        """End the operation that runs as Canceled, as ``az aks operation-abort`` does."""
        with self._lock:
            self.settle()
            found = self._cluster(cluster)
            if found.operation is None:
                return
            found.operation.status = "Canceled"
            pool = found.operation.pool
            found.operation = None
            if pool:
                found.pools[pool] |= {"provisioningState": "Canceled", "eTag": self._schedule.unique()}
            else:
                self._mark_all(found, "Canceled")

    def ids(self) -> list[ClusterId]:
        """Return the clusters that are there, in all subscriptions."""
        with self._lock:
            self.settle()
            return [cluster.id for cluster in self._clusters.values()]

    def groups(self) -> list[tuple[str, str]]:
        """Return the resource groups that are there, as (subscription, name) in lower case."""
        with self._lock:
            self.settle()
            return list(self._groups)

    def look(self, cluster: ClusterId) -> Json | None:
        """Return a cluster as it is, or None; counts as no request, and is not to be written to."""
        with self._lock:
            self.settle()
            found = self._clusters.get(key_of(cluster))
            return found.view() if found else None

    def limit_vcpus(self, subscription: str, location: str, vcpus: int) -> None:
        """Give the subscription so many vCPUs in a region; without a limit there is no end to them."""
        with self._lock:
            self._quotas[subscription.lower(), location] = vcpus

    def stop(self, cluster: ClusterId) -> None:
        """Stop a cluster, as ``az aks stop`` does: only a start or a delete is allowed then.

        Raises ArmError, as while an operation runs there.
        """
        self._set_power(cluster, "Stopped")

    def start(self, cluster: ClusterId) -> None:
        """Start a stopped cluster again."""
        self._set_power(cluster, "Running")

    def scale(self, cluster: ClusterId, pool: str, count: int) -> None:
        """Set a pool's node count, as the cluster autoscaler does."""
        self._change_pool(cluster, pool, count=count)

    def set_node_image(self, cluster: ClusterId, pool: str, image: str) -> None:
        """Let a pool have an older node image, as after a new one came out."""
        self._change_pool(cluster, pool, nodeImageVersion=image)

    def _change_pool(self, cluster: ClusterId, pool: str, **change: object) -> None:
        with self._lock:
            self.settle()
            found = self._cluster(cluster)
            found.pools[pool] |= {**change, "eTag": self._schedule.unique()}
            self._tell_plane(found)

    def _set_power(self, cluster: ClusterId, code: str) -> None:
        with self._lock:
            self.settle()
            found = self._cluster(cluster)
            found.require_idle()
            for holder in (found.properties, *found.pools.values()):
                holder["powerState"] = {"code": code}
            self._tell_plane(found)
            self._plane.set_power(found.id, on=code == "Running")

    def _doom(self, name: str, doom: Doom) -> None:
        with self._lock:
            self._dooms[name.lower()] = doom
