"""A pause of the fleet: nothing starts in it, everybody reads why, and what waited goes on at its end."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import azure.functions as func
import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import fleet_view
from shared.app.api.views.why import why_view
from shared.app.health import Health
from shared.app.pause import NOTICED_SECONDS
from shared.app.planner.reporter import report_open_plans
from shared.cluster.record_parts import Phase
from shared.language.model.notification_kinds import NotificationKind
from tests.support import fleet_files
from tests.support.function_calls import ADMIN, functions
from tests.support.notified import kinds, notified_fleet
from tests.support.pipeline_runs import accepted, one_step_a_message, phases, push, ready, status, step_until

pytestmark = pytest.mark.lives

REASON = "errors in the shop"


def ask(cloud: MemoryCloud, act: str, **body: Any) -> tuple[int, Any]:
    headers = {**ADMIN, "Content-Type": "application/json"}
    request = func.HttpRequest("POST", f"/api/{act}", body=json.dumps(body).encode(), headers=headers)
    reply = functions(cloud.ports)[act].get_user_function()(request)
    return reply.status_code, json.loads(reply.get_body())


def pause(cloud: MemoryCloud, **lasts: float) -> str:
    """Pause the fleet, and let the time pass in which instances notice it; return its end, "" for none."""
    until = (cloud.clock() + timedelta(**lasts)).isoformat() if lasts else ""
    assert ask(cloud, "pause", reason=REASON, until=until)[0] == 200
    cloud.clock.advance(NOTICED_SECONDS + 1)
    return until


def test_a_commit_is_planned_and_waits_until_somebody_resumes_the_fleet() -> None:
    cloud = ready("one")
    before = cloud.state.fleet().commit
    pause(cloud)
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run(seconds=4000)
    planned = cloud.state.plan(commit)
    assert planned is not None
    assert [item.cluster for item in planned.plan.items if item.acts] == ["two"]
    assert (cloud.state.fleet().commit, phases(cloud)) == (before, {"one": Phase.READY})
    assert ask(cloud, "resume", reason="it was nothing") == (
        200,
        {"paused": False, "until": None, "by": "the key of Admin"},
    )
    cloud.run(seconds=900)
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert status(cloud, commit)[0] == "success"


def test_a_job_writes_nothing_in_a_pause_and_goes_on_when_that_has_ended_by_itself() -> None:
    cloud = one_step_a_message(MemoryCloud())
    push(cloud, fleet_files.fleet("one"))
    step_until(cloud, lambda: bool(accepted(cloud)))
    pause(cloud, hours=2)
    before = accepted(cloud)
    cloud.run(seconds=7000)
    assert accepted(cloud) == before
    cloud.run(seconds=1800)
    assert phases(cloud) == {"one": Phase.READY}
    assert set(accepted(cloud).values()) == {1}


def test_a_hand_over_that_has_begun_ends_with_the_clusters_that_it_has_saved() -> None:
    cloud = ready("one")
    state, saved = cloud.state, cloud.state.save_fleet
    commit = cloud.repository.push(fleet_files.fleet("one", "two"))

    def pausing(record: Any) -> Any:
        if record.planning == commit and record.handover.in_flight and state.fleet().pause is None:
            ask(cloud, "pause", reason=REASON)
        return saved(record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "save_fleet", pausing)
        assert ask(cloud, "sync")[0] == 202
        cloud.run(seconds=600)
    assert phases(cloud) == {"one": Phase.READY}
    ask(cloud, "resume")
    cloud.run(seconds=900)
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}


def test_everybody_reads_who_paused_the_fleet_until_when_and_why() -> None:
    cloud = ready("one")
    push(cloud, notified_fleet("one"))
    cloud.run()
    until = pause(cloud, hours=2)
    commit = push(cloud, notified_fleet("one", "two"))
    cloud.run(seconds=900)
    said = f"paused by the key of Admin since 2026-01-01 {cloud.state.fleet().pause.at:%H:%M} UTC, until "  # type: ignore[union-attr]
    said += f"2026-01-01 {until[11:16]} UTC: {REASON}"
    view, why = fleet_view(cloud.ports), why_view("one", cloud.ports)
    assert why is not None
    assert (view["paused"], why["paused"], Health(cloud.ports).read().paused) == (said, said, said)
    assert "roadstead resume" in view["fleetSuggestedAction"]
    report_open_plans(cloud.ports)
    assert status(cloud, commit) == ("pending", said)
    assert (NotificationKind.PAUSED, "the key of Admin", False) in kinds(cloud)
    (act,) = [act for act in cloud.state.acts(5) if act.action == "pause"]
    assert (act.reason, act.result) == (REASON, "accepted")
    cloud.run(seconds=7200)
    assert (NotificationKind.PAUSED, "the key of Admin", True) in kinds(cloud)
    assert fleet_view(cloud.ports)["paused"] == ""
    assert status(cloud, commit)[0] == "success"


def test_a_delete_that_needs_an_approval_needs_it_after_the_pause() -> None:
    cloud = ready("one", "two", "three")
    pause(cloud)
    push(cloud, fleet_files.fleet("one"))
    cloud.run(seconds=600)
    assert not [write for write in accepted(cloud) if write[0].startswith("delete")]
    ask(cloud, "resume")
    cloud.run(seconds=900)
    assert len(phases(cloud)) == 3
    assert fleet_view(cloud.ports)["needsApprovalCount"] == 2


@pytest.mark.parametrize(
    ("act", "body", "refused"),
    [
        ("pause", {}, 400),
        ("pause", {"reason": " "}, 400),
        ("pause", {"reason": "why", "until": "2026-01-01T00:00:00Z"}, 400),
        ("pause", {"reason": "why", "until": "2030-01-01T00:00:00"}, 400),
        ("pause", {"reason": "why", "until": "tomorrow"}, 400),
        ("resume", {}, 409),
    ],
)
def test_a_pause_needs_a_reason_and_an_end_to_come(act: str, body: dict[str, Any], refused: int) -> None:
    cloud = ready("one")
    cloud.clock.advance(3600)
    assert ask(cloud, act, **body)[0] == refused
    assert cloud.state.fleet().pause is None
