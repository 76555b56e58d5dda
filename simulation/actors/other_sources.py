"""A team that changes what one cluster pulls from elsewhere: a git repository of its own, or an artifact."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from localcloud.git.world.memory_repository import MemoryRepository
from localcloud.memory.memory_cloud import TIMER_SECONDS
from simulation.actors.upkeep import ActorUpkeep
from simulation.desired_state import RequestedFleet
from simulation.event_loop import EventLoop
from simulation.followed_sources import ARTIFACT, REPOSITORY, SourceHistory
from simulation.operators import Operators
from simulation.platforms import (
    CHANGED,
    INVALID,
    LESS,
    UNAPPLIED,
    UNBUILT,
    USUAL,
    WHOLE,
    artifact_files,
    platform_files,
)

OTHER_SOURCES = "other-sources"
ACTS = (2, 6)
NEXT = (USUAL, CHANGED, *(WHOLE,) * 4, *LESS, UNAPPLIED, UNBUILT, INVALID)


class OtherSources(ActorUpkeep):
    """They act on the first fleet, where there is only one; no commit of it says what they do."""

    def __init__(self, seed: int, everybody: Iterable[Operators], loop: EventLoop) -> None:
        super().__init__(OTHER_SOURCES, seed, everybody, loop)
        self._times = random.Random(f"{seed} when other sources change")  # noqa: S311
        operators = self._everybody[0]
        self._cloud = operators.cloud
        self._source = SourceHistory(self._chance.choice((ARTIFACT, REPOSITORY, REPOSITORY)))
        name = self._chance.choice(operators.names)
        self._repository = MemoryRepository(loop.clock)
        self._repository.id = 2
        if len(self._everybody) == 1:
            operators.history.sources[name] = self._source
            self._cloud.others[REPOSITORY] = self._repository
            self._push(USUAL)

    def prepared(self, wanted: RequestedFleet) -> RequestedFleet:
        """Return a fleet with a cluster that pulls from another place."""
        sources = self._everybody[0].history.sources
        return replace(wanted, sources={name: source.place_of for name, source in sources.items()})

    def schedule(self, seconds: float) -> None:
        """Let them push at some moments of so many seconds."""
        for _ in range(self._chance.randint(*ACTS) if len(self._everybody) == 1 else 0):
            self._loop.schedule(self._times.uniform(0, seconds), self._act)

    def check(self) -> None:
        """Push what all can apply, and let the app see it."""
        if len(self._everybody) == 1:
            self._push(WHOLE)
            self._loop.run_until(self._loop.clock() + timedelta(seconds=2 * TIMER_SECONDS))

    def _act(self) -> None:
        self.acts += 1
        self._push(self._chance.choice(NEXT))

    def _push(self, platform: str) -> None:
        self._loop.log("%s: %s has %s", self._everybody[0].fleet, self._source.place_of, platform)
        if self._source.is_artifact:
            commit = self._cloud.stores.push("platform", "stable", artifact_files(platform))
        else:
            commit = self._repository.push(platform_files(platform), message=f"{self.acts}")
        self._source.moved(commit, platform)
