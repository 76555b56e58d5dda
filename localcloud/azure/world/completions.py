"""How operations on clusters and node pools end: states, versions, nodes and failures."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from localcloud.azure.world.arm_resources import (
    ArmCluster,
    ArmOperation,
    OperationFault,
)
from localcloud.azure.world.catalog import NODE_IMAGES, cluster_version, pool_version
from localcloud.azure.world.clusters.credentials import has_entra
from localcloud.azure.world.pools import rollbacks
from localcloud.azure.world.pools.aks_nodes import nodes_of

if TYPE_CHECKING:
    from localcloud.azure.world.azure_engine import AzureEngine


def complete_cluster(
    engine: AzureEngine, cluster: ArmCluster, operation: ArmOperation, now: datetime
) -> None:
    """End an operation on a cluster: its states, its power, its versions and its nodes."""
    engine.set_all_states(cluster, "Canceled" if operation.kind == "abort" else operation.status)
    if operation.error:
        cluster.properties["status"] = _failure(operation)
        return
    if operation.kind in ("stop", "start"):
        engine.set_power(cluster, "Stopped" if operation.kind == "stop" else "Running")
    if operation.kind in ("stop", "start", "abort"):
        return
    properties = cluster.properties
    version = cluster_version(
        cluster.id.name, properties["kubernetesVersion"], properties["currentKubernetesVersion"]
    )
    properties["currentKubernetesVersion"] = version
    for name in cluster.pools:
        _move_version(cluster, name, operation.fault, now)
    cluster.up = set(cluster.pools)
    if cluster.kubeconfig:
        engine.report_nodes(cluster)
    else:
        cluster.kubeconfig = engine.plane.start(cluster.id, nodes_of(cluster))
    engine.plane.set_entra(cluster.id, on=has_entra(properties))


def complete_pool(engine: AzureEngine, cluster: ArmCluster, operation: ArmOperation, now: datetime) -> None:
    """End an operation on a node pool."""
    pool = cluster.pools[operation.pool]
    aborted = operation.kind == "abort-pool"
    set_state(pool, "Canceled" if aborted else operation.status, engine.schedule.unique())
    if aborted:
        rollbacks.cancel(pool)
        return
    vanishes = operation.fault.vanishes and not _is_last_system_pool(cluster, operation.pool)
    if operation.kind == "delete-pool" or vanishes:
        del cluster.pools[operation.pool]
        cluster.up.discard(operation.pool)
        cluster.lagging.pop(operation.pool, None)
    elif operation.error:
        pool["status"] = _failure(operation)
        rollbacks.cancel(pool)
        return
    else:
        if not rollbacks.is_complete(pool):
            _move_version(cluster, operation.pool, operation.fault, now)
        if operation.kind == "upgrade-pool":
            rollbacks.remember(pool, now)
            pool["nodeImageVersion"] = NODE_IMAGES[-1]
        cluster.up.add(operation.pool)
    engine.report_nodes(cluster)


def _move_version(cluster: ArmCluster, name: str, fault: OperationFault, now: datetime) -> None:
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


def _failure(operation: ArmOperation) -> dict[str, Any]:
    code, message = operation.error or ("", "")
    return {"provisioningError": {"code": code, "message": message, **operation.fault.more}}
