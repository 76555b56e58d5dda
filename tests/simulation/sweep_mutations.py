"""Mutations of sweeps: what a sweep finds is not concluded, not shown, or concluded of too little."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shared.jobs.record import ClusterRecord
from shared.pipeline.sweep import clusters, conclusions, lists, verdicts
from simulation.actors.sweeps import KIND
from tests.simulation.mutations import Mutation, mutation


def a_sweep_concludes_nothing_of_single_clusters(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(clusters, "conclude", lambda *_: False)


def a_sweep_concludes_nothing_from_lists(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lists, "conclude_from_list", lambda *_: False)


def what_a_sweep_found_is_never_taken_back(patch: pytest.MonkeyPatch) -> None:
    original = conclusions.conclude

    def conclude(record: ClusterRecord, *given: Any) -> bool:
        return not record.finding and original(record, *given)

    patch.setattr(conclusions, "conclude", conclude)


def a_stopped_cluster_is_no_finding(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(verdicts, "is_stopped", lambda _: False)


def a_lost_cluster_counts_as_in_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterRecord, "lost", property(lambda _: False))


def _mutation(remove: Callable[[pytest.MonkeyPatch], None]) -> Mutation:
    return mutation(remove, KIND, "stale ready")


SWEEP_MUTATIONS = (
    _mutation(a_sweep_concludes_nothing_of_single_clusters),
    _mutation(a_sweep_concludes_nothing_from_lists),
    _mutation(what_a_sweep_found_is_never_taken_back),
    _mutation(a_stopped_cluster_is_no_finding),
    _mutation(a_lost_cluster_counts_as_in_sync),
)
