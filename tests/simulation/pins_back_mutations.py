"""A mutation of pins that go back because somebody aborted a rollout: they go without being asked to."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app.planner import rollouts
from shared.app.planner.pins import pins_back
from shared.app.planner.pins.pins_back import move_pins_back
from shared.frozen import replace
from shared.rollouts import candidates
from shared.rollouts.rollout import RolloutState, StageDecision
from simulation.actors.kinds import PLATFORM, ROLLOUTS
from tests.simulation.mutations import mutation


def pins_go_back_though_nobody_asked(patch: pytest.MonkeyPatch) -> None:
    def unasked(rollout: Any, *given: Any) -> None:
        back = rollout.people.back or StageDecision("nobody", rollout.began)
        people = replace(rollout.people, back=back)
        move_pins_back(replace(rollout, state=RolloutState.ABORTED, people=people), *given)

    patch.setattr(rollouts, "move_pins_back", unasked)


def a_pin_that_went_back_goes_back_with_a_later_rollout(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(candidates, "_is_at", lambda *_: False)


def a_success_lasts_while_pins_go_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pins_back, "report_again", lambda *_, **__: None)


PINS_BACK_MUTATIONS = (
    mutation(
        pins_go_back_though_nobody_asked, f"{PLATFORM} {ROLLOUTS}", "pin back", "rollout order", "rollout"
    ),
    mutation(a_pin_that_went_back_goes_back_with_a_later_rollout, f"{PLATFORM} {ROLLOUTS}", "rollout"),
    mutation(a_success_lasts_while_pins_go_back, f"{PLATFORM} {ROLLOUTS}", "untrue"),
)
