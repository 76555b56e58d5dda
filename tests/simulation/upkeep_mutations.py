"""Mutations of upkeep: windows, node images, drains with disruption budgets, and the daily purge."""

from __future__ import annotations

import pytest

from localcloud.tables.memory_state import MemoryState
from shared.app.worker.steps import drain, node_pools, registry
from shared.cluster.outcomes import Done
from shared.cluster.recipes import Step
from shared.ports.state.plans import BLOBS, PLANS
from tests.simulation.mutations import mutation


def maintenance_windows_are_not_written(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(registry.FUNCTIONS, Step.MAINTENANCE, lambda _: Done())


def node_images_are_not_upgraded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_pools, "_image", lambda *_: None)


def a_pool_is_deleted_without_a_drain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(drain, "drained", lambda *_: None)


def events_of_living_clusters_expire(patch: pytest.MonkeyPatch) -> None:
    prune = MemoryState.prune_events_before
    patch.setattr(MemoryState, "prune_events_before", lambda self, at, **_: prune(self, at, living=()))


def files_of_the_newest_commit_expire(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryState, "prune_blobs", lambda self, _: self.tables[BLOBS].restore({}) or 0)


def open_plans_expire(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryState, "prune_plans", lambda self, _: self.tables[PLANS].restore({}) or 0)


UPKEEP_MUTATIONS = (
    mutation(events_of_living_clusters_expire, "", "purged", often="purge"),
    mutation(files_of_the_newest_commit_expire, "refused", "purged", often="purge"),
    mutation(open_plans_expire, "refused", "purged", "untrue", "silent", often="purge"),
    mutation(maintenance_windows_are_not_written, "refused", "false ready", often="set-window"),
    mutation(node_images_are_not_upgraded, "refused", "false ready", "not in sync", often="require-images"),
    mutation(a_pool_is_deleted_without_a_drain, "refused", "disruption", often="replace-protected"),
)
