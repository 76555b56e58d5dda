"""A cluster as git asks for it and as Azure makes it, and the bodies of the PUTs between the two."""

from __future__ import annotations

from typing import Any

from localcloud.azure.world.azure_ports import WorldAzure
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.azure.cluster_body import cluster_write, group_body
from shared.azure.node_pools.body import new_pool_write, pool_write
from shared.azure.ownership import OwnerTags
from shared.json_tree import Json
from shared.language.desired import Desired, stored_form
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.ports.azure import GetCluster, PutCluster, PutGroup, PutPool

OWNER = OwnerTags("example", "Example/fleet", "one")


def desired(**fields: Any) -> Desired:
    """Return a cluster as a commit asks for it, with some fields of its spec (names as in the manifest)."""
    spec = {
        "subscriptionId": "00000000-0000-0000-0000-000000000001",
        "resourceGroup": "rg-one",
        "location": "eastus",
        "kubernetesVersion": "1.36",
        "nodePools": [pool()],
        "flux": {"repository": "https://github.com/example/fleet", "path": "./platform"},
    }
    return Desired(stored_form("one", ClusterSpec.model_validate(spec | fields), "blob"))


def pool(**fields: Any) -> dict[str, Any]:
    """Return a node pool of a spec, the system pool unless its fields say otherwise."""
    return {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1} | fields


def created(cluster: Desired, *, only_first: bool = False) -> dict[str, Any]:
    """Return the cluster as Azure shows it after its creation; ``only_first``: after the PUT of the cluster.

    What does not come with the cluster follows by the PUTs of its pools.
    """
    clock = ManualClock()
    world = AzureWorld(clock, plane=NullPlane())
    azure = WorldAzure(world)
    azure.call(PutGroup(cluster.id.group, group_body(cluster, OWNER)))
    body = cluster_body(cluster, OWNER, None)
    assert body is not None
    azure.call(PutCluster(cluster.id, body, etag=None, only_new=True))
    clock.advance(60)
    for pool in () if only_first else cluster.spec.node_pools:
        for _ in range(2):  # a stop is a write of its own, after what else is late
            profile = _profile(azure, cluster, pool.name)
            late = pool_body(pool, cluster, OWNER, profile)
            if late is None:
                break
            azure.call(PutPool(cluster.id, pool.name, late, etag=str(profile["eTag"]) if profile else None))
            clock.advance(60)
    live = azure.call(GetCluster(cluster.id))
    assert live is not None
    return dict(live)


def _profile(azure: WorldAzure, cluster: Desired, name: str) -> Json | None:
    live = azure.call(GetCluster(cluster.id))
    assert live is not None
    profiles: list[Json] = live["properties"]["agentPoolProfiles"]
    return next((profile for profile in profiles if profile["name"] == name), None)


def cluster_body(desired: Desired, owner: OwnerTags, existing: Json | None) -> dict[str, Any] | None:
    """Return the body of the cluster's PUT; None for none."""
    write = cluster_write(desired, owner, existing)
    return write.body if write else None


def pool_body(
    pool: NodePool, desired: Desired, owner: OwnerTags, existing: Json | None
) -> dict[str, Any] | None:
    """Return the body of the pool's PUT; None for none."""
    if existing is None:
        return new_pool_write(pool, owner, pool.name).body
    write = pool_write(pool, desired, owner, existing)
    return write.body if write else None


def bodies(cluster: Desired, live: Json) -> list[dict[str, Any]]:
    """Return the bodies of every PUT that a cluster and its pools need; all pools exist."""
    profiles = {profile["name"]: profile for profile in live["properties"]["agentPoolProfiles"]}
    pools = [pool_body(wanted, cluster, OWNER, profiles[wanted.name]) for wanted in cluster.spec.node_pools]
    return [body for body in (cluster_body(cluster, OWNER, live), *pools) if body is not None]


def window(**changes: Any) -> dict[str, Any]:
    """Return the body of a PUT of a maintenance configuration."""
    weekly = {"weekly": {"intervalWeeks": 1, "dayOfWeek": "Sunday"}}
    whole = {"schedule": weekly, "durationHours": 4, "startTime": "01:00", **changes}
    return {"properties": {"maintenanceWindow": whole}}
