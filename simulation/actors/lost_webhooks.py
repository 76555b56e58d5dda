"""Webhooks that never come once the faults have ended: a timer finds each head, and it is planned."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

from simulation.actors.kinds import LOST_WEBHOOKS
from simulation.actors.upkeep import ActorUpkeep
from simulation.operators import Operators
from simulation.rule import RuleViolated

ACTS = (2, 6)
ROUNDS, BURST = (3, 6), (1, 1, 2, 3)
LOST = 0.5
FOUND = timedelta(hours=1)
"""By then the timer has found a head that nobody announced, and it is planned."""


class LostWebhooks(ActorUpkeep):
    """Commits of each fleet of which some are announced; ``acts`` counts the others."""

    kind = LOST_WEBHOOKS

    def schedule(self, seconds: float) -> None:
        """Let commits that nobody announces come at some moments of so many seconds."""
        self._in_fleets(ACTS, seconds, partial(self._commit, silent=True))

    def check(self) -> None:
        """Push some commits at a time, and see after each time that the head was planned."""
        for operators in self._everybody:
            if operators.cloud in self._loop.clouds:
                for _ in range(self._chance.randint(*ROUNDS)):
                    self._push(operators)

    def _push(self, operators: Operators) -> None:
        """Push some commits at once, all of them or the earlier ones without a webhook, or none."""
        lost = self._chance.random() < LOST
        for earlier in reversed(range(self._chance.choice(BURST))):
            silent = lost or (earlier > 0 and self._chance.random() < LOST)
            self._commit(operators, silent=silent)
        self._loop.run_until(self._loop.clock() + FOUND, done=lambda: self._loop.idle)
        fleet, head = operators.cloud.state.fleet(), operators.history.head_line[-1]
        if fleet.commit != head:
            raise RuleViolated("lost work", f"{operators.fleet}: {head[:8]} is not planned")

    def _commit(self, operators: Operators, *, silent: bool) -> None:
        self.acts += silent
        now = operators.now
        operators.push(replace(now, note=now.note + 1), announced=not silent)
