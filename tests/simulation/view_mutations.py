"""Mutations of what the API and the command show: each hides something, and the simulation must fail."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from cli.terminal import render
from shared.app.api import schema
from shared.app.api.parts import fleet_problem
from shared.app.api.views import clusters, why
from shared.app.planner import commit_status
from shared.cluster.outcomes import Wait
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.diagnosis import diagnose
from shared.cluster.transitions import apply_outcome
from tests.simulation.mutations import Mutation, mutation


def an_invalid_fleet_file_is_not_shown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(clusters, "fleet_problem", lambda fleet, now, *_, **__: fleet_problem(fleet, now))


def clusters_that_are_not_created_are_not_shown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(clusters, "not_created", lambda *_: [])


def what_a_plan_does_not_carry_out_is_not_shown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(clusters, "items_of", lambda _: {})


def every_cluster_of_a_plan_counts_as_in_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit_status, "reached", lambda *_, **__: True)


def a_wait_has_no_reason(patch: pytest.MonkeyPatch) -> None:
    original = apply_outcome._wait

    def wait(record: ClusterRecord, outcome: Wait, now: Any) -> ClusterRecord:
        return original(record, replace(outcome, reason=""), now)

    patch.setattr(apply_outcome, "_wait", wait)


def a_suspension_asks_nobody_to_act(patch: pytest.MonkeyPatch) -> None:
    def without_action(*args: Any, **rest: Any) -> Any:
        return replace(diagnose(*args, **rest), suggested_action="")

    patch.setattr(why, "diagnose", without_action)


def the_command_does_not_print_what_waits(patch: pytest.MonkeyPatch) -> None:
    original = render._head

    def head(view: schema.FleetView, now: datetime) -> Any:
        view["waiting"] = ""
        return original(view, now)

    patch.setattr(render, "_head", head)


def _mutation(remove: Any, *rules: str, often: str = "") -> Mutation:
    return mutation(remove, "refused", *rules, often=often)


VIEW_MUTATIONS = (
    _mutation(an_invalid_fleet_file_is_not_shown, "silent", often="make-fleet-invalid"),
    _mutation(clusters_that_are_not_created_are_not_shown, "untrue"),
    _mutation(what_a_plan_does_not_carry_out_is_not_shown, "untrue", "silent"),
    _mutation(every_cluster_of_a_plan_counts_as_in_sync, "untrue"),
    _mutation(a_wait_has_no_reason, "silent"),
    _mutation(a_suspension_asks_nobody_to_act, "silent"),
    _mutation(the_command_does_not_print_what_waits, "silent"),
)
