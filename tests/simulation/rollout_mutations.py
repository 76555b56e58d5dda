"""Mutations of rollouts: a bound, an order or a decision counts for nothing, or no message comes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.fleet.planning.plan import Action, Item
from shared.pipeline import outbox
from shared.pipeline.api.acts import replay
from shared.pipeline.planner import planner
from shared.pipeline.planner.staging import gate_checks, rollouts
from shared.pipeline.planner.staging.rollouts import Staged
from shared.pipeline.sweep import held_corrections
from shared.rollouts import calendar, decide, of_plan, standing
from shared.rollouts.rollout import Checked, CheckState, Rollout, State
from shared.rollouts.selected.choice import NOTHING, choose
from shared.rollouts.shut import plan_holds
from shared.rollouts.strategy import Gate
from simulation.actors.kinds import ROLLOUTS, SWEEPS
from tests.simulation.mutations import mutation


def every_cluster_of_a_rollout_starts_at_once(patch: pytest.MonkeyPatch) -> None:
    original = rollouts.stage

    def stage(*args: Any) -> Staged:
        return replace(original(*args), held=frozenset())

    patch.setattr(planner, "stage", stage)


def a_group_waits_for_no_other(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide._Part, "unfinished", lambda _: None)


def a_ready_cluster_counts_at_any_generation(patch: pytest.MonkeyPatch) -> None:
    original = standing.standing

    def stale(member: Any, *args: Any) -> Any:
        found = original(member, *args)
        return standing.Standing.VERIFIED if found is standing.Standing.IN_FLIGHT else found

    patch.setattr(decide, "standing", stale)


def a_failed_cluster_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    original = standing.standing

    def forgiving(*args: Any) -> Any:
        found = original(*args)
        return standing.Standing.OUT if found is standing.Standing.FAILED else found

    patch.setattr(decide, "standing", forgiving)


def a_soak_is_over_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide._Part, "soaking", lambda *_: None)


def an_approval_is_given_by_itself(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Rollout, "missing_approvals", lambda *_: 0)


def the_time_of_a_stage_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gate, "opens", lambda _, reached: reached)


def a_check_that_has_failed_opens_its_gate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gate_checks, "_state", lambda _: CheckState.PASSED)


def any_answer_of_an_endpoint_opens_its_gate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Checked, "after", lambda said, *_: replace(said, state=CheckState.PASSED))


def one_person_approves_for_all(patch: pytest.MonkeyPatch) -> None:
    original = Rollout.missing_approvals

    def missing(rollout: Rollout, stage: int, now: Any) -> int:
        given = any(each.subject == rollout.stages[stage].name for each in rollout.approved)
        return 0 if given else original(rollout, stage, now)

    patch.setattr(Rollout, "missing_approvals", missing)


def a_pause_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    original = decide.decide

    def heedless(rollout: Rollout, *args: Any) -> Any:
        decision = original(replace(rollout, paused=None), *args)
        return replace(decision, rollout=replace(decision.rollout, paused=rollout.paused))

    patch.setattr(rollouts, "decide", heedless)


def an_abort_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    original = decide.decide

    def heedless(rollout: Rollout, *args: Any) -> Any:
        if rollout.state is not State.ABORTED:
            return original(rollout, *args)
        decision = original(replace(rollout, state=State.ACTIVE), *args)
        return replace(decision, rollout=replace(decision.rollout, state=State.ABORTED))

    patch.setattr(rollouts, "decide", heedless)


def a_pause_holds_nothing_that_a_newer_commit_changes_again(patch: pytest.MonkeyPatch) -> None:
    def everything(candidates: Any, *_: Any) -> frozenset[str]:
        return frozenset(each.cluster for each in candidates)

    patch.setattr(of_plan, "not_held", everything)


def a_commit_selects_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(of_plan, "choose", lambda strategies, _, updates: choose(strategies, NOTHING, updates))


def a_mistyped_strategy_is_passed_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(of_plan, "_refused", lambda *_: None)


def a_freeze_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calendar, "_active", lambda *_: None)


def a_window_is_always_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calendar, "_first", lambda _, __, now: (now, ""))


def nobody_says_that_a_cluster_has_ended(patch: pytest.MonkeyPatch) -> None:
    def silent(*_: Any, **__: Any) -> None:
        return None

    patch.setattr(outbox, "request_rollout", silent)


def _unheld(patch: pytest.MonkeyPatch, *actions: Action) -> None:
    """Let no freeze and no window hold the items of a plan with these actions."""
    original = plan_holds._shut

    def shut(item: Item, *args: Any) -> Any:
        return None if item.action in actions else original(item, *args)

    patch.setattr(plan_holds, "_shut", shut)


def a_freeze_holds_no_delete(patch: pytest.MonkeyPatch) -> None:
    _unheld(patch, Action.DELETE, Action.REBUILD)


def a_freeze_holds_no_creation(patch: pytest.MonkeyPatch) -> None:
    _unheld(patch, Action.CREATE, Action.ADOPT)


def a_replay_starts_in_a_freeze(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replay, "held_start", lambda *_: None)


def a_correction_starts_in_a_freeze(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(held_corrections, "held_start", lambda *_: None)


ROLLOUT_MUTATIONS = (
    mutation(every_cluster_of_a_rollout_starts_at_once, ROLLOUTS, "rollout bound", "rollout order"),
    mutation(a_group_waits_for_no_other, ROLLOUTS, "rollout order"),
    mutation(a_ready_cluster_counts_at_any_generation, ROLLOUTS, "rollout order", "rollout bound"),
    mutation(
        a_failed_cluster_counts_for_nothing,
        f"{ROLLOUTS} operation-fails",
        *("rollout budget", "rollout bound", "rollout order"),
    ),
    mutation(a_soak_is_over_at_once, ROLLOUTS, "rollout soak"),
    mutation(an_approval_is_given_by_itself, ROLLOUTS, "rollout approval"),
    mutation(the_time_of_a_stage_counts_for_nothing, ROLLOUTS, "rollout time"),
    mutation(a_check_that_has_failed_opens_its_gate, ROLLOUTS, "rollout check"),
    mutation(any_answer_of_an_endpoint_opens_its_gate, ROLLOUTS, "rollout check"),
    mutation(one_person_approves_for_all, ROLLOUTS, "rollout approval"),
    mutation(a_pause_counts_for_nothing, ROLLOUTS, "rollout stopped"),
    mutation(an_abort_counts_for_nothing, ROLLOUTS, "rollout stopped"),
    mutation(a_pause_holds_nothing_that_a_newer_commit_changes_again, ROLLOUTS, "rollout stopped"),
    mutation(a_commit_selects_nothing, ROLLOUTS, "rollout"),
    mutation(a_mistyped_strategy_is_passed_over, ROLLOUTS, "rollout strategy"),
    mutation(a_freeze_counts_for_nothing, ROLLOUTS, "rollout window", "timed start"),
    mutation(a_window_is_always_open, ROLLOUTS, "rollout window", "timed start"),
    mutation(a_freeze_holds_no_delete, ROLLOUTS, "timed start", often="add remove"),
    mutation(a_freeze_holds_no_creation, ROLLOUTS, "timed start", often="add remove"),
    mutation(a_replay_starts_in_a_freeze, f"{ROLLOUTS} operation-fails", "timed start"),
    mutation(a_correction_starts_in_a_freeze, f"{ROLLOUTS} {SWEEPS}", "timed start"),
    mutation(nobody_says_that_a_cluster_has_ended, ROLLOUTS, "lost work", "open status", "not in sync"),
)
