"""The rule about deletes that a review approves: it approves those of clusters that existed when it came."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.cluster.transitions.acceptance import accept_delete
from simulation.actors.reviewers import Reviewers, Story
from simulation.desired_state import DesiredCluster, RequestedFleet
from simulation.event_loop import EventLoop
from simulation.history import AzureHistory
from simulation.invariants.context import Context
from simulation.invariants.records import Records
from simulation.operators import Operators
from simulation.oracle import Oracle
from simulation.rule import RuleViolated
from simulation.staging import MISTYPED
from simulation.workloads import Workloads
from tests.support.pipeline_runs import record_of

PROTECTED = RequestedFleet({"a": DesiredCluster("a", protected=True)})


class Reviewed:
    """A fleet whose operators have pushed a protected cluster, and the rule for its records."""

    def __init__(self) -> None:
        chance, self.cloud = random.Random(0), MemoryCloud()
        loop = EventLoop(chance, [self.cloud], verbose=False)
        loop.workers = {self.cloud: [self.cloud.ports]}
        oracle, azure = Oracle(loop.azure, self.cloud.kubernetes), AzureHistory(loop.clock)
        workloads = Workloads(self.cloud.kubernetes, chance.choice)
        self.operators = Operators(loop, oracle, azure, workloads, self.cloud, ("a",))
        self.reviewers = Reviewers(0, self.operators)
        histories = {self.operators.cloud: self.operators.history}
        self.rule = Records(Context(loop, oracle, azure, histories))
        self.operators.push(PROTECTED)

    def remove(self) -> str:
        """Merge an approved pull request that removes the cluster; return the commit."""
        git, pulls = self.cloud.repository, self.cloud.repository.pulls
        base = git.head("main")
        git.reset(base, "removal")
        git.commit({"clusters/a/cluster.yaml": None}, branch="removal")
        pull = pulls.open("Remove a", "removal", "main")
        story = Story(pull.number, "removal", base, frozenset({"a"}))
        self.reviewers._approve(story)
        self.reviewers._merge(story)
        return git.head("main")

    def created(self) -> ClusterRecord:
        """Return the record of the cluster once it is planned."""
        self.cloud.run()
        return record_of(self.cloud, "a")

    def deleted(self, record: ClusterRecord, commit: str) -> None:
        """Let the delete of a cluster be accepted at a commit."""
        self.rule.saved(self.cloud, record, accept_delete(record, commit=commit, now=self.cloud.clock()))


def test_a_review_approves_the_delete_of_a_cluster_that_existed_when_it_came() -> None:
    fleet = Reviewed()
    record = fleet.created()
    fleet.deleted(record, fleet.remove())


def test_a_review_approves_no_delete_of_a_later_cluster_although_there_was_none_when_it_came() -> None:
    fleet = Reviewed()
    commit = fleet.remove()
    fleet.cloud.clock.advance(60)
    fleet.operators.push(PROTECTED)
    with pytest.raises(RuleViolated, match="it is protected"):
        fleet.deleted(fleet.created(), commit)


def test_a_merge_names_no_strategy_whatever_the_commit_before_it_said() -> None:
    fleet = Reviewed()
    fleet.operators.push(replace(PROTECTED, trailer=MISTYPED))
    merged = fleet.remove()
    (commit,) = fleet.cloud.repository.changes(merged, "", 1)
    assert MISTYPED not in commit.message
    assert fleet.operators.now == replace(PROTECTED.without("a"), trailer="")
