"""The rule about groups whose cluster was taken over: their creator may delete them, once they are empty."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from simulation.event_loop import EventLoop
from simulation.history import AzureHistory, FleetHistory
from simulation.invariants.azure_writes import AzureWrites
from simulation.invariants.context import Context
from simulation.oracle import Oracle
from simulation.rule import RuleViolated
from simulation.workloads import Workloads
from tests.support.one_cluster import ONE, ready, record
from tests.support.sweeps import delete_by_hand

GROUP = replace(key_of(ONE), name="")


class Taken:
    """A cluster of the first app, which the second one has taken over and somebody has deleted since."""

    def __init__(self, creator: str) -> None:
        self.first = ready()
        config = replace(self.first.ports.config, branch="staging")
        self.second = MemoryCloud(seed=1, config=config, peer=self.first, throttle=False)
        chance, fleet = random.Random(0), config.fleet
        loop = EventLoop(chance, [self.first, self.second], verbose=False)
        azure = AzureHistory(loop.clock)
        context = Context(
            loop, Oracle(loop.azure, self.first.kubernetes), azure, {self.first: FleetHistory()}
        )
        self.rule = AzureWrites(context, Workloads(self.first.kubernetes, chance.choice))
        self.rule.contests.met(self.second, FleetHistory())
        azure.created(key_of(ONE), fleet)
        azure.group_owners[GROUP.subscription, GROUP.resource_group] = creator
        self.rule.contests.taken_over(self.second, record(self.first))
        self.rule.contests._change_owner(key_of(ONE), self.rule.contests._name(self.second))
        delete_by_hand(self.first, ONE)

    def delete_group(self, app: MemoryCloud) -> None:
        """Let an app delete the group."""
        if not self.rule.contests.accepted("delete-group", GROUP, app):
            self.rule._may_write("delete-group", GROUP, app, "the first app deletes the group")


@pytest.mark.parametrize("app", ["first", "second"])
def test_the_creator_of_a_group_and_who_took_its_cluster_over_may_delete_it(app: str) -> None:
    taken = Taken("example")
    taken.delete_group(getattr(taken, app))


@pytest.mark.parametrize(("creator", "who"), [("example, second app", "second app"), ("", "an operator")])
def test_the_first_app_does_not_delete_a_group_of_others(creator: str, who: str) -> None:
    taken = Taken(creator)
    with pytest.raises(RuleViolated, match=f"{who} created"):
        taken.delete_group(taken.first)


def test_the_second_app_does_not_delete_the_group_of_an_operator() -> None:
    taken = Taken("")
    with pytest.raises(RuleViolated, match="contested"):
        taken.delete_group(taken.second)
