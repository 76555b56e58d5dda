"""How operations on clusters and node pools end: states, versions, nodes and failures."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from localcloud.azure.world.arm_resources import (
    ArmCluster,
    ArmOperation,
    OperationFault,
)
from localcloud.azure.world.catalog import NODE_IMAGES, pool_version
from localcloud.azure.world.pools import rollbacks


def complete_pool(cluster: ArmCluster, operation: ArmOperation, etag: str, now: datetime) -> bool:
    """End an operation on a node pool; return whether the nodes of the cluster may have changed."""
    pool = cluster.pools[operation.pool]
    aborted = operation.kind == "abort-pool"
    set_state(pool, "Canceled" if aborted else operation.status, etag)
    if aborted:
        rollbacks.cancel(pool)
        return False
    vanishes = operation.fault.vanishes and not _is_last_system_pool(cluster, operation.pool)
    if operation.kind == "delete-pool" or vanishes:
        del cluster.pools[operation.pool]
        cluster.up.discard(operation.pool)
        cluster.lagging.pop(operation.pool, None)
    elif operation.error:
        pool["status"] = failure(operation)
        rollbacks.cancel(pool)
        return False
    else:
        if not rollbacks.is_complete(pool):
            move_version(cluster, operation.pool, operation.fault, now)
        if operation.kind == "upgrade-pool":
            rollbacks.remember(pool, now)
            pool["nodeImageVersion"] = NODE_IMAGES[-1]
        cluster.up.add(operation.pool)
    return True


def move_version(cluster: ArmCluster, name: str, fault: OperationFault, now: datetime) -> None:
    """Set a pool to its version, and its nodes too unless a fault makes them lag behind."""
    pool, control_plane = cluster.pools[name], cluster.properties["currentKubernetesVersion"]
    current = pool["currentOrchestratorVersion"]
    moved = pool_version(name, pool["orchestratorVersion"], control_plane, current)
    if fault.lags == name and moved != current:
        cluster.lagging[name] = current
    else:
        cluster.lagging.pop(name, None)
    if moved != current:
        rollbacks.remember(pool, now)
        pool |= {"currentOrchestratorVersion": moved, "nodeImageVersion": NODE_IMAGES[-1]}


def _is_last_system_pool(cluster: ArmCluster, name: str) -> bool:
    """Return whether a pool is the last System pool, which AKS does not delete."""
    return not any(p["mode"] == "System" for other, p in cluster.pools.items() if other != name)


def set_state(holder: dict[str, Any], state: str, etag: str = "") -> None:
    """Set the provisioning state, clear an earlier failure, and set the ETag when there is one."""
    holder["provisioningState"] = state
    holder.pop("status", None)
    if etag:
        holder["eTag"] = etag


def failure(operation: ArmOperation) -> dict[str, Any]:
    """Return how a cluster or pool shows that an operation on it failed."""
    code, message = operation.error or ("", "")
    return {"provisioningError": {"code": code, "message": message, **operation.fault.more}}
