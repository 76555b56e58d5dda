"""People who change what Flux applies, several times a day: good, broken, back, and less than before."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from shared.app.api.acts.rollout import act_on_rollout
from shared.language.pin import Pin
from shared.rollouts.rollout_acts import ActKind
from simulation.actors.kinds import PLATFORM
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.operators import Operators
from simulation.platforms import CHANGED, EDITIONS, INVALID, LESS, MORE, UNAPPLIED, UNBUILT, USUAL, WHOLE

ACTS = (4, 10)
BURSTS, PUSHES, SECONDS_BETWEEN = (0, 2), (2, 4), (5, 150)
"""How often somebody merges several good commits, how many, and how soon after each other: within a soak."""
LOOKS, MOST_LOOKS = 20, 60
"""How often somebody looks whether a cluster has what is tried, in seconds, and how often at most."""
NEXT = (USUAL, CHANGED, *(WHOLE,) * 5, UNAPPLIED, UNBUILT, INVALID)
REVERTS, WITH_A_MANIFEST, APPROVES, REMOVES = 0.2, 0.3, 0.2, 0.3


class PlatformTeam(ActorUpkeep):
    """They act on all fleets; some of their commits change a manifest, too."""

    kind = PLATFORM

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._trials = self._stream("what is tried")

    def schedule(self, seconds: float) -> None:
        """Let them push at some moments of so many seconds."""
        self._at_times(ACTS, seconds, self._act)
        self._at_times(BURSTS, seconds, self.burst)

    def check(self) -> None:
        """Change the platform once more, without a fault."""
        for operators in self._everybody:
            self._push(operators, CHANGED if operators.now.platform == WHOLE else WHOLE)

    def _act(self) -> None:
        operators = self._chance.choice(self._everybody)
        if self._chance.random() < APPROVES:
            operators.approve()
        elif self._chance.random() < REVERTS and len(operators.history.head_line) > 1:
            self._push(operators, operators.history.desired(operators.history.head_before).platform)
        else:
            removes = self._chance.random() < REMOVES
            self._push(operators, self._chance.choice([*LESS] if removes else NEXT))

    def burst(self) -> None:
        """Merge several good commits into a fleet, faster than its stages soak."""
        operators, seconds = self._chance.choice(self._everybody), 0.0
        for edition in self._chance.sample(EDITIONS, self._chance.randint(*PUSHES)):
            self._loop.schedule(seconds, partial(self._push, operators, edition))
            seconds += self._chance.uniform(*SECONDS_BETWEEN)

    def try_more(self) -> None:
        """Merge what the first clusters alone are to have, and then what lacks it: they need an approval."""
        operators = self._trials.choice(self._everybody)
        self._push(operators, MORE)
        commit, edition = operators.history.head_line[-1], self._trials.choice(EDITIONS)
        self._loop.schedule(LOOKS, partial(self._give_up, operators, commit, edition))

    def _give_up(self, operators: Operators, commit: str, edition: str, looks: int = 1) -> None:
        """Abort a rollout once a cluster has its commit, and merge another one."""
        pins = ((found, Pin.of(found.document)) for found in operators.cloud.state.clusters())
        has = any(found.ready and pin and pin.commit == commit for found, pin in pins)
        if looks < MOST_LOOKS and not has:
            again = partial(self._give_up, operators, commit, edition, looks + 1)
            self._loop.schedule(LOOKS, again)
            return
        self._loop.log("%s: an abort of %s", operators.fleet, commit[:8])
        act = partial(act_on_rollout, commit, ActKind.ABORT, "", "somebody", reason="a trial")
        self._loop.run_function(operators.cloud, act)
        self._loop.schedule(LOOKS, partial(self._push, operators, edition))

    def _push(self, operators: Operators, platform: str) -> None:
        self.acts += 1
        desired = replace(operators.now, platform=platform)
        if desired.clusters and self._chance.random() < WITH_A_MANIFEST:
            cluster = self._chance.choice([*desired.clusters.values()])
            desired = desired.with_cluster(replace(cluster, tag=self._chance.choice("lmn")))
        self._loop.log("%s: the platform is %s", operators.fleet, platform)
        operators.push(desired)
