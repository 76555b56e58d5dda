"""Reads every waiting message and every entity of a running cloud through the real clients, for tests.

Reading locks and changes nothing, so the functions are not affected.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from azure.servicebus import ServiceBusClient, ServiceBusSubQueue

from localcloud.runtime.local_cloud import LocalCloud
from localcloud.servicebus.wire import amqp_codec
from shared.adapters.servicebus import service_bus_client
from shared.adapters.tables import table_service

_AT_MOST = 10_000


def bus_messages(cloud: LocalCloud, queue: str) -> list[str]:
    """Return the body of each message in a queue: active, locked and scheduled ones, then dead letters."""
    with closing(service_bus_client(connection_string=cloud.settings["ServiceBus"])) as client:
        return [*_waiting(client, queue), *_dead(client, queue)]


def table_entities(cloud: LocalCloud) -> list[dict[str, Any]]:
    """Return every entity of every table, with its table's name as "table"."""
    connection = cloud.settings["TABLES_CONNECTION_STRING"]
    with table_service(connection_string=connection, endpoint=None, credential=None) as service:
        return [
            {"table": table.name, **entity}
            for table in service.list_tables()
            for entity in service.get_table_client(table.name).list_entities()
        ]


def _waiting(client: ServiceBusClient, queue: str) -> list[str]:
    """Peek at all sessions of a queue.

    The client's public call peeks at one session, and locks it. The same request without a session is
    answered for all of them, and a sender's link locks nothing.
    """
    request = {"from-sequence-number": 0, "message-count": _AT_MOST}
    with client.get_queue_sender(queue) as sender:
        found: list[str] = sender._mgmt_request_response_with_retry(
            b"com.microsoft:peek-message", request, _bodies, timeout=20
        )
    return found


def _bodies(status: int, answer: Any, description: object, **_: object) -> list[str]:
    if status == 204:
        return []
    if status != 200:
        raise RuntimeError(f"peeking failed with {status}: {description!r}")
    raw = (bytes(entry[b"message"]) for entry in answer.value[b"messages"])
    return [draft.body.decode() for message in raw for draft in amqp_codec.drafts(message)]


def _dead(client: ServiceBusClient, queue: str) -> list[str]:
    with client.get_queue_receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        return [str(message) for message in receiver.peek_messages(_AT_MOST, timeout=20)]
