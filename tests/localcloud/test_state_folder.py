"""The state folder, the ports and the tools of a local cloud, and what they say that is wrong."""

from __future__ import annotations

import shutil
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusMessage

from localcloud.common.programs import program
from localcloud.runtime import azure_command
from localcloud.runtime.inspection import bus_messages, table_entities
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import Options
from localcloud.runtime.port_reservations import PortReservations
from localcloud.runtime.state_folder import StateFolder, StateFolderError
from localcloud.runtime.tools import ToolError, azurite_command
from shared.adapters.servicebus import service_bus_client
from shared.adapters.tables import table_service
from tests.support.warm_processes import spawn


def test_the_folder_is_emptied_at_every_start(tmp_path: Path) -> None:
    path = tmp_path / "state"
    first = StateFolder(path)
    (path / "logs").mkdir()
    (path / "logs" / "x.log").touch()
    (path / "cloud.json").touch()
    first.close()
    second = StateFolder(path)
    assert [entry.name for entry in path.iterdir()] == [".roadstead-local-cloud"]
    second.close()


def test_a_folder_that_no_local_cloud_created_is_refused(tmp_path: Path) -> None:
    precious = tmp_path / "thesis.txt"
    precious.touch()
    with pytest.raises(StateFolderError, match="no local cloud created it"):
        StateFolder(tmp_path)
    with pytest.raises(StateFolderError, match="not a folder"):
        StateFolder(precious)
    assert precious.exists()


def test_a_folder_in_use_is_refused_until_it_is_released(tmp_path: Path) -> None:
    path = tmp_path / "state"
    first = StateFolder(path)
    (path / "cloud.json").touch()
    with pytest.raises(StateFolderError, match="is running in"):
        StateFolder(path)
    assert (path / "cloud.json").exists()
    first.close()
    StateFolder(path).close()


def test_a_port_that_is_taken_or_reserved_is_replaced_by_a_free_one() -> None:
    ours, theirs = PortReservations(), PortReservations()
    port = ours.reserve(None)
    assert theirs.reserve(port) != port
    ours.close()
    with socket.create_server(("127.0.0.1", port)):
        assert theirs.reserve(port) != port
    assert theirs.reserve(port) == port
    theirs.close()


def test_a_program_is_the_installed_one_before_that_of_the_machine(tmp_path: Path) -> None:
    assert program("sh", tmp_path) == shutil.which("sh")
    assert program("no-such-program", tmp_path) is None
    (tmp_path / "sh").mkdir()
    (tmp_path / "sh" / "sh").touch()
    assert program("sh", tmp_path) == str(tmp_path / "sh" / "sh")


def test_the_error_about_a_missing_azurite_has_the_command(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"localcloud\.runtime\.tools"):
        azurite_command(blob=1, queue=2, table=3, tools=tmp_path)


@pytest.mark.lives
def test_messages_and_entities_are_listed_in_any_state(tmp_path: Path) -> None:
    with LocalCloud(tmp_path / "state", Options(functions=False), spawn=spawn) as cloud:
        assert table_entities(cloud) == []
        with service_bus_client(connection_string=cloud.settings["ServiceBus"]) as client:
            with client.get_queue_sender("jobs") as sender:
                later = datetime.now(UTC) + timedelta(hours=1)
                sender.send_messages(
                    ServiceBusMessage("scheduled", session_id="one", scheduled_enqueue_time_utc=later)
                )
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


def test_without_a_running_cloud_it_says_how_to_start_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert azure_command.main(["one", "stop", "--state", str(tmp_path)]) == 1
    assert f"no local cloud runs in {tmp_path}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one", "explode"], "invalid choice: 'explode'"),
        (["one", "scale", "count"], "'count' is not of the form FIELD=VALUE"),
        (["one", "scale", "exit status=65"], "'exit status=65' is not of the form FIELD=VALUE"),
    ],
)
def test_a_wrong_command_line_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        azure_command.main(arguments)
    assert message in capsys.readouterr().err
