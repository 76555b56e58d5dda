"""The state folder, the ports, and the tools of a local cloud."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

from localcloud.common.programs import program
from localcloud.runtime.port_reservations import PortReservations
from localcloud.runtime.state_folder import StateFolder, StateFolderError
from localcloud.runtime.tools import ToolError, azurite_command


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
