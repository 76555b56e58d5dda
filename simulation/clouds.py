"""The clouds of a seed: one for each fleet, with the settings of its app."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import datetime

from localcloud.azure.world.access.directory import FUNCTION_APP
from localcloud.azure.world.event_grid import Event
from localcloud.common.clock import ManualClock
from localcloud.kubernetes.world.controllers import Delays
from localcloud.memory.memory_cloud import MemoryCloud
from shared.kubernetes.flux_objects import GitCredentials
from shared.ports import FleetConfig, PlanLimits, Timing
from shared.resource_ids import GroupId
from simulation.invariants.end import SECRET
from simulation.invariants.hand_overs import SMALL_CHANGES
from simulation.observed_ports import ObservedState
from simulation.operators import NAMES

CRD_SECONDS = (0.2, 0.2, 15.0, 90.0)
"""Until a custom resource definition is established."""
HAND_OVERS = ((40, 60.0), (1, 0.0), (2, 0.0), (1, 60.0))
"""How many clusters are handed over at a time, and the seconds after which a message continues."""
WITH_IDS = 0.7
OF_THE_APPS = "00000000-0000-0000-0000-000000000002"
"""The subscription of the apps: what an instance reads there takes no token of the others."""
UNHEALTHY_SECONDS = 60.0


def clouds_of(
    states: Sequence[ObservedState],
    chance: random.Random,
    seed: int,
    *,
    with_ids: bool = False,
    one_repository: bool = False,
    began: datetime | None = None,
) -> list[MemoryCloud]:
    """Return a cloud for each state; the clouds share time, Azure and the clusters.

    ``one_repository``: a second fleet is a branch, with its name, of the repository of the first.
    ``began`` is the virtual time of the beginning, None for the usual one.
    ``with_ids``: in some seeds their apps have ids that outlive their tables.
    """
    ids = with_ids and random.Random(f"{seed} ids").random() < WITH_IDS  # noqa: S311
    hand_overs = random.Random(f"{seed} hand-overs").choice(HAND_OVERS)  # noqa: S311
    small_change = random.Random(f"{seed} small changes").choice(SMALL_CHANGES)  # noqa: S311
    clouds: list[MemoryCloud] = []
    delays = Delays(crd=chance.choice(CRD_SECONDS))
    for name, state in zip(("north", "south"), states, strict=False):
        first = clouds[0] if clouds else None
        shared = first if one_repository else None
        config = FleetConfig(
            name,
            shared.ports.config.repository if shared else f"example/{name}",
            branch=name if shared else "main",
            installation=f"{name}-the-app" if ids else "",
            app_group=GroupId(OF_THE_APPS, f"rg-{name}"),
            git_credentials=GitCredentials("flux", SECRET, host="github.com"),
            limits=PlanLimits(
                handover_clusters=hand_overs[0], handover_seconds=hand_overs[1], small_change=small_change
            ),
            timing=Timing(unhealthy_seconds=UNHEALTHY_SECONDS),
            principals=frozenset((FUNCTION_APP.id,)),
        )
        cloud = MemoryCloud(
            seed=chance.getrandbits(32),
            config=config,
            state=state,
            peer=first,
            repository=shared.repository if shared else None,
            delays=delays,
            lock_seconds=60,
            clock=ManualClock(began) if began else None,
        )
        clouds.append(cloud)
    return clouds


def hear_events(clouds: Sequence[MemoryCloud], seed: int, *, peaceful: Callable[[], bool]) -> None:
    """Let Azure send events: while there are faults also late, twice, out of order, or not at all."""
    chance = random.Random(f"{seed} azure events")  # noqa: S311

    def fate(_: Event) -> Sequence[float]:
        if peaceful():
            return (chance.uniform(0, 10),)
        return [chance.choice((0, 5, 60, 1800)) * chance.random() for _ in range(chance.choice((0, 1, 1, 2)))]

    clouds[0].azure.engine.grid.fate = fate
    for cloud in clouds:
        cloud.hear_events()


def names_of(fleets: int) -> tuple[tuple[str, ...], ...]:
    """Return the names of the clusters of each fleet; two fleets share one."""
    return (NAMES,) if fleets == 1 else (NAMES[:2], NAMES[1:3])
