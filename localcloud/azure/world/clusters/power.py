"""The Azure operations that stop, start and abort, as ``az aks stop`` and ``operation-abort`` see them.

Source: the operations Stop, Start and Abort Latest Operation of the REST reference, and azure-cli's recording
test_aks_abort. That a cluster with node auto-provisioning is not stopped, and how AKS says so:
github.com/MicrosoftDocs/azure-docs/issues/118661, github.com/Azure/AKS/issues/5356.
"""

from __future__ import annotations

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.arm_errors import no_pool, not_allowed
from localcloud.azure.world.arm_resources import ArmCluster, WriteAnswer
from localcloud.azure.world.azure_engine import AzureEngine
from localcloud.azure.world.completions import set_state
from localcloud.common.json_copy import copied
from shared.resource_ids import ClusterId

_PROVISIONS_NODES = (
    "Unable to perform 'stopping' operation since the cluster enables "
    ".properties.nodeProvisioningProfile.mode 'Auto'"
)


class PowerOperations:
    """The requests that stop, start and abort."""

    engine: AzureEngine

    def stop_cluster(self, cluster: ClusterId) -> WriteAnswer:
        """Start to stop a cluster; one with node auto-provisioning is refused."""
        return self._power(cluster, "stop", "Stopping")

    def start_cluster(self, cluster: ClusterId) -> WriteAnswer:
        """Start to start a cluster that is stopped."""
        return self._power(cluster, "start", "Starting")

    def abort_cluster(self, cluster: ClusterId) -> WriteAnswer:
        """Start to abort the operation that runs on a cluster; 409 when there is none any more."""
        return self._abort(cluster, "")

    def abort_pool(self, cluster: ClusterId, pool: str) -> WriteAnswer:
        """Start to abort the operation that runs on an agent pool."""
        return self._abort(cluster, pool)

    def _power(self, cluster: ClusterId, kind: str, state: str) -> WriteAnswer:
        with self.engine.request(cluster.subscription, limits.ARM_WRITE, limits.ANY_OTHER) as now:
            existing = self.engine.cluster(cluster)
            existing.require_idle()
            profile = existing.properties.get("nodeProvisioningProfile") or {}
            if kind == "stop" and profile.get("mode") == "Auto":
                raise not_allowed(_PROVISIONS_NODES)
            operation = self.engine.begin(existing, kind, now)
            self.engine.set_all_states(existing, state)
            return self.engine.accept(WriteAnswer(kind, existing.id.resource, 202, operation=operation))

    def _abort(self, cluster: ClusterId, pool: str) -> WriteAnswer:
        with self.engine.request(cluster.subscription, limits.ARM_WRITE, limits.ANY_OTHER) as now:
            existing = self.engine.cluster(cluster)
            if pool and pool not in existing.pools:
                raise no_pool(existing.id.name, pool)
            running = existing.operation
            if running is None or running.pool != pool:
                raise not_allowed("There is no operation in progress that could be aborted.", 409)
            running.status = "Canceled"
            kind = "abort-pool" if pool else "abort"
            operation = self.engine.begin(existing, kind, now, pool)
            self._set_canceling(existing, pool)
            view = existing.pool_view(pool) if pool else existing.view()
            return self.engine.accept(WriteAnswer(kind, operation.resource, 202, copied(view), operation))

    def _set_canceling(self, cluster: ArmCluster, pool: str) -> None:
        if pool:
            set_state(cluster.pools[pool], "Canceling", self.engine.schedule.unique())
        else:
            self.engine.set_all_states(cluster, "Canceling")
