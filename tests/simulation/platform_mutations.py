"""Mutations of pins: one moves before its stage, back or never, or removes what nobody gave up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from shared.app.planner import commit_status
from shared.app.worker.steps.flux import sync
from shared.frozen import replace
from shared.language.pin import Pin
from shared.plan.holds import Hold, HoldKind
from shared.plan.platform_plan import PlatformPlan
from simulation.actors.kinds import PLATFORM, ROLLOUTS
from tests.simulation.mutations import mutation


def a_pin_moves_to_the_head_at_once(patch: pytest.MonkeyPatch) -> None:
    def at_the_head(context: Any, _: str) -> Any:
        fleet, pin = context.ports.state.fleet(), context.desired.pin
        head = fleet.planning or fleet.commit
        return context.desired.with_pin(replace(pin, commit=head)) if pin else context.desired

    patch.setattr(sync, "as_live", at_the_head)


def a_pin_moves_back_to_the_commit_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sync, "as_live", lambda context, _: context.desired)
    patch.setattr(sync, "held_back", lambda *_: None)
    moved = Pin.moved
    patch.setattr(
        Pin, "moved", lambda pin, *to: replace(moved(pin, *to), commit=pin.before or moved(pin, *to).commit)
    )


def a_pin_never_moves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pin, "moved", lambda pin, *_: pin)


def a_cluster_that_changes_counts_as_in_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit_status, "reached", lambda *_, **__: True)


def _without(kind: HoldKind) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a mutation whose plans hold no pin for this reason."""
    holds = PlatformPlan.holds

    def others(plan: PlatformPlan, approved: Any = ()) -> Mapping[str, Hold]:
        return {name: hold for name, hold in holds(plan, approved).items() if hold.kind is not kind}

    return lambda patch: patch.setattr(PlatformPlan, "holds", others)


def a_removal_needs_no_approval(patch: pytest.MonkeyPatch) -> None:
    _without(HoldKind.PLATFORM_REMOVAL)(patch)


def what_nothing_builds_is_released(patch: pytest.MonkeyPatch) -> None:
    _without(HoldKind.PLATFORM_REFUSED)(patch)


PLATFORM_MUTATIONS = (
    mutation(a_pin_moves_to_the_head_at_once, f"{PLATFORM} {ROLLOUTS}", "pin unreleased"),
    mutation(a_pin_moves_back_to_the_commit_before, PLATFORM, "pin back"),
    mutation(a_pin_never_moves, PLATFORM, "lost pin", "early success", "lost work"),
    mutation(a_cluster_that_changes_counts_as_in_sync, PLATFORM, "early success", "untrue"),
    mutation(a_removal_needs_no_approval, PLATFORM, "unapproved removal"),
    mutation(what_nothing_builds_is_released, PLATFORM, "pin refused"),
)
