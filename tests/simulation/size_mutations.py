"""Mutations of what is too large: it stops the others of its commit, or is left out without a word."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app.planner import handover
from shared.cluster.failures.errors import TooLarge
from shared.plan.plan import Item
from tests.simulation.mutations import mutation


def a_cluster_that_is_too_large_stops_the_plan(patch: pytest.MonkeyPatch) -> None:
    def stop(_: Item, error: TooLarge) -> Any:
        raise error

    patch.setattr(handover, "_not_storable", stop)


def a_cluster_that_is_too_large_is_left_out_without_a_word(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(handover, "_not_storable", lambda item, _: item)


SIZE_MUTATIONS = (
    mutation(a_cluster_that_is_too_large_stops_the_plan, "large-records", "untrue"),
    mutation(a_cluster_that_is_too_large_is_left_out_without_a_word, "large-records", "silent", "untrue"),
)
