"""Mutations that lost and restored tables reveal: what a recovery writes, and whether there is one."""

from __future__ import annotations

import pytest

from shared.app.worker.steps import registry
from tests.simulation.mutations import mutation


def a_recovering_record_is_like_any_other(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(registry, "without_writes", lambda ports: ports)


DISASTER_MUTATIONS = (mutation(a_recovering_record_is_like_any_other, "tables-lost", "written after a loss"),)
