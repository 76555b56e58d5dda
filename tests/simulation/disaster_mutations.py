"""Mutations that lost and restored tables reveal: what a recovery writes, and whether there is one."""

from __future__ import annotations

import pytest

from shared.app.planner import compute
from shared.app.worker.steps import registry
from tests.simulation.mutations import mutation


def a_recovering_record_is_like_any_other(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(registry, "without_writes", lambda ports: ports)


def generations_begin_at_one_again(patch: pytest.MonkeyPatch) -> None:
    original = compute._first_generation
    patch.setattr(compute, "_first_generation", lambda *given: (1, original(*given)[1]))


DISASTER_MUTATIONS = (
    mutation(a_recovering_record_is_like_any_other, "tables-lost", "written after a loss"),
    mutation(generations_begin_at_one_again, "tables-lost", "generation"),
)
