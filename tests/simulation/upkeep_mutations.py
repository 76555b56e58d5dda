"""Mutations of the upkeep of clusters: windows, node images, and drains with disruption budgets."""

from __future__ import annotations

import pytest

from shared.jobs.outcomes import Done
from shared.jobs.recipes import Step
from shared.pipeline.worker.steps import drain, node_pools, registry
from tests.support.mutations import Mutation


def maintenance_windows_are_not_written(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(registry._STEPS, Step.MAINTENANCE, lambda _: Done())


def node_images_are_not_upgraded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_pools, "_image", lambda *_: None)


def a_pool_is_deleted_without_a_drain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(drain, "drained", lambda *_: None)


UPKEEP_MUTATIONS = (
    Mutation(maintenance_windows_are_not_written, "refused", frozenset({"false ready"})),
    Mutation(node_images_are_not_upgraded, "refused", frozenset({"false ready", "not in sync"})),
    Mutation(a_pool_is_deleted_without_a_drain, "refused", frozenset({"disruption"})),
)
