"""The rules about lives of clusters: what a rebuild ends, what a hold leaves undone, and replaced tables."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.companions import COMPANIONS, CREDENTIALS, ROLES
from shared.app.check import companions as checked
from shared.cluster.record import ClusterRecord
from simulation.actors.grants import Grants
from simulation.actors.sweeps import SweepActor
from simulation.actors.upkeep import Surroundings
from simulation.desired_state import DesiredCluster, RequestedFleet
from simulation.event_loop import EventLoop
from simulation.granted import IDENTITY, create_by_hand
from simulation.history import LONG_AGO, AzureHistory
from simulation.operators import Operators, cluster_id
from simulation.oracle import Oracle
from simulation.rule import RuleViolated
from simulation.workloads import Workloads
from tests.support.pipeline_runs import record_of

MONTH = 30 * 86400
GRANTED = RequestedFleet({"a": DesiredCluster("a", grants=("web",))})
REBUILT = RequestedFleet({"a": DesiredCluster("a", grants=("web",), rebuild=1)})


class Fleet:
    """A fleet with one cluster that is Ready, and has an identity's access."""

    def __init__(self) -> None:
        chance, self.cloud = random.Random(0), MemoryCloud()
        config = replace(self.cloud.ports.config, installation="the-app")
        self.cloud.ports = replace(self.cloud.ports, config=config)
        self.loop = EventLoop(chance, [self.cloud], verbose=False)
        self.loop.workers = {self.cloud: [self.cloud.ports]}
        self.oracle, self.history = (
            Oracle(self.loop.azure, self.cloud.kubernetes),
            AzureHistory(self.loop.clock),
        )
        workloads = Workloads(self.cloud.kubernetes, chance.choice)
        self.operators = Operators(self.loop, self.oracle, self.history, workloads, self.cloud, ("a",))
        create_by_hand(self.loop.azure)
        self.operators.push(GRANTED)
        self.cloud.run()

    @property
    def record(self) -> ClusterRecord:
        """The record of the cluster."""
        return record_of(self.cloud, "a")

    def grants(self) -> Grants:
        """Return the rule of what is granted, which has seen what there is."""
        rule = Grants(Surroundings(0, [self.operators], self.loop, self.oracle, self.history, {}))
        rule._look()
        return rule

    def revoke(self) -> None:
        """Remove the federated credential of the cluster."""
        azure = self.loop.azure
        (name,) = [
            peek_credential
            for peek_credential in azure.identities.peek_credentials(*IDENTITY)
            if peek_credential.endswith("-web")
        ]
        azure.identities.delete_federated_credential(*IDENTITY, name)

    def restore(self) -> None:
        """Put older tables back: a commit that they do not know took the grants, and git has them again."""
        older = self.cloud.state.backup()
        self.operators.push(RequestedFleet({"a": DesiredCluster("a")}))
        self.cloud.run()
        self.cloud.state.restore(older)
        self.operators.history.restored_at = self.cloud.clock()
        self.operators.push(GRANTED)
        self.cloud.run()

    def delete(self) -> None:
        """Delete the cluster."""
        self.loop.azure.delete_cluster(cluster_id("a"))
        self.cloud.clock.advance(3600)
        self.loop.azure.complete_due()


def test_what_a_cluster_was_granted_may_go_once_it_is_deleted_for_a_rebuild() -> None:
    fleet = Fleet()
    rule = fleet.grants()
    fleet.operators.push(REBUILT)
    fleet.delete()
    fleet.revoke()
    rule._look()


@pytest.mark.parametrize("desired", [GRANTED, REBUILT], ids=["nobody asks", "the cluster lives"])
def test_nothing_granted_goes_without_a_rebuild_or_before_its_delete(desired: RequestedFleet) -> None:
    fleet = Fleet()
    rule = fleet.grants()
    fleet.operators.push(desired)
    if desired is GRANTED:
        fleet.delete()
    fleet.revoke()
    with pytest.raises(RuleViolated, match="unasked removal"):
        rule._look()


def test_a_restored_record_has_to_say_what_a_lost_commit_took(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet()
    rule = fleet.grants()
    fleet.restore()
    rule.check()
    others = [kind for kind in COMPANIONS if kind not in (CREDENTIALS, ROLES)]
    monkeypatch.setattr(checked, "COMPANIONS", others)
    with pytest.raises(RuleViolated, match="git grants"):
        rule.check()


def test_a_job_that_ended_after_tables_were_restored_has_to_have_read_the_grants() -> None:
    fleet = Fleet()
    rule = fleet.grants()
    fleet.restore()
    fleet.operators.history.restored_at = LONG_AGO
    with pytest.raises(RuleViolated, match="git grants"):
        rule.check()


def test_all_is_not_well_while_a_rebuild_was_not_carried_out() -> None:
    fleet = Fleet()
    sweeps = SweepActor(Surroundings(0, [fleet.operators], fleet.loop, fleet.oracle, fleet.history, {}))
    assert sweeps._all_is_well(fleet.cloud, fleet.operators.history.head_line[-1])
    fleet.operators.push(REBUILT)
    assert not sweeps._all_is_well(fleet.cloud, fleet.operators.history.head_line[-1])
    fleet.history.created_for[cluster_id("a")] = 1
    assert sweeps._all_is_well(fleet.cloud, fleet.operators.history.head_line[-1])
