"""Mutations of gates: an approval, a check or a time counts for nothing, or anything opens them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from shared.app import readiness
from shared.app.api.acts import rollout as acts
from shared.app.api.acts import system_approval
from shared.app.planner import gate_checks
from shared.rollouts import decide
from shared.rollouts.rollout import CheckState, GateCheckResult, Rollout, Stage, StageDecision
from shared.rollouts.strategy import Gate
from simulation.actors.kinds import ROLLOUTS
from tests.simulation.mutations import mutation


def an_approval_is_given_by_itself(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Rollout, "missing_approvals", lambda *_: 0)


def the_time_of_a_stage_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gate, "opens", lambda _, reached: reached)


def a_blocker_opens_the_gate_of_readiness(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gate_checks, "_judged", lambda *_: (CheckState.PASSED, ""))


def nobody_reads_the_metric_of_deprecated_apis(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(readiness, "requested_apis", lambda _: ())


def nobody_reads_what_flux_has_applied(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(readiness, "applied_apis", lambda _: ())


def nobody_reads_clusters_for_a_gate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gate_checks, "send_all", lambda *_: None)


def a_check_that_has_failed_opens_its_gate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gate_checks, "_state", lambda _: CheckState.PASSED)


def any_answer_of_an_endpoint_opens_its_gate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GateCheckResult, "after", lambda said, *_: replace(said, state=CheckState.PASSED))


def any_answer_of_a_workspace_opens_its_gate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gate_checks, "judged", lambda *_: (True, ""))


def an_alert_that_fires_keeps_no_gate_shut(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gate_checks, "fired_alerts", lambda *_: [])


def everybody_approves_whatever_the_role(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(acts, "_by_role", lambda *_: None)


def an_author_approves_the_own_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(acts, "_by_author", lambda *_: None)


def a_stage_is_approved_at_any_hour(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gate, "takes", lambda *_: True)


def an_approval_never_expires(patch: pytest.MonkeyPatch) -> None:
    original = Rollout._approvals

    def ever(rollout: Rollout, stage: Stage, now: datetime) -> Sequence[StageDecision]:
        return original(rollout, replace(stage, gate=replace(stage.gate, expires=None)), now)

    patch.setattr(Rollout, "_approvals", ever)


def whoever_states_it_approves_for_a_system(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(system_approval, "is_signed", lambda *_: True)


def a_final_gate_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide, "_final_wait", lambda *_: None)


def one_person_approves_for_all(patch: pytest.MonkeyPatch) -> None:
    original = Rollout.missing_approvals

    def missing(rollout: Rollout, stage: int, now: Any) -> int:
        given = any(approval.subject == rollout.stages[stage].name for approval in rollout.people.approved)
        return 0 if given else original(rollout, stage, now)

    patch.setattr(Rollout, "missing_approvals", missing)


GATE_MUTATIONS = (
    mutation(an_approval_is_given_by_itself, ROLLOUTS, "rollout approval"),
    mutation(the_time_of_a_stage_counts_for_nothing, ROLLOUTS, "rollout time", "rollout final"),
    mutation(a_blocker_opens_the_gate_of_readiness, ROLLOUTS, "rollout readiness"),
    mutation(nobody_reads_the_metric_of_deprecated_apis, ROLLOUTS, "rollout readiness"),
    mutation(nobody_reads_what_flux_has_applied, ROLLOUTS, "rollout readiness"),
    mutation(nobody_reads_clusters_for_a_gate, ROLLOUTS, "rollout readiness"),
    mutation(a_check_that_has_failed_opens_its_gate, ROLLOUTS, "rollout check"),
    mutation(any_answer_of_an_endpoint_opens_its_gate, ROLLOUTS, "rollout check"),
    mutation(any_answer_of_a_workspace_opens_its_gate, ROLLOUTS, "rollout check"),
    mutation(an_alert_that_fires_keeps_no_gate_shut, ROLLOUTS, "rollout check"),
    mutation(everybody_approves_whatever_the_role, ROLLOUTS, "rollout approval"),
    mutation(an_author_approves_the_own_commit, ROLLOUTS, "rollout approval"),
    mutation(a_stage_is_approved_at_any_hour, ROLLOUTS, "rollout approval"),
    mutation(an_approval_never_expires, ROLLOUTS, "rollout approval"),
    mutation(whoever_states_it_approves_for_a_system, ROLLOUTS, "rollout approval"),
    mutation(a_final_gate_counts_for_nothing, ROLLOUTS, "rollout final"),
    mutation(one_person_approves_for_all, ROLLOUTS, "rollout approval"),
)
