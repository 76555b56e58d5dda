"""The bodies of the PUTs that a cluster or a pool needs; None for none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.fleet.azure import cluster_write
from shared.fleet.azurepools import new_pool_write, pool_write
from shared.fleet.desired import Desired
from shared.fleet.manifests import NodePool
from shared.fleet.ownership import Owner

Json = Mapping[str, Any]


def cluster_body(desired: Desired, owner: Owner, existing: Json | None) -> dict[str, Any] | None:
    """Return the body of the cluster's PUT."""
    write = cluster_write(desired, owner, existing)
    return write.body if write else None


def pool_body(pool: NodePool, desired: Desired, owner: Owner, existing: Json | None) -> dict[str, Any] | None:
    """Return the body of the pool's PUT."""
    if existing is None:
        return new_pool_write(pool, owner, pool.name).body
    write = pool_write(pool, desired, owner, existing)
    return write.body if write else None
