"""Mutations of rollbacks of node pools: against Azure's conditions, twice, not at all, or undone again."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app.api.acts import pulls as proposed
from shared.app.worker.steps import node_pools
from shared.azure import cluster_body
from shared.azure.node_pools import body as node_pool_body
from shared.azure.node_pools.rollback import runs
from simulation.actors.kinds import ROLLBACKS
from simulation.invariants.pool_rollbacks import RULE
from tests.simulation.mutations import mutation


def a_rollback_is_proposed_whatever_azure_demands(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proposed, "unmet", lambda *_, **__: ())


def a_rollback_is_written_whatever_azure_demands(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_pools, "_hold", lambda *_: None)


def a_rollback_is_carried_out_as_often_as_it_is_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_pools, "is_pending", lambda target, profile: not runs(target, profile))


def no_rollback_is_node_pools(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_pools, "rollback_of", lambda *_: None)


def a_pool_that_was_rolled_back_follows_its_cluster_again(patch: pytest.MonkeyPatch) -> None:
    def of_cluster(_: Any, desired: Any) -> str:
        return str(desired.spec.kubernetes_version)

    for module in (cluster_body, node_pool_body):
        patch.setattr(module, "version_of", of_cluster)


ROLLBACK_MUTATIONS = (
    mutation(a_rollback_is_proposed_whatever_azure_demands, ROLLBACKS, RULE),
    mutation(a_rollback_is_written_whatever_azure_demands, ROLLBACKS, RULE),
    mutation(a_rollback_is_carried_out_as_often_as_it_is_read, ROLLBACKS, RULE),
    mutation(no_rollback_is_node_pools, ROLLBACKS, RULE),
    mutation(a_pool_that_was_rolled_back_follows_its_cluster_again, ROLLBACKS, RULE),
)
