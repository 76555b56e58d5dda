"""The rollback of a node pool in its step: Azure's conditions are read right before the one write.

A rollback whose conditions are not met holds this pool and says which ones fail. It reads them again later; a
commit that takes the rollback back, or that meets them, continues.
"""

from __future__ import annotations

from shared.app.access.azure_state import OBSERVE_SECONDS
from shared.app.access.context import StepContext
from shared.azure.changes.writes import PlannedWrite
from shared.azure.node_pools.rollback import (
    Versions,
    asked_for,
    is_pending,
    recently_used,
    rollback_write,
    runs,
    unmet,
)
from shared.cluster.outcomes import Wait
from shared.json_tree import Json
from shared.language.model.node_pool import NodePool
from shared.ports.azure import GetPoolUpgradeProfile


def rollback_of(
    context: StepContext, live: Json, pool: NodePool, profile: Json
) -> PlannedWrite | Wait | None:
    """Return the write that rolls a pool back, the wait while it may not, None where there is none."""
    target = asked_for(pool)
    if target is None or not is_pending(target, profile):
        return None
    if not runs(target, profile):
        hold = _hold(context, live, pool, profile, target)
        if hold:
            return hold
    return rollback_write(target, profile)


def _hold(context: StepContext, live: Json, pool: NodePool, profile: Json, target: Versions) -> Wait | None:
    name = str(profile["name"])
    listed = recently_used(context.azure(GetPoolUpgradeProfile(context.cluster, name)))
    found = unmet(
        pool.name,
        target,
        listed,
        live,
        profile,
        oldest_image=context.desired.spec.min_node_image_version or "",
        now=context.ports.clock(),
    )
    if not found:
        return None
    problems = "; ".join(requirement.problem for requirement in found)
    remedies = "; ".join(dict.fromkeys(requirement.remedy for requirement in found))
    return Wait(
        OBSERVE_SECONDS,
        f"the node pool {name} is not rolled back: {problems}",
        action_required=f"Take rollback out of the pool {pool.name} in git, or: {remedies}.",
        open_ended=True,
    )
