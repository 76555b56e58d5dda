"""Mutations of the count of repaired gaps: a lost webhook counts never or twice, or one that came counts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from localcloud.tables.memory_state import FLEET, MemoryState
from shared.app.planner import branch
from shared.ports.state.app import DELIVERIES
from simulation.actors.kinds import LOST_WEBHOOKS
from tests.simulation.mutations import mutation


def a_lost_webhook_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(branch, "repaired_gaps", lambda _request, _head, fleet, _deliveries: fleet.gaps)


def a_head_is_counted_with_each_of_its_plans(patch: pytest.MonkeyPatch) -> None:
    original = branch.repaired_gaps

    def again(request: Any, head: str, fleet: Any, deliveries: Any) -> Any:
        counted = original(request, head, fleet, deliveries)
        last = counted.last
        return counted.and_one(last) if last and counted == fleet.gaps and last.commit == head else counted

    patch.setattr(branch, "repaired_gaps", again)


def a_webhook_that_came_counts_as_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(branch, "is_announced", lambda *_: False)


def an_announcement_is_forgotten_once_it_is_read(patch: pytest.MonkeyPatch) -> None:
    original = MemoryState.announced_at

    def announced_at(self: MemoryState, head: str) -> datetime | None:
        at = original(self, head)
        self.tables[DELIVERIES].remove([(FLEET, f"head.{head}")])
        return at

    patch.setattr(MemoryState, "announced_at", announced_at)


GAP_MUTATIONS = (
    mutation(a_lost_webhook_is_not_counted, LOST_WEBHOOKS, "gaps"),
    mutation(a_head_is_counted_with_each_of_its_plans, "", "gaps"),
    mutation(a_webhook_that_came_counts_as_lost, "", "gaps"),
    mutation(an_announcement_is_forgotten_once_it_is_read, "", "gaps"),
)
