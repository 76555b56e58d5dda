"""What happens to clusters without a request from Roadstead: faults, the portal, an autoscaler."""

from __future__ import annotations

from datetime import timedelta

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.arm_resources import ArmCluster, ArmOperation, OperationFault
from localcloud.azure.world.azure_engine import AzureEngine
from localcloud.azure.world.failures.documented import RecordedError, failures
from localcloud.azure.world.pools.rollbacks import age_last
from shared.resource_ids import ClusterId

SOMEBODY = "somebody@example.com"
"""Who makes these changes, in the activity log."""


class Interventions:
    """Faults for the next operation of a cluster, and changes that operators and autoscalers make.

    ``*_next`` take the name of a cluster in any resource group and do not affect deletes; the last call
    before the operation wins.
    """

    def __init__(self, engine: AzureEngine) -> None:
        self._engine = engine

    def fail_next(self, name: str, code: str, message: str = "") -> None:
        """Fail the next operation; a failed create leaves the cluster with its pools.

        Without a message, ``code`` is the name of a documented failure: its body is that of its source, and
        it is a refusal, or the failure of a delete, where that says so. ValueError for an unknown name.
        """
        if message:
            self._set_fault(name, OperationFault(error=(code, message)))
            return
        self._set_fault(name, _documented(code))

    def block(self, name: str, code: str) -> None:
        """Let something keep a cluster: each delete of it ends as a documented failure until ``unblock``.

        Such as a lock, or a private endpoint that is connected to it.
        """
        with self._engine.lock:
            self._engine.blocks[name.lower()] = _documented(code)

    def deny(self, name: str, code: str) -> None:
        """Let each write to a cluster end as a documented failure until ``unblock``, as by a policy."""
        with self._engine.lock:
            self._engine.denials[name.lower()] = _documented(code)

    def unblock(self, name: str) -> None:
        """Take away what keeps a cluster, and what denies each write to it."""
        with self._engine.lock:
            self._engine.blocks.pop(name.lower(), None)
            self._engine.denials.pop(name.lower(), None)

    def stick_next(self, name: str) -> None:
        """Never complete the next operation; only ``abort`` or a delete of the cluster ends it."""
        self._set_fault(name, OperationFault(sticks=True))

    def vanish_next(self, name: str) -> None:
        """Remove the resource of the next operation at the end of that operation."""
        self._set_fault(name, OperationFault(vanishes=True))

    def deliver_next(self, name: str, after: str) -> None:
        """Deliver the next event of a cluster after so many seconds: "0,30" is twice, and "" is never."""
        self._engine.grid.fate_of_next(name, [float(seconds) for seconds in after.split(",") if seconds])

    def withdraw(self, name: str) -> bool:
        """Take back the fault for the next operation; return whether none has started since it was set."""
        with self._engine.lock:
            return self._engine.next_faults.pop(name.lower(), None) is not None

    def lag_next(self, name: str, pool: str) -> None:
        """Let the next upgrade of a pool succeed while its nodes keep their kubelet version.

        The fault applies to the next operation of the cluster; the operation after that upgrades the nodes.
        """
        self._set_fault(name, OperationFault(lags=pool))

    def catch_up(self, cluster: ClusterId) -> None:
        """Upgrade the nodes that lag behind, as when an operator removes what blocked their drain."""
        with self._engine.lock:
            found = self._engine.cluster(cluster)
            found.lagging.clear()
            self._engine.report_nodes(found)

    def abort(self, cluster: ClusterId) -> None:
        """End the running operation as Canceled, as ``az aks operation-abort`` does."""
        with self._engine.lock:
            self._engine.complete_due()
            found = self._engine.cluster(cluster)
            if found.operation is None:
                return
            found.operation.status = "Canceled"
            pool = found.operation.pool
            found.operation = None
            if pool:
                found.pools[pool] |= {"provisioningState": "Canceled", "eTag": self._engine.schedule.unique()}
            else:
                self._engine.set_all_states(found, "Canceled")

    def stop(self, cluster: ClusterId) -> None:
        """Stop a cluster, as ``az aks stop`` does: only a start or a delete is allowed then.

        Raises ArmError, as while an operation runs there.
        """
        self._set_power(cluster, "Stopped")

    def start(self, cluster: ClusterId) -> None:
        """Start a stopped cluster again."""
        self._set_power(cluster, "Running")

    def scale(self, cluster: ClusterId, pool: str, count: int) -> None:
        """Set a pool's node count: without an autoscaler, somebody does that in the portal."""
        self._change_pool(cluster, pool, count=count)
        with self._engine.lock, self._engine.activity.called_by(SOMEBODY):
            if not self._engine.cluster(cluster).pools[pool].get("enableAutoScaling"):
                self._engine.send_event("update-pool", f"{cluster.resource}/agentPools/{pool}")

    def set_node_image(self, cluster: ClusterId, pool: str, image: str) -> None:
        """Set an older node image, as if a newer one had been released."""
        self._change_pool(cluster, pool, nodeImageVersion=image)

    def age_upgrade(self, cluster: ClusterId, pool: str, by: timedelta) -> None:
        """Let the last upgrade of a pool be so much longer ago."""
        with self._engine.lock:
            age_last(self._engine.cluster(cluster).pools[pool], by)

    def tag(self, cluster: ClusterId, name: str, value: str) -> None:
        """Start to set a tag of a cluster, as somebody does in the portal."""
        somebody = self._engine.activity.called_by(SOMEBODY)
        with somebody, self._engine.request(cluster.subscription, limits.ARM_WRITE, limits.ANY_OTHER) as now:
            found = self._engine.cluster(cluster)
            tags = {**(found.document.get("tags") or {}), name: str(value)}
            self._engine.update(found, {"tags": tags}, now)

    def delete(self, cluster: ClusterId) -> None:
        """Start to delete a cluster, as somebody does in the portal."""
        with self._engine.request(cluster.subscription, limits.ARM_DELETE, limits.ANY_OTHER) as now:
            found = self._engine.cluster(cluster)
            self._record(found, "delete", self._engine.start_delete(found, now))

    def _change_pool(self, cluster: ClusterId, pool: str, **change: object) -> None:
        with self._engine.lock:
            self._engine.complete_due()
            found = self._engine.cluster(cluster)
            found.pools[pool] |= {**change, "eTag": self._engine.schedule.unique()}
            self._engine.report_nodes(found)

    def _set_power(self, cluster: ClusterId, code: str) -> None:
        with self._engine.lock:
            self._engine.complete_due()
            found = self._engine.cluster(cluster)
            found.require_idle()
            self._engine.set_power(found, code)
            self._record(found, "stop" if code == "Stopped" else "start")

    def _record(self, cluster: ArmCluster, kind: str, operation: ArmOperation | None = None) -> None:
        """Record in the activity log what somebody did."""
        with self._engine.activity.called_by(SOMEBODY):
            self._engine.announce(kind, cluster.id.resource, operation)

    def _set_fault(self, name: str, fault: OperationFault) -> None:
        with self._engine.lock:
            self._engine.next_faults[name.lower()] = fault


def _documented(code: str) -> OperationFault:
    """Return the fault that a documented failure is; ValueError for an unknown name."""
    failure = failures().get(code.lower())
    if failure is None:
        raise ValueError(f"no source has {code}; give a message, or the code or name of a documented error")
    if failure.when == "request":
        return OperationFault(refusal=RecordedError(failure))
    more = {key: value for key, value in failure.body.items() if key not in ("code", "message")}
    return OperationFault(error=failure.error, more=more, of_delete=failure.when == "delete")
