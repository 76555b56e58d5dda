"""What tests can read out of a cloud."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from azure.servicebus import ServiceBusMessage

from localcloud.runtime.inspection import bus_messages, table_entities
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import Options
from shared.adapters.servicebus import service_bus_client
from shared.adapters.tables import table_service
from tests.support.warm_processes import spawn


def test_messages_and_entities_are_listed_in_any_state(tmp_path: Path) -> None:
    with LocalCloud(tmp_path / "state", Options(functions=False), spawn=spawn) as cloud:
        assert table_entities(cloud) == []
        with service_bus_client(connection_string=cloud.settings["ServiceBus"]) as client:
            with client.get_queue_sender("jobs") as sender:
                later = datetime.now(UTC) + timedelta(hours=1)
                sender.schedule_messages(ServiceBusMessage("scheduled", session_id="one"), later)
                for body, session in (("dead", "one"), ("locked", "one"), ("active", "two")):
                    sender.send_messages(ServiceBusMessage(body, session_id=session))
            with client.get_queue_receiver("jobs", session_id="one") as receiver:
                receiver.dead_letter_message(receiver.receive_messages()[0])
                receiver.receive_messages()
                assert bus_messages(cloud, "jobs") == ["scheduled", "locked", "active", "dead"]
        assert bus_messages(cloud, "plans") == []
        connection = cloud.settings["TABLES_CONNECTION_STRING"]
        with table_service(connection_string=connection, endpoint=None, credential=None) as service:
            service.create_table("clusters").create_entity({"PartitionKey": "a", "RowKey": "b", "Spec": "c"})
        assert table_entities(cloud) == [
            {"table": "clusters", "PartitionKey": "a", "RowKey": "b", "Spec": "c"}
        ]
