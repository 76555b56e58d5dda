"""Gates of stages in the pipeline: a time, hours and a role, with who answers for them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.rollout import act_on_rollout
from shared.app.api.views.rollouts import rollout_view, rollouts_view
from shared.app.api.views.why import why_view
from shared.cluster.failures.errors import Unauthorized
from shared.cluster.queues.messages import CLOCKS_DIFFER
from shared.rollouts.rollout import RolloutState
from shared.rollouts.rollout_acts import ActKind
from tests.support.pipeline_runs import push, status
from tests.support.staged_fleets import (
    ALL_AT_ONCE,
    DEV,
    PROD,
    act,
    changed,
    ready_fleet,
    rollout_of,
    staged,
    tags,
)

pytestmark = pytest.mark.lives

GATED = """\
  rollout:
    stages:
      - {{name: first, select: {{environments: [development]}}, groups: [{{maxConcurrency: "100%"}}]}}
      - name: second
        groups: [{{maxConcurrency: "100%"}}]
        {gate}
"""
AFTER = GATED.format(gate="gate: {owner: release-managers, reason: a night in development, after: 8h}")


def waiting(rollout: str) -> tuple[MemoryCloud, str]:
    """Return a fleet whose second stage waits, and the commit."""
    cloud = ready_fleet(rollout)
    commit = push(cloud, staged(rollout, tags("one")))
    cloud.run(seconds=600)
    assert changed(cloud, "one") == {*DEV}
    return cloud, commit


def approve(cloud: MemoryCloud, commit: str, *roles: str) -> int:
    found = act_on_rollout(commit, ActKind.APPROVE, "second", "ops", cloud.ports, roles=roles)
    cloud.run(seconds=60)
    return found.status


def test_a_stage_waits_for_a_time_after_the_one_before_and_then_begins_by_itself() -> None:
    cloud, commit = waiting(AFTER)
    why = why_view("b1", cloud.ports)
    assert why is not None
    wait = why["rollout"]
    assert wait is not None
    assert (wait["reason"], wait["owner"], wait["because"]) == (
        "time",
        "release-managers",
        "a night in development",
    )
    assert "when stage second may begin (release-managers: a night in development)" in wait["waits"]
    view = rollout_view(commit, cloud.ports)
    assert view is not None
    gate = view["stages"][1]["gate"]
    assert gate is not None
    assert (gate["reachedAt"], view["stages"][0]["gate"]) == (wait["since"], None)
    assert "waiting for the time of a stage" in status(cloud, commit)[1]
    reached = rollout_of(cloud, commit).reached(1)
    assert reached is not None
    cloud.run(seconds=(reached + timedelta(hours=8) - cloud.clock()).total_seconds() - 1)
    assert changed(cloud, "one") == {*DEV}
    cloud.run(seconds=120)
    assert changed(cloud, "one") == {*DEV, *PROD}
    cloud.run()
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED


def test_a_stage_begins_at_its_time_also_where_the_clock_of_the_planner_is_behind() -> None:
    rollout = GATED.format(gate="gate: {owner: a, reason: b, after: 15m}")
    cloud, commit = waiting(rollout)
    reached = rollout_of(cloud, commit).reached(1)
    assert reached is not None
    cloud.with_ports(lambda ports: replace(ports, clock=lambda: cloud.clock() - CLOCKS_DIFFER / 2))
    cloud.run(seconds=(reached + timedelta(minutes=15) - cloud.clock()).total_seconds() + 8)
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_however_often_a_time_that_is_days_away_is_asked_for_few_messages_wait_for_it() -> None:
    cloud, _ = waiting(GATED.format(gate="gate: {owner: a, reason: b, after: 72h}"))
    cloud.run(seconds=6 * 3600)
    assert cloud.broker.counts("plans").scheduled < 10


def test_a_rollout_that_its_planner_left_before_it_was_under_way_is_superseded() -> None:
    cloud, commit = waiting(GATED.format(gate="approval: true"))
    left = "f" * 40
    cloud.state.save_rollout(replace(rollout_of(cloud, commit), commit=left, etag=""))
    view = rollout_view(left, cloud.ports)
    assert view is not None
    assert view["state"] == f"Superseded by {commit[:8]}"
    states = {rollout["commit"]: rollout["state"] for rollout in rollouts_view(cloud.ports)["rollouts"]}
    assert (states[left], states[commit]) == (view["state"], "Waiting for approval")
    assert (approve(cloud, left), approve(cloud, commit)) == (409, 202)


def test_a_commit_about_something_else_does_not_begin_the_time_of_a_stage_again() -> None:
    cloud, first = waiting(AFTER)
    reached = rollout_of(cloud, first).reached(1)
    cloud.run(seconds=3600)
    second = push(cloud, staged(AFTER, tags("one")) | {"README.md": b"something else"})
    cloud.run(seconds=60)
    assert (rollout_of(cloud, second).reached(1), rollout_of(cloud, first).state) == (
        reached,
        RolloutState.SUPERSEDED,
    )
    third = push(cloud, staged(AFTER, tags("two")))
    cloud.run(seconds=600)
    again = rollout_of(cloud, third).reached(1)
    assert reached is not None
    assert again is not None
    assert again > reached + timedelta(hours=1)


def test_a_stage_does_not_begin_before_a_time() -> None:
    rollout = GATED.format(gate='gate: {owner: a, reason: b, notBefore: "2026-01-03T06:00:00Z"}')
    cloud, _ = waiting(rollout)
    cloud.run(seconds=86400)
    assert changed(cloud, "one") == {*DEV}
    cloud.run(seconds=86400 + 6 * 3600)
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_an_override_opens_a_gate_that_waits_for_a_time_and_none_that_waits_for_an_approval() -> None:
    cloud, commit = waiting(AFTER)
    act(cloud, commit, "override")
    cloud.run(seconds=600)
    assert changed(cloud, "one") == {*DEV, *PROD}
    cloud, commit = waiting(
        GATED.format(gate="approval: true\n        gate: {owner: a, reason: b, after: 1h}")
    )
    act(cloud, commit, "override")
    cloud.run(seconds=7200)
    assert changed(cloud, "one") == {*DEV}
    act(cloud, commit, "approve", "second")
    cloud.run(seconds=600)
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_a_stage_with_a_role_is_approved_by_nobody_else() -> None:
    cloud, commit = waiting(GATED.format(gate="approval: true\n        approvalRole: Admin"))
    assert approve(cloud, commit, "Approver") == 403
    assert changed(cloud, "one") == {*DEV}
    assert approve(cloud, commit, "Admin") == 202
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_an_approval_outside_the_hours_of_a_stage_does_not_count() -> None:
    hours = "{timeZone: UTC, recurrence: FREQ=DAILY, start: '09:00', duration: 8h}"
    cloud, commit = waiting(GATED.format(gate=f"approval: true\n        approvalHours: {hours}"))
    refused = act_on_rollout(commit, ActKind.APPROVE, "second", "ops", cloud.ports)
    assert refused.status == 409
    assert "FREQ=DAILY from 09:00 UTC" in refused.body["error"]
    nine = cloud.clock().replace(hour=9, minute=0, second=0, microsecond=0)
    cloud.run(seconds=(nine - cloud.clock()).total_seconds() + 60)
    assert approve(cloud, commit) == 202
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_a_stage_with_nothing_to_start_needs_nobody() -> None:
    rollout = GATED.format(gate="approval: true")
    cloud, commit = waiting(rollout)
    act(cloud, commit, "approve", "second")
    cloud.run()
    again = push(cloud, staged(rollout, tags("two"), only=DEV) | only_prod_as_before(rollout))
    cloud.run()
    assert rollout_of(cloud, again).state is RolloutState.COMPLETED


def only_prod_as_before(rollout: str) -> dict[str, bytes]:
    """Return the manifests of production as they were."""
    files = staged(rollout, tags("one"))
    return {path: text for path, text in files.items() if path.split("/")[1:2] in [[name] for name in PROD]}


CHECKED = GATED.format(gate='gate: {owner: qa, reason: end to end, commitChecks: ["e2e tests"]}')


def concluded(cloud: MemoryCloud, commit: str, conclusion: str | None) -> None:
    """Let a check run of a commit end, or begin with no conclusion."""
    body = {"name": "e2e tests", "status": "in_progress"} | ({"conclusion": conclusion} if conclusion else {})
    cloud.repository.pulls.write_check(commit, body)


def reason_of(cloud: MemoryCloud) -> tuple[str, str]:
    why = why_view("b1", cloud.ports)
    assert why is not None
    assert why["rollout"] is not None
    return why["rollout"]["reason"], why["rollout"]["waits"]


def test_a_stage_waits_until_a_check_run_of_the_commit_has_succeeded() -> None:
    cloud, commit = waiting(CHECKED)
    assert reason_of(cloud) == (
        "check",
        "waits for checks of stage second: e2e tests missing (qa: end to end)",
    )
    for conclusion, text in (
        (None, "running"),
        ("failure", "failed (failure)"),
        ("neutral", "failed (neutral)"),
    ):
        concluded(cloud, commit, conclusion)
        cloud.run(seconds=900)
        assert f"e2e tests {text}" in reason_of(cloud)[1]
        assert changed(cloud, "one") == {*DEV}
    concluded(cloud, commit, "success")
    cloud.run(seconds=1800)
    assert changed(cloud, "one") == {*DEV, *PROD}
    cloud.run()
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED


def test_a_check_run_of_another_commit_opens_no_gate_and_an_override_does() -> None:
    cloud, commit = waiting(CHECKED)
    concluded(cloud, "0" * 40, "success")
    cloud.run(seconds=1800)
    assert changed(cloud, "one") == {*DEV}
    act(cloud, commit, "override")
    cloud.run(seconds=600)
    assert changed(cloud, "one") == {*DEV, *PROD}


class NoChecks:
    """A host whose check runs cannot be read."""

    def __init__(self, inner: object) -> None:
        self._inner, self.calls = inner, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def conclusions(self, *_: str) -> list[str]:
        self.calls += 1
        raise Unauthorized("give the token the permission Checks: read")


def test_a_check_that_cannot_be_read_holds_its_stage_says_why_and_is_read_less_and_less() -> None:
    cloud, _ = waiting(CHECKED)
    refused = NoChecks(cloud.ports.git_host)
    cloud.with_ports(lambda ports: replace(ports, git_host=refused))
    cloud.run(seconds=86400)
    assert "e2e tests unknown (Unauthorized: give the token the permission" in reason_of(cloud)[1]
    assert changed(cloud, "one") == {*DEV}
    assert 24 * 4 <= refused.calls <= 24 * 4 + 40


def remedy_of(cloud: MemoryCloud) -> str:
    why = why_view("b1", cloud.ports)
    assert why is not None
    return why["suggestedAction"]


@pytest.mark.parametrize(
    ("gate", "remedy"),
    [
        ("", "`roadstead rollout approve second` lets the stage begin."),
        ("approvers: 2", "`roadstead rollout approve second` by 2 more people lets the stage begin."),
        (
            "approvalRole: Admin",
            "`roadstead rollout approve second` by somebody with the role Admin lets the stage begin.",
        ),
        (
            "approvalHours: {timeZone: UTC, recurrence: FREQ=DAILY, start: '09:00', duration: 8h}",
            "`roadstead rollout approve second` lets the stage begin; it counts in the hours of the stage"
            " alone, FREQ=DAILY from 09:00 UTC.",
        ),
    ],
)
def test_a_stage_that_waits_for_an_approval_says_who_gives_it_and_when(gate: str, remedy: str) -> None:
    cloud, _ = waiting(GATED.format(gate=f"approval: true\n        {gate}"))
    assert remedy_of(cloud) == remedy


def test_a_cluster_that_changes_and_waits_for_a_stage_does_not_say_that_no_action_is_needed() -> None:
    cloud = ready_fleet()
    cloud.azure.interventions.stick_next("b1")
    push(cloud, staged(ALL_AT_ONCE, tags("one")))
    cloud.run(seconds=60)
    push(cloud, staged(GATED.format(gate="approval: true"), tags("two")))
    cloud.run(seconds=600)
    why = why_view("b1", cloud.ports)
    assert why is not None
    assert (why["phase"], why["rollout"] and why["rollout"]["reason"]) == ("Updating", "approval")
    assert why["suggestedAction"] == "`roadstead rollout approve second` lets the stage begin."
