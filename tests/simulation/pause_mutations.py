"""Mutations of a pause: the worker or the planner goes on in it."""

from __future__ import annotations

import pytest

from shared.app.planner import carry_out
from shared.app.worker import worker
from simulation.actors.kinds import PAUSES
from tests.simulation.mutations import mutation


def a_worker_goes_on_in_a_pause(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(worker, "pause_now", lambda _: None)


def the_planner_hands_over_in_a_pause(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(carry_out, "_is_paused", lambda *_: False)


PAUSE_MUTATIONS = (
    mutation(a_worker_goes_on_in_a_pause, PAUSES, "paused"),
    mutation(the_planner_hands_over_in_a_pause, PAUSES, "paused"),
)
