"""Mutations of pins: one is lost, moves before its stage, back or never, or removes what nobody gave up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from shared.app.planner import commit_status, reporter, rollouts
from shared.app.planner import line as planned_line
from shared.app.platform import platform_plan
from shared.app.recovery import housekeeping
from shared.app.worker.steps.flux import reconciled, sync
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import ClusterSummary
from shared.cluster.transitions import acceptance
from shared.frozen import replace
from shared.kubernetes.flux_readiness import FluxFailure, Ready, readiness
from shared.language.pin import Pin
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Item, Plan
from shared.plan.platform_plan import PlatformPlan
from shared.platform.changes import guards
from shared.platform.changes.effects import Consequence
from shared.platform.followed import is_artifact
from shared.rollouts import line, of_plan
from shared.rollouts.strategy import Line, StageTarget
from simulation.actors.kinds import PLATFORM, ROLLOUTS
from simulation.pulled_commits import BRANCHES
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


def a_cluster_whose_stage_has_not_come_counts_as_in_sync(patch: pytest.MonkeyPatch) -> None:
    reached = commit_status.reached

    def whenever_ready(item: Item, record: ClusterSummary | None, *, newest: bool) -> bool:
        is_ready = record is not None and record.phase is Phase.READY
        return is_ready or reached(item, record, newest=newest)

    patch.setattr(commit_status, "reached", whenever_ready)


def a_pin_that_is_held_counts_as_moved(patch: pytest.MonkeyPatch) -> None:
    def without_holds(plan: Plan, *args: Any, **named: Any) -> Any:
        items = [replace(item, hold=None, generation=0) if item.keeps_pin else item for item in plan.items]
        return commit_status.progress_of(replace(plan, items=tuple(items)), *args, **named)

    patch.setattr(reporter, "progress_of", without_holds)


def what_flux_cannot_apply_counts_as_applied(patch: pytest.MonkeyPatch) -> None:

    def applied(live: Any, request: str) -> Any:
        state = readiness(live, request)
        return Ready(state.attempt.revision) if isinstance(state, FluxFailure) else state

    patch.setattr(reconciled, "readiness", applied)


def the_purge_keeps_the_pin_of_the_head_alone(patch: pytest.MonkeyPatch) -> None:
    class NoPin:
        of = staticmethod(lambda _: None)

    patch.setattr(housekeeping, "Pin", NoPin)


def an_app_deletes_the_pins_of_every_fleet(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(housekeeping, "pin_branches", lambda _: BRANCHES)


def a_record_loses_its_pin(patch: pytest.MonkeyPatch) -> None:
    change = acceptance.accept_change

    def without(record: Any, desired: Any, **named: Any) -> Any:
        return change(record, desired.with_pin(None), **named)

    patch.setattr(acceptance, "accept_change", without)


def _without(kind: HoldKind) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a mutation whose plans hold no pin for this reason."""
    holds = PlatformPlan.holds

    def others(plan: PlatformPlan, approved: Any = ()) -> Mapping[str, Hold]:
        return {name: hold for name, hold in holds(plan, approved).items() if hold.kind is not kind}

    return lambda patch: patch.setattr(PlatformPlan, "holds", others)


def a_removal_needs_no_approval(patch: pytest.MonkeyPatch) -> None:
    _without(HoldKind.PLATFORM_REMOVAL)(patch)


def only_namespaces_claims_and_sets_are_guarded(patch: pytest.MonkeyPatch) -> None:
    for name in ("is_owner", "is_definition", "is_release"):
        patch.setattr(guards, name, lambda _: False)
    patch.setattr(guards, "_kind", _without_owners(guards._kind))


def _without_owners(kind: Callable[[Consequence], Any]) -> Callable[[Consequence], Any]:
    return lambda consequence: None if consequence.of_owner else kind(consequence)


def only_a_namespace_is_guarded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(guards, "_GUARDED", (("", "Namespace"),))


def any_number_of_objects_may_go(patch: pytest.MonkeyPatch) -> None:
    judged = guards.guards_of
    patch.setattr(guards, "guards_of", lambda found, _: judged(found, 100_000))


def what_nothing_builds_is_released(patch: pytest.MonkeyPatch) -> None:
    _without(HoldKind.PLATFORM_REFUSED)(patch)


def every_stage_takes_each_commit(patch: pytest.MonkeyPatch) -> None:
    def of_the_head(names: Any, _before: Any, _seen: Any, _now: Any, head: str, **_: Any) -> Line:
        return Line(head, tuple(StageTarget(name, head) for name in names))

    patch.setattr(planned_line, "line_of", of_the_head)


def a_stage_has_passed_what_it_has_not(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(line, "_standing", lambda *_: line._StageState(passed=True))


def what_is_in_an_artifact_is_not_built(patch: pytest.MonkeyPatch) -> None:
    by_source = platform_plan._by_source

    def others(clusters: Any) -> Any:
        return [found for found in by_source(clusters) if not is_artifact(found[0])]

    patch.setattr(platform_plan, "_by_source", others)


def a_stage_whose_pins_guards_keep_holds_nobody_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(of_plan, "_held", lambda *_: {})


def no_plan_follows_a_stage_that_has_passed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rollouts, "moves", lambda *_: False)


PLATFORM_MUTATIONS = (
    mutation(a_pin_moves_to_the_head_at_once, f"{PLATFORM} {ROLLOUTS}", "pin unreleased"),
    mutation(a_pin_moves_back_to_the_commit_before, PLATFORM, "pin back", "early success"),
    mutation(a_pin_never_moves, PLATFORM, "late pin", "early success", "lost work"),
    mutation(
        a_cluster_whose_stage_has_not_come_counts_as_in_sync,
        f"{PLATFORM} {ROLLOUTS}",
        *("early success", "untrue"),
    ),
    mutation(a_pin_that_is_held_counts_as_moved, PLATFORM, "early success", "open status"),
    mutation(what_flux_cannot_apply_counts_as_applied, PLATFORM, "false ready", "early success"),
    mutation(the_purge_keeps_the_pin_of_the_head_alone, PLATFORM, "pin branch", often="purge"),
    mutation(an_app_deletes_the_pins_of_every_fleet, PLATFORM, "pin branch", often="purge"),
    mutation(a_record_loses_its_pin, PLATFORM, "lost pin"),
    mutation(a_removal_needs_no_approval, PLATFORM, "unapproved removal"),
    mutation(only_namespaces_claims_and_sets_are_guarded, PLATFORM, "unapproved removal"),
    mutation(only_a_namespace_is_guarded, PLATFORM, "unapproved removal"),
    mutation(any_number_of_objects_may_go, PLATFORM, "unapproved removal"),
    mutation(what_nothing_builds_is_released, PLATFORM, "pin refused"),
    mutation(every_stage_takes_each_commit, f"{PLATFORM} {ROLLOUTS}", "stage starves"),
    mutation(a_stage_has_passed_what_it_has_not, f"{PLATFORM} {ROLLOUTS}", "stage order"),
    mutation(
        what_is_in_an_artifact_is_not_built,
        f"{PLATFORM} {ROLLOUTS}",
        *("unapproved removal", "pin refused"),
    ),
    mutation(a_stage_whose_pins_guards_keep_holds_nobody_back, f"{PLATFORM} {ROLLOUTS}", "stage order"),
    mutation(
        no_plan_follows_a_stage_that_has_passed,
        f"{PLATFORM} {ROLLOUTS}",
        *("late pin", "open status", "lost work", "silent"),
    ),
)
