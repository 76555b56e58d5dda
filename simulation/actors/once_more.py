"""What has in common who acts once more when the faults have ended: a wait for the end, and a comparison."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from localcloud.azure.world.arm_keys import key_of
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from simulation.event_loop import EventLoop
from simulation.operators import Operators, cluster_id

QUIET = timedelta(hours=4)
ROUNDS = 8


class OnceMore:
    """Somebody who acts on a fleet that has come to rest, in a ``share`` of the seeds; ``acts`` counts that.

    ``replaced`` counts how often the tables of a fleet were lost.
    """

    def __init__(
        self,
        stream: str,
        share: float,
        everybody: Sequence[Operators],
        loop: EventLoop,
        replaced: Mapping[str, int],
    ) -> None:
        self._chance = random.Random(stream)  # noqa: S311
        self._everybody, self._loop, self._replaced = everybody, loop, replaced
        self._acting = self._chance.random() < share
        self.acts = 0

    def _is_as_asked(self, operators: Operators, record: ClusterRecord) -> bool:
        asked, key = operators.now.clusters.get(record.name), key_of(record.desired.id)
        if asked is None or asked.invalid or asked.suspended or asked.adopt:
            return False
        ready = record.phase is Phase.READY and record.observed_generation == record.generation
        return ready and not operators.oracle.differences(operators.fleet, asked, key)

    def _let_go_on(self, resolve: Callable[[], None], done: Callable[[], bool]) -> None:
        """Let everything come to its end, and somebody decide what waits for that, until it is ``done``."""
        for _ in range(ROUNDS):
            self._idle()
            if done():
                return
            resolve()
        self._idle()

    def _idle(self) -> None:
        self._loop.run_until(self._loop.clock() + QUIET, done=lambda: self._loop.idle)

    def _waiting(self, operators: Operators, before: Sequence[ClusterRecord]) -> set[str]:
        """Return the clusters that are not as the newest commit asks."""
        state = operators.cloud.state
        found = {record.name: state.cluster(record.name) for record in before}
        return {
            name
            for name, record in found.items()
            if record is None
            or operators.oracle.differences(operators.fleet, operators.now.clusters[name], cluster_id(name))
        }

    def _has_failed(self, operators: Operators, but: str = "") -> bool:
        """Return whether a cluster has failed, which has reasons of its own."""
        return any(record.failed and record.name != but for record in operators.cloud.state.clusters())
