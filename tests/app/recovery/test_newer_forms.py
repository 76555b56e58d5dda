"""A message of a newer form waits, as it is, for an instance that knows the form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from azure.functions.meta import Datum
from azure.functions.servicebus import ServiceBusMessageInConverter
from pydantic import BaseModel

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.servicebus.world.broker_values import Draft
from shared.app.intake.accept import accept
from shared.app.intake.webhook import PullChange
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.app.worker import worker
from shared.cluster.job import JobQueue
from shared.cluster.queues.envelopes import job_message
from shared.cluster.queues.messages import (
    CheckMessage,
    JobMessage,
    PlanRequest,
    PreviewRequest,
    ReadinessMessage,
)
from shared.cluster.record_parts import Phase
from shared.ports.state.clusters import FLEETS
from simulation.newer_forms import NewerTable
from tests.support import fleet_files
from tests.support.collected_telemetry import watched
from tests.support.function_calls import functions
from tests.support.one_cluster import record
from tests.support.pipeline_runs import deliver_due, phases, push, step_until

JOB = JobMessage(cluster="one", uid="0badcafe", generation=1, sequence=1)
SENT: Mapping[str, tuple[str, BaseModel]] = {
    "planner": ("plans", PlanRequest(reason="push")),
    "previewer": ("previews", PreviewRequest(pull=1)),
    "worker": ("jobs", JOB),
    "worker's checks": ("jobs", CheckMessage(check="1")),
    "worker's readings": ("jobs", ReadinessMessage(reading="1")),
    "changer": ("changes", JOB),
    "deleter": ("deletes", JOB),
}
"""A message for each function, with the queue from which it gets it."""


class NewerJobMessage(JobMessage):
    """The form that a newer version gives a job's message."""

    schema_version: Literal[2] = 2  # type: ignore[assignment]
    urgent: bool


def newer(message: BaseModel) -> bytes:
    body: dict[str, Any] = json.loads(message.model_dump_json())
    return json.dumps(body | {"schema_version": 1 + int(body["schema_version"]), "urgent": True}).encode()


@pytest.mark.parametrize("name", SENT)
def test_a_message_of_a_newer_form_waits_in_its_queue_as_it_is(name: str) -> None:
    cloud, (queue, message) = MemoryCloud(), SENT[name]
    cloud.broker.send(queue, Draft(newer(message), id="newer", session="one"))
    for _ in range(30):
        deliver_due(cloud, queue)
        (waiting,) = cloud.broker.peek(queue)
        assert (waiting.draft.body, waiting.draft.session) == (newer(message), "one")
        assert cloud.broker.counts(queue).dead_lettered == 0
        cloud.clock.advance(61)
    assert (cloud.state.clusters(), cloud.state.count_dead_letters()) == ([], 0)


@pytest.mark.parametrize("name", SENT)
def test_a_function_sends_a_message_of_a_newer_form_again_and_says_why(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    cloud, (queue, message) = MemoryCloud(), SENT[name]
    collected = watched(cloud)
    handle = functions(cloud.ports)[name.partition("'")[0]].get_user_function()
    metadata = {"SessionId": Datum("one", "string")}
    body = Datum(newer(message), "bytes")
    handle(ServiceBusMessageInConverter.decode_single_message(body, trigger_metadata=metadata))
    (waiting,) = cloud.broker.peek(queue, session="one")
    assert waiting.draft.body == newer(message)
    known = json.loads(message.model_dump_json())["schema_version"]
    (counted,) = collected.metrics["roadstead.waiting_messages"]
    assert (dict(counted.attributes), counted.value) == ({"queue": queue}, 1)
    assert (
        f"the queue {queue} waits: QueueMessage has the form {known + 1}, and this app knows {known}"
        in caplog.text
    )


def test_an_instance_of_the_newer_version_handles_what_an_older_one_left() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    step_until(cloud, lambda: bool(cloud.state.clusters()))
    before = record(cloud)
    lock = cloud.broker.accept_session("changes")
    assert lock is not None
    taken = cloud.broker.receive("changes", lock)
    assert taken is not None
    cloud.broker.complete("changes", taken.lock_token)
    cloud.broker.release_session("changes", lock)
    cloud.broker.send("changes", Draft(newer(job_message(before)), id="newer", session="one"))
    deliver_due(cloud, "changes")
    assert record(cloud) == before
    (waiting,) = cloud.broker.peek("changes")
    worker.handle(NewerJobMessage.model_validate_json(waiting.draft.body), JobQueue.CHANGES, cloud.ports)
    assert record(cloud).job.sequence > before.job.sequence
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


@pytest.mark.parametrize("name", SENT)
def test_a_dead_letter_of_a_newer_form_is_stored_as_it_is(name: str) -> None:
    cloud, (queue, message) = MemoryCloud(), SENT[name]
    body = newer(message)
    handle_dead_letter(ReceivedDeadLetter(queue, "1:m", cloud.clock(), body, body.decode()), cloud.ports)
    (letter,) = cloud.state.dead_letters(5)
    assert letter.body == body.decode()


def test_a_webhook_is_queued_also_where_the_record_of_the_fleet_is_of_a_newer_version() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    step_until(cloud, lambda: bool(cloud.state.clusters()))
    table = cloud.state.tables[FLEETS]
    (entity,) = table.query("fleet")
    NewerTable(table).put("fleet", {entity["RowKey"]: entity.properties})
    before = len(cloud.broker.peek("previews"))
    pull = PullChange("d" * 36, "e" * 64, number=7, head="f" * 40, action="opened")
    assert accept(pull, cloud.ports).status == 202
    assert len(cloud.broker.peek("previews")) > before
