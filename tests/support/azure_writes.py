"""The writes that bring a cluster to a spec, one after the other, as the steps send them."""

from __future__ import annotations

from shared.azure.cluster_body import cluster_write, group_body
from shared.azure.node_pools.body import new_pool_write, pool_write
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.ports.azure import GetCluster, PutCluster, PutGroup, PutPool
from tests.support.arm_bodies import OWNER
from tests.support.azure_ports import Azure


def put(azure: Azure, wanted: Desired) -> list[Json]:
    """Write until Azure shows what is wanted, as the steps do; return the bodies."""
    bodies = list[Json]()
    azure.call(PutGroup(wanted.id.group, group_body(wanted, OWNER)))
    while True:
        live = azure.call(GetCluster(wanted.id))
        write = cluster_write(wanted, OWNER, live)
        if write is not None:
            etag = str(live["eTag"]) if live else None
            azure.call(PutCluster(wanted.id, write.body, etag=etag, only_new=live is None))
            bodies.append(write.body)
        elif (late := _pool(wanted, live)) is not None:
            azure.call(late)
            bodies.append(late.body)
        else:
            return bodies
        assert len(bodies) < 6, "Azure does not show what was written"
        azure.clock.advance(60)


def _pool(wanted: Desired, live: Json | None) -> PutPool | None:
    assert live is not None
    profiles = {profile["name"]: profile for profile in live["properties"]["agentPoolProfiles"]}
    for pool in wanted.spec.node_pools:
        profile = profiles.get(pool.name)
        if profile is None:
            new = new_pool_write(pool, OWNER, pool.name)
            return PutPool(wanted.id, pool.name, new.body, etag=None, only_new=True)
        write = pool_write(pool, wanted, OWNER, profile)
        if write is not None:
            return PutPool(wanted.id, pool.name, write.body, etag=profile["eTag"])
    return None
