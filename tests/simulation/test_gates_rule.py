"""The rule about the time of a gate: it is over once for a commit, though its stage starts clusters later."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.rollouts.rollout import Group, Member, Rollout, Stage
from simulation.desired_state import RequestedFleet
from simulation.event_loop import EventLoop
from simulation.history import AzureHistory, FleetHistory
from simulation.invariants.context import Context
from simulation.invariants.staged_starts import RolloutRules
from simulation.oracle import Oracle
from simulation.rule import RuleViolated
from simulation.staging import StagedGroup, StagedStage

COMMIT, NEWER = "c" * 40, "d" * 40
MINUTES = 10
SECOND = StagedStage("second", ("b", "c"), (StagedGroup(0, 2, 2),), after=MINUTES)


class Fleet:
    """A fleet whose second stage waits for some minutes."""

    def __init__(self) -> None:
        self.cloud = MemoryCloud()
        self.loop = EventLoop(random.Random(0), [self.cloud], verbose=False)
        history = FleetHistory()
        for commit in (COMMIT, NEWER):
            history.add(commit, RequestedFleet(staging=(SECOND,)))
            history.moved(commit, self.loop.clock())
        oracle, azure = Oracle(self.loop.azure, self.cloud.kubernetes), AzureHistory(self.loop.clock)
        context = Context(self.loop, oracle, azure, {self.cloud: history})
        self.rule = RolloutRules(context)

    def start(self, cluster: str, commit: str, reached: datetime) -> None:
        """Let a cluster of the stage start, which was reached at a time."""
        group, member = Group(2, 2, least=1), Member(cluster, "a uid", 2, 1, 0)
        stages = Stage("first", (group,)), Stage("second", (group,))
        rollout = Rollout(commit, reached, stages, (member,))
        self.rule._past_its_gate(self.cloud, rollout, member, SECOND, reached)


def test_a_stage_that_has_started_does_not_wait_again_in_a_rollout_that_an_approval_opens() -> None:
    fleet = Fleet()
    fleet.start("b", COMMIT, fleet.loop.clock() - timedelta(minutes=MINUTES))
    fleet.start("c", COMMIT, fleet.loop.clock())


def test_a_stage_waits_for_each_commit() -> None:
    fleet = Fleet()
    with pytest.raises(RuleViolated, match="waits for 10 min"):
        fleet.start("b", COMMIT, fleet.loop.clock())
    fleet.start("b", COMMIT, fleet.loop.clock() - timedelta(minutes=MINUTES))
    with pytest.raises(RuleViolated, match="waits for 10 min"):
        fleet.start("c", NEWER, fleet.loop.clock())
