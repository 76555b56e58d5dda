"""A team that changes what one cluster pulls from elsewhere: a git repository of its own, or an artifact."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from localcloud.git.world.memory_repository import MemoryRepository
from localcloud.memory.memory_cloud import TIMER_SECONDS
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.desired_state import RequestedFleet
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
    """They act where there is one fleet; no commit of it says what they do."""

    kind = OTHER_SOURCES
    in_one_fleet = True

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._times = self._stream("when other sources change")
        self._cloud, history = self._operators.cloud, self._operators.history
        self._source = SourceHistory(self._chance.choice((ARTIFACT, REPOSITORY, REPOSITORY)))
        self._repository = MemoryRepository(self._loop.clock)
        self._repository.id = 2
        history.sources[self._chance.choice(self._operators.names)] = self._source
        self._cloud.others[REPOSITORY] = self._repository
        self._push(USUAL)

    def prepared(self, operators: Operators, wanted: RequestedFleet) -> RequestedFleet:
        """Return a fleet with a cluster that pulls from another place."""
        sources = operators.history.sources
        return replace(wanted, sources={name: source.place_of for name, source in sources.items()})

    def schedule(self, seconds: float) -> None:
        """Let them push at some moments of so many seconds."""
        for _ in range(self._chance.randint(*ACTS)):
            self._loop.schedule(self._times.uniform(0, seconds), self._act)

    def check(self) -> None:
        """Push what all can apply, and let the app see it."""
        self._push(WHOLE)
        self._loop.run_until(self._loop.clock() + timedelta(seconds=2 * TIMER_SECONDS))

    def _act(self) -> None:
        self.acts += 1
        self._push(self._chance.choice(NEXT))

    def _push(self, platform: str) -> None:
        self._loop.log("%s: %s has %s", self._operators.fleet, self._source.place_of, platform)
        if self._source.is_artifact:
            commit = self._cloud.stores.push("platform", "stable", artifact_files(platform))
        else:
            commit = self._repository.push(platform_files(platform), message=f"{self.acts}")
        self._source.moved(commit, platform)
