"""People who merge what proposes drift: only a cluster with a valid manifest follows git there."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from simulation.actors.proposals import BRANCHES, MERGED, ProposalActor
from simulation.desired_files import files_of
from simulation.desired_state import SYSTEM, DesiredCluster, RequestedFleet
from simulation.event_loop import EventLoop
from simulation.history import AzureHistory
from simulation.operators import Operators
from simulation.oracle import Oracle
from simulation.simulation import simulate
from simulation.workloads import Workloads

VALID = DesiredCluster("a")


class Merging(random.Random):
    """People who merge every pull request."""

    def random(self) -> float:
        return MERGED / 2


def merged(cluster: DesiredCluster) -> set[tuple[MemoryCloud, str]]:
    """Scale a cluster by hand, and merge the proposal of that; return the clusters that follow git."""
    chance, cloud = Merging(), MemoryCloud()
    loop = EventLoop(chance, [cloud], verbose=False)
    loop.workers = {cloud: [cloud.ports]}
    given = loop, Oracle(loop.azure, cloud.kubernetes), AzureHistory(loop.clock)
    operators = Operators(*given, Workloads(cloud.kubernetes, chance.choice), cloud, ("a",))
    for wanted in (VALID, cluster):
        operators.push(RequestedFleet({"a": wanted}))
        cloud.run()
    loop.azure.interventions.scale(loop.azure.ids()[0], SYSTEM.name, 2)
    cloud.run()
    scaled = operators.now.with_cluster(cluster.with_pool(replace(SYSTEM, count=2)))
    git, branch = cloud.repository, f"{BRANCHES}{operators.fleet}/a"
    git.reset(git.head("main"), branch)
    git.commit(files_of(scaled, operators.fleet), branch=branch)
    git.pulls.open("Keep the count", branch, "main")
    found = ProposalActor(chance, loop, [operators], {}, cloud.run).act()
    assert operators.now == scaled
    return found


def test_a_cluster_follows_git_when_its_proposal_is_merged() -> None:
    assert {name for _, name in merged(VALID)} == {"a"}


def test_a_cluster_stays_at_its_last_valid_spec_when_its_manifest_is_not_valid() -> None:
    assert not merged(replace(VALID, invalid=True))


@pytest.mark.lives
def test_a_merge_reaches_no_cluster_that_its_rollout_holds_back() -> None:
    assert simulate(0, only=frozenset({"rollouts", "sweeps"})).rule == ""
