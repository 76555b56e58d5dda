"""The ways in which ``make up`` ends: Ctrl-C at any moment, a killed part, a killed supervisor."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from functools import partial
from pathlib import Path

import pytest

from localcloud.runtime.child_processes import PartFailed
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import Options
from tests.support.local_cloud_process import (
    any_lives,
    functions_answer,
    processes_below,
    read_cloud,
    up,
)
from tests.support.sample import sample
from tests.support.waiting import until
from tests.support.warm_processes import spawn

PARTS = ("storage", "servicebus", "azure", "github")


@pytest.mark.parametrize("after", sample("seconds of a start", [0, 0.1, 0.4, 0.8, 1.2], 2))
def test_ctrl_c_during_the_start_stops_it_without_an_error(tmp_path: Path, app: Path, after: float) -> None:
    state = tmp_path / "state"
    with up(state, app) as process:
        until(state.exists, seconds=30)
        time.sleep(after)
        below = processes_below(process.pid)
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert time.monotonic() - asked < 3
    assert (process.returncode, err) == (0, "")
    until(lambda: not any_lives([*below]), seconds=2)


def test_a_function_that_hangs_does_not_hold_up_ctrl_c(tmp_path: Path, app: Path) -> None:
    state = tmp_path / "state"
    with up(state, app) as process:
        until(lambda: functions_answer(state), seconds=30)
        with socket.create_connection(("127.0.0.1", read_cloud(state)["ports"]["functions"])) as caller:
            caller.sendall(b"GET /api/hang HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.2)
            asked = time.monotonic()
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)
            assert time.monotonic() - asked < 3.5
    assert (process.returncode, err) == (0, "")


def test_no_process_outlives_a_supervisor_that_was_killed(tmp_path: Path, app: Path) -> None:
    state = tmp_path / "state"
    with up(state, app) as process:
        until(lambda: functions_answer(state), seconds=30)
        below = processes_below(process.pid)
        process.kill()
        process.communicate()
    assert len(below) >= len(PARTS) + 1
    until(lambda: not any_lives([*below]), seconds=2)


def test_each_part_that_is_killed_is_named(tmp_path: Path) -> None:
    with LocalCloud(tmp_path / "state", Options(functions=False), spawn=spawn) as cloud:
        cloud.check()
        for part in reversed(PARTS):  # the cloud names the first part that has ended
            os.kill(cloud.process(part), signal.SIGKILL)
            until(partial(_is_named, cloud, part), seconds=5)


def _is_named(cloud: LocalCloud, part: str) -> bool:
    try:
        cloud.check()
    except PartFailed as failure:
        return re.search(rf"^{part} ended by SIGKILL; the end of .*{part}\.log", str(failure)) is not None
    return False
