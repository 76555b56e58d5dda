"""Which pools in Azure serve which pools of the manifest, what to do with each next, and which of them sleep.

A pool whose fixed properties changed is replaced: Roadstead creates a second pool under another name and with
the tag ``roadstead-pool``, drains the first, then removes it. So a pool of the manifest has one pool in
Azure, or two while it is being replaced. Every decision depends on the state of Azure alone, and can be
repeated. A pool without our tags serves only where none of ours does, and is adopted before it is replaced.

Where a cluster sleeps in pools (learn.microsoft.com/azure/aks/start-stop-nodepools), AKS stops no System
pool. Spot pools stop, too. A pool that starts has as many nodes as before, and its autoscaler goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_lowercase

from shared.azure.changes.comparison import Leaf
from shared.azure.changes.writes import last_write_failed, pool_is_stopped, profiles_of
from shared.azure.node_pools.body import fixed_leaves
from shared.azure.ownership import OwnerTags
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.model.node_pool import NodePool

LINUX_NAME, WINDOWS_NAME = 12, 6
"""The longest name of a node pool: learn.microsoft.com/azure/aks/create-node-pools."""
DRAIN_MINUTES = 30
"""How long a drain may take by default: as long as AKS allows for an upgrade (drainTimeoutInMinutes)."""


@dataclass(frozen=True)
class Create:
    """No pool in Azure serves the manifest's pool: create one under this name."""

    name: str


@dataclass(frozen=True)
class Keep:
    """One pool in Azure serves the manifest's pool: write it where it differs."""

    profile: Json


@dataclass(frozen=True)
class Replace:
    """The pool in Azure cannot be changed to the desired one: create a second pool under this name."""

    old: Json
    name: str
    reason: str


@dataclass(frozen=True)
class Retire:
    """Two pools serve the manifest's pool: once ``remaining`` has its nodes, drain ``old`` and remove it.

    ``misfit`` names the desired fields that neither of them can take; "" when ``remaining`` fits.
    """

    old: Json
    remaining: Json
    misfit: str = ""


Stage = Create | Keep | Replace | Retire


def serving(profiles: Iterable[Json], owner: OwnerTags) -> dict[str, list[Json]]:
    """Return the pools in Azure by the pool of the manifest that they serve, or would serve."""
    pools: dict[str, list[Json]] = {}
    for profile in profiles:
        pools.setdefault(owner.pool_of(profile), []).append(profile)
    return {
        name: [document for document in mine if owner.owns(document)] or mine for name, mine in pools.items()
    }


def stage_of(
    pool: NodePool, desired: Desired, owner: OwnerTags, mine: Sequence[Json], taken: Iterable[str]
) -> Stage:
    """Return what to do next with a pool of the manifest.

    ``mine`` are the pools in Azure that serve it; ``taken`` are the names that a new pool cannot have.
    """
    names = set(taken)
    if not mine:
        return Create(_free(pool, names))
    fixed = [fixed_leaves(pool, desired, owner, profile) for profile in mine]
    fitting = [profile for profile, leaves in zip(mine, fixed, strict=True) if not leaves]
    if len(mine) == 1:
        if fitting:
            return Keep(mine[0])
        return Replace(mine[0], _free(pool, names), _described(fixed[0]))
    # Where both fit, or neither, one is removed first: the one that Azure could not create, or the one with
    # the other name. Where neither fits, the remaining one is replaced afterwards.
    candidates = fitting or mine
    remaining = min(
        candidates, key=lambda profile: (last_write_failed(profile), profile["name"] != pool.name)
    )
    misfit = "" if fitting else _described(fixed[mine.index(remaining)])
    return Retire(next(profile for profile in mine if profile is not remaining), remaining, misfit)


def drain_minutes(profile: Json) -> int:
    """Return after how many minutes in which no pod leaves the drain of a pool fails."""
    settings = profile.get("upgradeSettings") or {}
    return int(settings.get("drainTimeoutInMinutes") or DRAIN_MINUTES)


def _described(leaves: Iterable[Leaf]) -> str:
    return ", ".join(f"{leaf} from {leaf.shown_old} to {leaf.new}" for leaf in leaves)


def _free(pool: NodePool, taken: set[str]) -> str:
    """Return the manifest's name for a pool, or a similar one that is free."""
    if pool.name not in taken:
        return pool.name
    longest = WINDOWS_NAME if pool.os_type == "Windows" else LINUX_NAME
    ends = (*ascii_lowercase[1:], *(a + b for a in ascii_lowercase for b in ascii_lowercase))
    names = (pool.name[: longest - len(end)] + end for end in ends)
    free: str = next(name for name in names if name not in taken)
    return free


def sleepers(desired: Desired, owner: OwnerTags, live: Json) -> list[tuple[NodePool, Json]]:
    """Return the pools that sleep with a cluster, each with what Azure has of it.

    These are ours and User pools, and the manifest has them run.
    """
    mine = serving(profiles_of(live), owner)
    return [
        (pool, profile)
        for pool in desired.spec.node_pools
        if pool.mode == "User" and not pool.stopped
        for profile in mine.get(pool.name, ())
        if owner.owns(profile)
    ]


def some_pool_runs(owner: OwnerTags, live: Json) -> bool:
    """Return whether a User pool of ours runs, for a list that is compared without any manifest."""
    users = (profile for profile in profiles_of(live) if profile.get("mode") == "User")
    return any(owner.owns(profile) and not pool_is_stopped(profile) for profile in users)
