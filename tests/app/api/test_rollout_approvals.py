"""Approvals of stages: by several people, and by none who wrote the commit."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import TypeAdapter

from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.rollout import act_on_rollout
from shared.app.api.views.rollouts import rollout_view
from shared.app.planner.planner import handle
from shared.cluster.queues.message_parts import RolloutAct
from shared.cluster.queues.messages import ActRequest
from shared.rollouts.rollout import Decisions, Rollout, StageDecision
from shared.rollouts.rollout_acts import ActKind
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around
from tests.support.sample import sample
from tests.support.staged_fleets import DEV, PROD, changed, ready_fleet, rollout_of, staged, tags

pytestmark = pytest.mark.lives

OTHER = "other@example.com"
STORED = TypeAdapter(Rollout)
STAGES = """\
  rollout:
    stages:
      - {{name: first, select: {{environments: [development]}}, groups: [{{maxConcurrency: "100%"}}]}}
      - {{name: second, approval: true, {asks}, groups: [{{maxConcurrency: "100%"}}]}}
"""


def waiting(asks: str) -> tuple[MemoryCloud, str]:
    """Return a fleet whose second stage waits for approvals, and the commit."""
    rollout = STAGES.format(asks=asks)
    cloud = ready_fleet(rollout)
    commit = push(cloud, staged(rollout, tags("one")))
    cloud.run()
    assert changed(cloud, "one") == {*DEV}
    return cloud, commit


def approve(cloud: MemoryCloud, commit: str, by: str, *addresses: str, person: bool = True) -> int:
    """Let somebody approve, and return the status of the answer."""
    addressed = frozenset(addresses)
    found = act_on_rollout(
        commit, ActKind.APPROVE, "second", by, cloud.ports, addresses=addressed, person=person
    )
    cloud.run(seconds=60)
    return found.status


def missing(cloud: MemoryCloud, commit: str) -> int:
    view = rollout_view(commit, cloud.ports)
    assert view is not None
    return view["stages"][1]["approvalsMissing"]


def test_two_different_people_approve_and_one_of_them_twice_does_not_count() -> None:
    cloud, commit = waiting("approvers: 2")
    assert (approve(cloud, commit, "one"), missing(cloud, commit)) == (202, 1)
    assert (approve(cloud, commit, "one"), missing(cloud, commit)) == (409, 1)
    assert changed(cloud, "one") == {*DEV}
    assert approve(cloud, commit, "two") == 202
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_a_key_or_an_app_is_no_other_person_than_those_who_approve() -> None:
    cloud, commit = waiting("approvers: 2")
    for by in ("the key of Approver", "app 0b1c"):
        assert approve(cloud, commit, by, person=False) == 202
        cloud.clock.advance(1)
        assert changed(cloud, "one") == ({*DEV} if by.startswith("the") else {*DEV, *PROD})
    cloud, commit = waiting("approvers: 2")
    assert (approve(cloud, commit, "the key of Approver", person=False), missing(cloud, commit)) == (202, 1)
    assert (approve(cloud, commit, "one@example.com"), missing(cloud, commit)) == (202, 1)
    assert (approve(cloud, commit, "app 0b1c", person=False), missing(cloud, commit)) == (409, 1)
    assert changed(cloud, "one") == {*DEV}
    assert approve(cloud, commit, "app owner") == 202, "a person may have any name"
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_an_author_of_the_commit_does_not_approve_it_where_somebody_else_has_to() -> None:
    cloud, commit = waiting("approvalByOthers: true")
    (change,) = cloud.repository.changes(commit, "", 1)
    assert approve(cloud, commit, "author", change.author) == 403
    assert approve(cloud, commit, "a key") == 403
    assert changed(cloud, "one") == {*DEV}
    assert approve(cloud, commit, "other", OTHER) == 202
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_an_approval_expires_if_its_stage_does_not_begin() -> None:
    cloud, commit = waiting("approvers: 2, approvalExpires: 1h")
    assert approve(cloud, commit, "one") == 202
    cloud.clock.advance(3600)
    assert missing(cloud, commit) == 2
    assert approve(cloud, commit, "two") == 202
    assert changed(cloud, "one") == {*DEV}
    assert approve(cloud, commit, "one") == 202
    assert changed(cloud, "one") == {*DEV, *PROD}


def without_effect(cloud: MemoryCloud) -> list[tuple[str, str, str]]:
    """Return the acts that say that an act on a rollout had no effect."""
    said = (act for act in cloud.state.acts(9) if act.result.startswith("no effect: "))
    return [(act.action, act.target, act.result.removeprefix("no effect: ")) for act in said]


def act_of(cloud: MemoryCloud, commit: str, kind: ActKind) -> ActRequest:
    """Return the request of an act that the API has accepted; a pause comes before a resume."""
    subjects = {ActKind.APPROVE: "second", ActKind.SKIP: "b1"}
    lifts = None
    if kind is ActKind.RESUME:
        handle(act_of(cloud, commit, ActKind.PAUSE), cloud.ports)
        paused = rollout_of(cloud, commit).people.paused
        lifts = paused.at if paused else None
    act = RolloutAct(
        commit=commit,
        kind=kind.value,
        by="ada",
        at=cloud.clock(),
        subject=subjects.get(kind, ""),
        lifts=lifts,
    )
    return ActRequest(act=act)


def test_who_approved_a_stage_can_read_that_the_rollout_was_aborted_before() -> None:
    cloud, commit = waiting("approvers: 1")
    assert act_on_rollout(commit, ActKind.ABORT, "", "ops", cloud.ports).status == 202
    assert act_on_rollout(commit, ActKind.APPROVE, "second", "ada", cloud.ports).status == 202
    cloud.run()
    assert changed(cloud, "one") == {*DEV}
    (act,) = [act for act in cloud.state.acts(9) if act.result]
    assert (act.by, act.action, act.target) == ("ada", "rollout-approve", f"{commit}/second")
    assert act.result == (
        f"no effect: the rollout of {commit[:8]} was no longer under way: aborted; "
        "roadstead rollout list shows others"
    )


@pytest.mark.parametrize("kind", sample("late acts", ActKind, 2))
def test_an_act_that_comes_after_the_end_of_its_rollout_is_answered_once(kind: ActKind) -> None:
    cloud, commit = waiting("approvers: 1")
    request = act_of(cloud, commit, kind)
    push(cloud, staged(STAGES.format(asks="approvers: 1"), tags("two")))
    cloud.run()
    handle(request, cloud.ports)
    handle(request, cloud.ports)
    ((action, _, why),) = without_effect(cloud)
    assert action == f"rollout-{kind}"
    assert "was no longer under way: superseded by " in why


@pytest.mark.parametrize("kind", sample("acts again", ActKind, 2))
def test_an_act_that_had_its_effect_is_not_answered_when_it_comes_again(kind: ActKind) -> None:
    cloud, commit = waiting("approvers: 2")
    request = act_of(cloud, commit, kind)
    handle(request, cloud.ports)
    handle(request, cloud.ports)
    push(cloud, staged(STAGES.format(asks="approvers: 2"), tags("two")))
    cloud.run()
    handle(request, cloud.ports)
    assert without_effect(cloud) == []


def test_a_resume_that_comes_after_another_pause_says_so() -> None:
    cloud, commit = waiting("approvers: 1")
    request, second = act_of(cloud, commit, ActKind.RESUME), cloud.clock() + timedelta(seconds=1)
    paused = Decisions(StageDecision("eva", second))
    cloud.state.save_rollout(replace(rollout_of(cloud, commit), people=paused))
    handle(request, cloud.ports)
    ((action, _, why),) = without_effect(cloud)
    assert action == "rollout-resume"
    assert why == f"something else pauses the rollout of {commit[:8]} since then; resume it again"


def test_an_override_of_a_commit_without_a_rollout_is_answered_once_another_one_is_planned() -> None:
    cloud, _ = waiting("approvers: 1")
    request = act_of(cloud, "c" * 40, ActKind.OVERRIDE)
    handle(request, cloud.ports)
    handle(request, cloud.ports)
    assert without_effect(cloud) == [
        ("rollout-override", "c" * 40, "another commit than cccccccc was planned since; act on that one")
    ]


def test_an_act_that_a_crash_interrupts_still_stops_a_planner_that_stands_still() -> None:
    cloud, commit = waiting("approvers: 1")
    save = cloud.state.save_rollout

    def dies(rollout: Rollout) -> None:
        save(rollout)
        raise Crash

    around(cloud, "state", save_rollout=dies)
    with pytest.raises(Crash):
        handle(act_of(cloud, commit, ActKind.PAUSE), cloud.ports)
    around(cloud, "state", save_rollout=save)
    before = cloud.state.fleet().etag
    handle(act_of(cloud, commit, ActKind.PAUSE), cloud.ports)
    assert cloud.state.fleet().etag != before
