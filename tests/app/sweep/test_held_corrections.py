"""Freezes and change windows hold corrections of drift; the replay of a person needs an override then."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import azure.functions as func
import pytest

from handlers.sign_in import KEY
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.app.api.parts import FIRST_PAGE
from shared.app.api.views.drift import drift_view
from shared.app.api.views.why import why_view
from shared.app.outbox import request_whole_sweep
from shared.cluster.queues.messages import CLOCKS_DIFFER, SweepRequest
from shared.cluster.record_parts import Phase
from shared.plan.holds import Closure
from shared.ports import Azure
from shared.ports.azure import GetCluster, ListClusters, Page
from tests.support.function_calls import ADMIN_KEY, functions
from tests.support.one_cluster import ONE, files, record
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import LATER, delete_by_hand, handle, tag_by_hand

pytestmark = pytest.mark.lives

START = "  drift: {action: correct, stoppedCluster: start}\n  tags: {cost: a}\n"
CORRECT = "  drift: {action: correct, missingCluster: recreate}\n  tags: {cost: a}\n"


def freeze(starts: datetime, ends: datetime, extra: str = "") -> bytes:
    """Return YAML of a freeze, for the end of fleet.yaml."""
    times = f'starts: "{starts.isoformat()}", ends: "{ends.isoformat()}"'
    who = "owner: platform, reason: nobody is here"
    return f"  rollout:\n    freezes: [{{name: holidays, {times}, {who}{extra}}}]\n".encode()


def frozen(extra: str = "", hours: int = 48, policy: str = CORRECT) -> MemoryCloud:
    """Return a cloud whose cluster is Ready, and frozen from now on."""
    cloud = MemoryCloud(throttle=False)
    wanted = files(policy)
    push(cloud, wanted)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    now = cloud.clock().replace(microsecond=0)
    push(cloud, frozen_files(now, now + timedelta(hours=hours), extra, policy))
    cloud.run(seconds=600)
    assert cloud.state.fleet().rules.calendar.freezes
    return cloud


def frozen_files(starts: datetime, ends: datetime, extra: str, policy: str) -> dict[str, bytes]:
    wanted = files(policy)
    wanted["fleet.yaml"] += freeze(starts, ends, extra)
    return wanted


def cost(cloud: MemoryCloud) -> str:
    live = cloud.azure.peek(ONE)
    assert live is not None
    return str(live["tags"]["cost"])


def sweep_now(cloud: MemoryCloud) -> None:
    """Let a sweep run, and what follows within half an hour."""
    cloud.clock.advance(LATER)
    cloud.azure.complete_due()
    request_whole_sweep(cloud.ports)
    cloud.run(seconds=1800)


def ask(cloud: MemoryCloud, body: object, key: str = ADMIN_KEY) -> int:
    """Return the status of a replay that somebody with a key asks for."""
    headers = {KEY: key, "Content-Type": "application/json"}
    sent, route = json.dumps(body).encode(), {"name": "one"}
    request = func.HttpRequest(
        "POST", "/api/clusters/one/replay", body=sent, headers=headers, route_params=route
    )
    reply: func.HttpResponse = functions(cloud.ports)["replay"].get_user_function()(request)
    return int(reply.status_code)


def test_a_freeze_holds_a_correction_shows_it_and_it_starts_when_the_freeze_ends() -> None:
    cloud = frozen()
    ends = cloud.state.fleet().rules.calendar.freezes[0][1].ends
    tag_by_hand(cloud, ONE, cost="b")
    sweep_now(cloud)
    held = record(cloud).divergence.held
    assert held == Closure("holidays", ends, held.since if held else ends, "platform", "nobody is here")
    assert (cost(cloud), record(cloud).job.active) == ("b", False)
    since = record(cloud).divergence.held
    sweep_now(cloud)
    assert record(cloud).divergence.held == since
    why = why_view("one", cloud.ports)
    assert why is not None
    assert "a freeze holds its job until" in why["doing"]
    assert why["nextAt"] == ends.isoformat()
    shown = drift_view(cloud.ports, FIRST_PAGE)["clusters"][0]["held"]
    assert shown is not None
    assert (shown["name"], shown["owner"], shown["until"]) == ("holidays", "platform", ends.isoformat())
    cloud.run(seconds=(ends - cloud.clock()).total_seconds() + 3600)
    assert (cost(cloud), record(cloud).divergence.held) == ("a", None)


def test_a_correction_starts_when_the_freeze_ends_also_by_an_instance_whose_clock_is_behind() -> None:
    cloud = frozen()
    ends = cloud.state.fleet().rules.calendar.freezes[0][1].ends
    tag_by_hand(cloud, ONE, cost="b")
    sweep_now(cloud)
    cloud.with_ports(lambda ports: replace(ports, clock=lambda: cloud.clock() - CLOCKS_DIFFER / 2))
    cloud.run(seconds=(ends - cloud.clock()).total_seconds() + 60)
    assert (cost(cloud), record(cloud).divergence.held) == ("a", None)


def azure_works(cloud: MemoryCloud) -> Azure:
    """Let Azure show that it works on the cluster, from now on; return Azure as it is."""
    azure = cloud.ports.azure

    def busy(one: Any) -> Any:
        return {**one, "properties": {**one["properties"], "provisioningState": "Updating"}}

    def listed(operation: ListClusters) -> Page:
        shown = azure.call(operation)
        return replace(shown, documents=[busy(document) for document in shown.documents])

    on_azure(cloud, ListClusters, listed)
    on_azure(cloud, GetCluster, lambda operation: busy(azure.call(operation)))
    return azure


def differs(cloud: MemoryCloud) -> None:
    tag_by_hand(cloud, ONE, cost="b")


def stops(cloud: MemoryCloud) -> None:
    cloud.azure.interventions.stop(ONE)


@pytest.mark.parametrize("happens", [differs, stops])
def test_the_age_of_a_hold_survives_that_azure_works_on_the_cluster(
    happens: Callable[[MemoryCloud], None],
) -> None:
    cloud = frozen(policy=START)
    happens(cloud)
    sweep_now(cloud)
    held = record(cloud).divergence.held
    assert held is not None
    azure = azure_works(cloud)
    sweep_now(cloud)
    handle(cloud, SweepRequest(clusters=("one",)))
    assert record(cloud).divergence.held == held
    cloud.with_ports(lambda ports: replace(ports, azure=azure))
    sweep_now(cloud)
    assert record(cloud).divergence.held == held
    azure_works(cloud)
    cloud.run(seconds=(held.until - cloud.clock()).total_seconds() + 60 if held.until else 0)
    assert record(cloud).divergence.held is None, "nothing holds it any more"


def test_however_often_a_correction_is_held_few_messages_wait_for_the_end_of_its_freeze() -> None:
    cloud = frozen(hours=21 * 24)
    tag_by_hand(cloud, ONE, cost="b")
    for _ in range(12):
        sweep_now(cloud)
    assert cloud.broker.counts("plans").scheduled < 10


def test_a_freeze_that_is_not_for_corrections_holds_none() -> None:
    cloud = frozen(", appliesTo: [changes, deletes]")
    tag_by_hand(cloud, ONE, cost="b")
    sweep_now(cloud)
    assert cost(cloud) == "a"


def test_a_missing_cluster_is_created_again_in_a_freeze_that_is_not_for_creations() -> None:
    cloud = frozen()
    delete_by_hand(cloud, ONE)
    sweep_now(cloud)
    assert phases(cloud) == {"one": Phase.READY}


def test_a_freeze_for_creations_holds_that_a_missing_cluster_is_created_again() -> None:
    cloud = frozen(", appliesTo: [creations]")
    delete_by_hand(cloud, ONE)
    sweep_now(cloud)
    assert phases(cloud) == {"one": Phase.FAILED}
    why = why_view("one", cloud.ports)
    assert why is not None
    assert "a freeze holds its job until" in why["doing"]
    cloud.run(seconds=50 * 3600)
    assert phases(cloud) == {"one": Phase.READY}


def test_a_replay_in_a_freeze_needs_an_override_of_an_approver_with_a_reason() -> None:
    cloud = frozen()
    tag_by_hand(cloud, ONE, cost="b")
    sweep_now(cloud)
    refused = replay("one", "ops", cloud.ports)
    assert refused.status == 409
    assert "a freeze holds its job until" in str(refused.body)
    assert "roadstead replay one --override" in str(refused.body)
    body = {"override": True, "reason": "the bill"}
    assert ask(cloud, {"override": True}) == 400
    assert ask(cloud, body, "local-key-of-an-operator") == 403
    assert ask(cloud, {"reason": "the bill"}) == 409
    assert ask(cloud, body) == 202
    cloud.run(seconds=1800)
    assert cost(cloud) == "a"
    acts = [(act.reason, act.result) for act in cloud.state.acts(9) if act.action == "replay-override"]
    assert acts == [("the bill", "accepted")]


def test_the_messages_that_wait_for_the_end_of_a_freeze_read_no_cluster_before_it() -> None:
    cloud = frozen(hours=48)
    tag_by_hand(cloud, ONE, cost="b")
    sweep_now(cloud)
    read, get = list[str](), cloud.ports.azure.call

    def noted(operation: GetCluster) -> object:
        read.append(operation.target.name)
        return get(operation)

    on_azure(cloud, GetCluster, noted)
    cloud.run(seconds=24 * 3600)
    assert (read, cost(cloud)) == ([], "b")
    cloud.run(seconds=25 * 3600)
    assert cost(cloud) == "a"
