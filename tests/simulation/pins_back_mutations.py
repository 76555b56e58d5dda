"""A mutation of pins that go back because somebody aborted a rollout: they go without being asked to."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app.planner import rollouts
from shared.app.planner.pins import move_pins_back
from shared.frozen import replace
from shared.rollouts.rollout import RolloutState, StageDecision
from simulation.actors.kinds import PLATFORM, ROLLOUTS
from tests.simulation.mutations import mutation


def pins_go_back_though_nobody_asked(patch: pytest.MonkeyPatch) -> None:
    def unasked(rollout: Any, *given: Any) -> None:
        back = rollout.people.back or StageDecision("nobody", rollout.began)
        people = replace(rollout.people, back=back)
        move_pins_back(replace(rollout, state=RolloutState.ABORTED, people=people), *given)

    patch.setattr(rollouts, "move_pins_back", unasked)


PINS_BACK_MUTATIONS = (
    mutation(
        pins_go_back_though_nobody_asked, f"{PLATFORM} {ROLLOUTS}", "pin back", "rollout order", "rollout"
    ),
)
