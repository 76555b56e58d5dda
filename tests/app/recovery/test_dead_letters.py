"""Dead letters: reported, never lost, and harmless when they are sent again."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import QUEUES, MemoryCloud
from localcloud.servicebus.world.broker_values import Draft
from shared.app.api.acts.cluster import replay
from shared.app.api.views.clusters import fleet_view
from shared.app.outbox import send
from shared.app.planner import planner
from shared.app.recovery import missed_work
from shared.app.recovery.dead_letters import MAX_BYTES, ReceivedDeadLetter, handle_dead_letter
from shared.cluster.failures.errors import Unavailable
from shared.cluster.job import Lease
from shared.cluster.outcomes import Retry
from shared.cluster.queues.envelopes import job_message
from shared.cluster.queues.message_parts import Approval, RolloutAct
from shared.cluster.queues.messages import ActRequest, PlanRequest, PreviewRequest, RolloutRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.language.model.notification_kinds import NotificationKind
from shared.ports import Message, Ports, Queue
from tests.support import fleet_files
from tests.support.collected_telemetry import watched
from tests.support.hand_overs import CONFIG
from tests.support.pipeline_runs import accepted, cloud_with, phases, push, record_of, status
from tests.support.replaced_ports import around

pytestmark = pytest.mark.lives


def received(cloud: MemoryCloud, queue: str, body: str, **changes: Any) -> ReceivedDeadLetter:
    letter = ReceivedDeadLetter(
        queue, "7:m", cloud.clock(), body.encode(), body, "MaxDeliveryCountExceeded", "after 10 attempts"
    )
    return replace(letter, **changes)


def working() -> tuple[MemoryCloud, ClusterRecord]:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    cloud.run(until=lambda: any(record.job.step.name == "cluster" for record in cloud.state.clusters()))
    record = record_of(cloud, "one")
    return cloud, record


def test_the_dead_letter_of_a_job_fails_the_job_with_its_last_error() -> None:
    cloud, record = working()
    error = Unavailable("Azure did not answer", code="ServiceUnavailable", request_id="r-1")
    record = cloud.state.save(apply_outcome(record, Retry(error), now=cloud.clock(), jitter=0))
    cloud.clock.advance(60)
    handle_dead_letter(received(cloud, "jobs", job_message(record).model_dump_json()), cloud.ports)
    failed = record_of(cloud, "one")
    assert failed.failed
    failure = failed.job.step.failure
    assert failure is not None
    assert (failure.kind, failure.code, failure.request_id) == ("DeadLettered", "ServiceUnavailable", "r-1")
    assert (
        "MaxDeliveryCountExceeded: after 10 attempts; the last error, after 1 attempts: Unavail"
        in failure.message
    )
    assert record.job.step.failure is not None
    assert failure.since == record.job.step.failure.since
    assert cloud.state.events("one", 1)[0].reason == "Failed"
    assert failed.retryable_failure
    assert cloud.state.count_dead_letters() == 0


def test_a_job_failed_by_a_dead_letter_can_be_replayed() -> None:
    cloud, record = working()
    handle_dead_letter(received(cloud, "jobs", job_message(record).model_dump_json()), cloud.ports)
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert replay("one", "", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


@pytest.mark.parametrize(
    "other", [{"sequence": 1}, {"generation": 9}, {"uid": "another"}, {"cluster": "nobody"}]
)
def test_a_dead_letter_of_another_moment_does_nothing(other: Mapping[str, Any]) -> None:
    cloud, record = working()
    handle_dead_letter(
        received(cloud, "jobs", job_message(record).model_copy(update=other).model_dump_json()), cloud.ports
    )
    assert cloud.state.cluster("one") == record
    assert cloud.state.count_dead_letters() == 0


def test_a_running_step_is_not_interrupted() -> None:
    cloud, record = working()
    lease = Lease("somebody", cloud.clock().replace(year=2027), cloud.clock())
    record = cloud.state.save(replace(record, job=replace(record.job, lease=lease)))
    handle_dead_letter(received(cloud, "jobs", job_message(record).model_dump_json()), cloud.ports)
    assert cloud.state.cluster("one") == record


def test_a_job_failed_by_a_dead_letter_is_measured_once_as_one_that_failed() -> None:
    cloud, record = working()
    collected = watched(cloud)
    letter = received(cloud, "jobs", job_message(record).model_dump_json())
    for _ in range(2):
        handle_dead_letter(letter, cloud.ports)
    (failed,) = collected.metrics["roadstead.failures"]
    assert (dict(failed.attributes), failed.value) == ({"error": "DeadLettered", "step": "cluster"}, 1)
    (ended,) = collected.metrics["roadstead.job.duration"]
    assert (dict(ended.attributes), ended.count) == ({"recipe": "provision", "result": "Failed"}, 1)


def test_an_approval_that_was_lost_is_still_asked_for_when_another_request_is_lost() -> None:
    cloud = MemoryCloud()
    commit = push(cloud, fleet_files.fleet("one"))
    cloud.run()
    approval = Approval(commit=commit, clusters=("one",), by="ada", at=cloud.clock())
    for request in (PlanRequest(reason="approve", approval=approval), PlanRequest(reason="push")):
        handle_dead_letter(received(cloud, "plans", request.model_dump_json()), cloud.ports)
    problem = cloud.state.fleet().problem
    assert problem is not None
    assert problem.approve_again == commit


def test_a_plan_request_becomes_the_fleets_problem_and_the_timer_plans_again() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    handle_dead_letter(received(cloud, "plans", PlanRequest(reason="push").model_dump_json()), cloud.ports)
    assert str(cloud.state.fleet().problem).startswith("a plan request failed: MaxDelivery")
    assert missed_work.plan_missed_head(cloud.ports)
    cloud.run(until=lambda: not cloud.state.fleet().problem)
    assert cloud.state.fleet().problem is None


def test_a_planned_commit_does_not_keep_the_outage_that_a_lost_request_reported() -> None:
    cloud = MemoryCloud()
    commit = push(cloud, fleet_files.fleet("one"))
    cloud.run()
    request = PlanRequest(commit=commit, reason="push", attempt=planner.OUTAGE)

    def away(*_: object) -> Any:
        raise Unavailable("it does not answer")

    state, plans = cloud.ports.state, cloud.ports.plans
    around(cloud, "state", fleet=away)
    around(cloud, "plans", send=away)
    with pytest.raises(Unavailable):
        planner.handle(request, cloud.ports)
    assert status(cloud, commit)[0] == "error"
    cloud.ports = replace(cloud.ports, state=state, plans=plans)
    handle_dead_letter(received(cloud, "plans", request.model_dump_json()), cloud.ports)
    assert missed_work.plan_missed_head(cloud.ports)
    cloud.run(seconds=600)
    assert cloud.state.fleet().problem is None
    assert status(cloud, commit) == ("success", "1 of 1 clusters in sync (1 create)")


def test_approvals_and_pull_requests_are_saved_because_nothing_sends_them_again() -> None:
    cloud = MemoryCloud()
    approval = Approval(commit="c" * 40, clusters=("one",), by="somebody", at=cloud.clock())
    requests = (PlanRequest(again=True, approval=approval), PreviewRequest(pull=3))
    for number, request in enumerate(requests):
        handle_dead_letter(received(cloud, "plans", request.model_dump_json(), id=str(number)), cloud.ports)
    saved = [letter.body for letter in cloud.state.dead_letters(5)]
    assert saved == [request.model_dump_json() for request in requests]
    assert "approve cccccccc again" in str(cloud.state.fleet().problem)


def test_a_request_that_a_timer_repeats_is_not_saved_and_what_somebody_decided_is() -> None:
    cloud = MemoryCloud()
    act = RolloutAct(commit="c" * 40, kind="pause", by="somebody", at=cloud.clock())
    decided = ActRequest(act=act).model_dump_json()
    for body in (RolloutRequest().model_dump_json(), decided):
        handle_dead_letter(received(cloud, "plans", body, id=body), cloud.ports)
    assert [letter.body for letter in cloud.state.dead_letters(5)] == [decided]


@pytest.mark.parametrize("queue", ["jobs", "plans", "previews", "another"])
@pytest.mark.parametrize("body", ["", "{}x", "[]", '{"schema_version": 99}', "\x00ÿ", "9" * 100_000])
def test_an_unreadable_message_is_saved_and_counted_once(queue: str, body: str) -> None:
    cloud = MemoryCloud()
    for _ in range(2):
        handle_dead_letter(received(cloud, queue, body), cloud.ports)
    (letter,) = cloud.state.dead_letters(5)
    assert (letter.queue, letter.reason) == (queue, "MaxDeliveryCountExceeded")
    assert letter.body == body[:MAX_BYTES]
    assert letter.size == len(body.encode())
    assert fleet_view(cloud.ports)["deadLetterCount"] == 1


def test_an_unforeseen_error_saves_the_message_and_does_not_raise() -> None:
    cloud, record = working()
    nothing: Any = None
    handle_dead_letter(
        received(cloud, "jobs", job_message(record).model_dump_json()), replace(cloud.ports, clock=nothing)
    )
    assert cloud.state.count_dead_letters() == 1


def test_an_unavailable_state_leaves_the_message_in_its_queue() -> None:
    class Away:
        def __getattr__(self, name: str) -> Any:
            raise Unavailable("Table Storage did not answer")

    away: Any = Away()
    cloud = MemoryCloud()
    with pytest.raises(Unavailable):
        handle_dead_letter(received(cloud, "jobs", "unreadable"), replace(cloud.ports, state=away))


class Recorder:
    """A queue that remembers every body that was sent."""

    def __init__(self, name: str, inner: Queue, sent: list[tuple[str, Message]]) -> None:
        self._name, self._inner, self._sent = name, inner, sent

    def send(self, *messages: Message) -> None:
        self._sent.extend((self._name, message) for message in messages)
        self._inner.send(*messages)


@pytest.mark.parametrize("seed", range(5))
def test_every_message_may_be_delivered_again_in_any_order(seed: int) -> None:
    cloud = MemoryCloud(seed=seed, config=replace(CONFIG, limits=replace(CONFIG.limits, small_change=1)))
    sent: list[tuple[str, Message]] = []

    def recorded(ports: Ports) -> Ports:
        queues: dict[str, Any] = {name: Recorder(name, getattr(ports, name), sent) for name in QUEUES}
        return replace(ports, **queues)

    cloud.with_ports(recorded)
    push(cloud, fleet_files.fleet("one", "two", "three"))
    cloud.run()
    fewer = fleet_files.fleet("one", "three")
    for files in (fewer, fewer | {"clusters/one/cluster.yaml": fleet_files.cluster("one", count=2)}):
        push(cloud, files)
        cloud.run()
    before, writes = cloud.state.clusters(), accepted(cloud)
    everything = list(sent)
    assert {queue for queue, _ in everything} == set(QUEUES)
    random.Random(seed).shuffle(everything)
    for number, (queue, message) in enumerate(everything):
        draft = Draft(message.body.encode(), id=f"again-{number}", session=message.session)
        cloud.broker.send(queue, draft)
    cloud.run()
    assert cloud.state.clusters() == before
    assert accepted(cloud) == writes
    assert cloud.state.count_dead_letters() == 0


def test_an_unreadable_message_becomes_a_saved_dead_letter() -> None:
    cloud, _ = working()
    cloud.broker.send("jobs", Draft(b"not a message", id="m", session="one"))
    cloud.run(300)
    (letter,) = cloud.state.dead_letters(5)
    assert (letter.body, letter.reason) == ("not a message", "MaxDeliveryCountExceeded")


class Hiccup:
    """A state of which one method does not answer, for so many calls."""

    def __init__(self, cloud: MemoryCloud, method: str, left: float) -> None:
        self._inner, self._method, self.left = cloud.state, method, left

    def __getattr__(self, name: str) -> Any:
        if self.left > 0 and name == self._method:
            self.left -= 1
            raise Unavailable("Table Storage did not answer")
        return getattr(self._inner, name)


def with_hiccup(cloud: MemoryCloud, method: str, left: float) -> Hiccup:
    flaky = Hiccup(cloud, method, left)
    state: Any = flaky
    cloud.with_ports(lambda ports: replace(ports, state=state))
    return flaky


def test_a_message_waits_while_the_state_is_unavailable() -> None:
    cloud, _ = working()
    with_hiccup(cloud, "cluster", 30)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    reasons = {event.reason for event in cloud.state.events("one", 100)}
    assert reasons
    assert "Failed" not in reasons


def test_a_plan_request_waits_while_the_state_is_unavailable() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    flaky = with_hiccup(cloud, "fleet", 12)
    cloud.run(until=lambda: not flaky.left)
    cloud.run()
    assert cloud.dead_letters == [], "ten deliveries take no time"
    assert phases(cloud) == {"one": Phase.READY}


def test_a_plan_request_that_was_postponed_too_often_is_dead_lettered_and_not_lost() -> None:
    cloud = MemoryCloud()
    approval = Approval(commit="c" * 40, clusters=("one",), by="somebody", at=cloud.clock())
    flaky = with_hiccup(cloud, "fleet", math.inf)
    send(PlanRequest(again=True, approval=approval), cloud.ports, message_id="m")
    start = cloud.clock()
    cloud.run(24 * 3600, until=lambda: bool(cloud.dead_letters))
    waited = (cloud.clock() - start).total_seconds()
    assert 600 < waited < 2 * 3600
    flaky.left = 0
    cloud.run(until=lambda: cloud.state.count_dead_letters() == 1)
    (letter,) = cloud.state.dead_letters(5)
    assert (letter.queue, letter.reason) == ("plans", "MaxDeliveryCountExceeded")
    assert PlanRequest.model_validate_json(letter.body).approval == approval
    assert "approve cccccccc again" in str(cloud.state.fleet().problem)


def test_a_plan_request_whose_copy_cannot_be_sent_stays_in_its_queue() -> None:
    class Away:
        def __getattr__(self, name: str) -> Any:
            raise Unavailable("does not answer")

    away: Any = Away()
    ports = replace(MemoryCloud().ports, state=away, plans=away)
    with pytest.raises(Unavailable):
        planner.handle(PlanRequest(reason="push"), ports)


def test_a_job_that_fails_by_a_dead_letter_is_announced() -> None:
    cloud, record = working()
    body = job_message(record).model_dump_json()
    cloud.clock.advance(cloud.ports.config.timing.lease_seconds + 1)
    handle_dead_letter(received(cloud, "jobs", body), cloud.ports)
    assert phases(cloud) == {"one": Phase.FAILED}
    (notification,) = cloud.state.notifications(5)
    assert (notification.kind, notification.subject, notification.reason) == (
        NotificationKind.FAILED,
        "one",
        "DeadLettered",
    )
