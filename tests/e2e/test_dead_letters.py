"""Dead letters over the wire: they are reported, and their jobs replayed."""

from __future__ import annotations

import json
from typing import Any

from azure.servicebus import ServiceBusMessage

from localcloud.runtime.inspection import bus_messages, table_entities
from localcloud.runtime.options import Options
from shared.adapters.servicebus import service_bus_client
from shared.cluster.queues.messages import JobMessage
from shared.ports.state.clusters import CLUSTERS
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start


def dead_letter(operator: Operator, body: str) -> None:
    """Send a message to the queue of jobs and dead-letter it, as its receiver."""
    connection = operator.cloud.settings["ServiceBus"]
    with (
        service_bus_client(connection_string=connection) as client,
        client.get_queue_receiver("jobs", session_id="by-hand") as receiver,
        client.get_queue_sender("jobs") as sender,
    ):
        sender.send_messages(ServiceBusMessage(body, session_id="by-hand"))
        (message,) = receiver.receive_messages(1, max_wait_time=10)
        receiver.dead_letter_message(message, reason="TooOften", error_description="ten times")


def record(operator: Operator) -> Any:
    (stored,) = (entity for entity in table_entities(operator.cloud) if entity["table"] == CLUSTERS)
    return json.loads(stored["body0"])


def test_every_dead_letter_is_reported_and_its_job_replayed(start: Start) -> None:
    operator = start(Options(create_seconds=5, extra={"POLL_SECONDS": "12"}))
    commit = operator.push(fleet_files.fleet("one"))
    operator.wait(lambda: operator.phases() == {"one": "Provisioning"}, "the cluster is planned")
    operator.wait(
        lambda: record(operator)["job"]["step"]["name"] == "cluster", "Azure is creating the cluster"
    )
    operator.wait(lambda: record(operator)["job"]["next_run"]["reason"] != "", "the step waits")
    present = record(operator)
    moment = JobMessage(
        cluster="one",
        uid=present["uid"],
        generation=present["generation"],
        sequence=present["job"]["sequence"],
    )
    dead_letter(operator, moment.model_copy(update={"sequence": 1}).model_dump_json())
    dead_letter(operator, "not a message")
    dead_letter(operator, moment.model_dump_json())
    operator.wait(lambda: operator.phases() == {"one": "Failed"}, "the job failed")
    operator.wait(
        lambda: bool(operator.api.get("dead-letters")["deadLetters"]), "the unreadable one is listed"
    )
    (letter,) = operator.api.get("dead-letters")["deadLetters"]
    assert (letter["body"], letter["reason"]) == ("not a message", "TooOften")
    assert operator.api.get("clusters")["deadLetterCount"] == 1
    why = operator.api.get("clusters/one/why")
    assert why["lastError"]["class"] == "DeadLettered"
    assert "TooOften: ten times" in why["lastError"]["message"]
    operator.api.post("clusters/one/replay", {})
    operator.wait_for_status(commit, "success")
    assert operator.accepted()["create", "one"] == 1
    assert "not a message" not in bus_messages(operator.cloud, "jobs")
