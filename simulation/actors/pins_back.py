"""Operators who abort a rollout and have the pins go back that it has moved, also long after an abort."""

from __future__ import annotations

from functools import partial

from shared.app.api.acts.rollout import act_on_rollout
from shared.ports import Ports
from shared.rollouts.rollout_acts import ActKind
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.operators import Operators

PINS_BACK = "pins-back"
ACTS = (1, 5)
ABORTS = 0.4
"""How many leave the pins where they are."""
ACCEPTED = 202


class PinsBack(ActorUpkeep):
    """They act on all fleets; those who see to rollouts push a commit at the end that takes all along."""

    kind = PINS_BACK

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._times = self._stream("when pins go back")

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds."""
        for _ in range(self._chance.randint(*ACTS)):
            self._loop.schedule(self._times.uniform(0, seconds), self._act)

    def _act(self) -> None:
        operators = self._chance.choice(self._everybody)
        commit = operators.cloud.state.fleet().rollout
        if commit:
            self.acts += 1
            act = self._abort if self._chance.random() < ABORTS else partial(self._back, operators)
            self._loop.log("%s: an abort of %s", operators.fleet, commit[:8])
            self._loop.run_function(operators.cloud, partial(act, commit))

    def _abort(self, commit: str, ports: Ports) -> None:
        act_on_rollout(commit, ActKind.ABORT, "", "somebody", ports, reason="an emergency")

    def _back(self, operators: Operators, commit: str, ports: Ports) -> None:
        """Ask for it, and note what was not refused; a host that dies may have asked before."""
        noted = commit in operators.history.taken_back
        operators.history.taken_back.add(commit)
        answer = act_on_rollout(commit, ActKind.BACK, "", "somebody", ports, reason="an emergency")
        if answer.status != ACCEPTED and not noted:
            operators.history.taken_back.discard(commit)
