"""The node pools that stop where a cluster sleeps in pools. Pure.

Source: learn.microsoft.com/azure/aks/start-stop-nodepools. AKS stops no System pool. Spot pools stop, too. A
pool that starts has as many nodes as before, and its autoscaler goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.azure.changes.writes import pool_is_stopped
from shared.azure.node_pools.replacement import serving
from shared.azure.ownership import Owner
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.model.node_pool import NodePool


def sleepers(desired: Desired, owner: Owner, live: Json) -> list[tuple[NodePool, Json]]:
    """Return the pools that sleep with a cluster, each with what Azure has of it.

    These are ours and User pools, and the manifest has them run.
    """
    mine = serving(_profiles(live), owner)
    return [
        (pool, profile)
        for pool in desired.spec.node_pools
        if pool.mode == "User" and not pool.stopped
        for profile in mine.get(pool.name, ())
        if owner.owns(profile)
    ]


def some_pool_runs(owner: Owner, live: Json) -> bool:
    """Return whether a User pool of ours runs, for a list that is compared without any manifest."""
    users = (profile for profile in _profiles(live) if profile.get("mode") == "User")
    return any(owner.owns(profile) and not pool_is_stopped(profile) for profile in users)


def _profiles(live: Json) -> Sequence[Json]:
    return live["properties"].get("agentPoolProfiles") or ()
