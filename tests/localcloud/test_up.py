"""``make up`` and the cloud it runs, as real processes around a small function app."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcloud.children import PartFailed
from localcloud.cloud import LocalCloud
from localcloud.options import ROOT, USUAL_PORTS, Options, child_environment, compose_settings
from localcloud.statefolder import StateFolderError

APP = """
import os
import azure.functions as func

app = func.FunctionApp()

@app.route("fleet", auth_level=func.AuthLevel.ANONYMOUS)
def fleet(req: func.HttpRequest) -> str:
    return os.environ["ROADSTEAD_FLEET"] + " " + os.environ["GITHUB_TOKEN"]

@app.route("crash", auth_level=func.AuthLevel.ANONYMOUS)
def crash(req: func.HttpRequest) -> str:
    os._exit(7)
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    shutil.copy(ROOT / "host.json", folder)
    (folder / "function_app.py").write_text(APP)
    return folder


@contextmanager
def up(state: Path, app: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "localcloud", "up", "--state", str(state), "--app", str(app)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=state.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be in time"
        time.sleep(0.05)


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def read_cloud(state: Path) -> dict[str, Any]:
    cloud: dict[str, Any] = json.loads((state / "cloud.json").read_text())
    return cloud


def functions_answer(state: Path) -> bool:
    if not (state / "cloud.json").is_file():
        return False
    try:
        return httpx.get(f"{read_cloud(state)['urls']['functions']}/api/fleet").is_success
    except (httpx.HTTPError, ValueError):
        return False


def test_up_says_what_to_do_next_and_ctrl_c_stops_everything(tmp_path: Path, app: Path) -> None:
    state = tmp_path / "state"
    with up(state, app, GITHUB_TOKEN="the shell's own") as process:
        until(lambda: functions_answer(state))
        cloud = read_cloud(state)
        settings = json.loads((state / "local.settings.json").read_text())["Values"]
        reply = httpx.get(f"{cloud['urls']['functions']}/api/fleet")
        assert reply.text == f"example {settings['GITHUB_TOKEN']}"
        assert all(listens(port) for port in cloud["ports"].values())
        subprocess.run(["git", "ls-remote", cloud["remote"]], check=True, timeout=20)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    for told in (cloud["remote"], f"ROADSTEAD_URL={cloud['urls']['functions']}", "state/kubeconfigs"):
        assert told in out
    assert not any(listens(port) for port in cloud["ports"].values())


def test_no_process_outlives_a_supervisor_that_was_killed(tmp_path: Path, app: Path) -> None:
    state = tmp_path / "state"
    with up(state, app) as process:
        until(lambda: functions_answer(state))
        ports = read_cloud(state)["ports"].values()
        process.kill()
        process.communicate()
    until(lambda: not any(listens(port) for port in ports), seconds=15)


def test_a_part_that_crashes_stops_the_cloud_and_is_named(tmp_path: Path, app: Path) -> None:
    state = tmp_path / "state"
    with up(state, app) as process:
        until(lambda: functions_answer(state))
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{read_cloud(state)['urls']['functions']}/api/crash")
        _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "functions ended with exit code 7; the end of state/logs/functions.log:" in err
    assert "Executed 'Functions.fleet' (Succeeded" in err


def test_functions_can_be_killed_and_started_again_and_clouds_run_side_by_side(
    tmp_path: Path, app: Path
) -> None:
    options = Options(app=app, extra={"ROADSTEAD_FLEET": "harbour"})
    with LocalCloud(tmp_path / "one", options) as one:
        url = f"{one.urls.functions}/api/fleet"
        assert httpx.get(url).text.startswith("harbour ")
        one.kill_functions()
        with pytest.raises(httpx.ConnectError):
            httpx.get(url)
        one.check()
        one.start_functions()
        assert httpx.get(url).is_success
        token = {"Authorization": f"token {one.settings['GITHUB_TOKEN']}"}
        assert httpx.get(f"{one.urls.github}/repos/example/fleet", headers=token).is_success
        assert "/repos/example/fleet" in [request["path"] for request in one.requests("github")]
        with pytest.raises(StateFolderError, match=f"process {os.getpid()}"):
            LocalCloud(tmp_path / "one").start()
        with LocalCloud(tmp_path / "two", Options(functions=False)) as two:
            assert not set(one.ports.values()) & set(two.ports.values())
            two.check()


def test_functions_that_cannot_start_are_shown_with_the_end_of_their_log(tmp_path: Path, app: Path) -> None:
    (app / "function_app.py").write_text("raise RuntimeError('wrong setting')")
    with pytest.raises(PartFailed, match=r"(?s)functions ended with exit code 1.*wrong setting"):
        LocalCloud(tmp_path / "state", Options(app=app)).start()


def test_every_port_of_the_example_settings_is_moved(tmp_path: Path) -> None:
    ports = {name: 20000 + number for number, name in enumerate(USUAL_PORTS)}
    options = Options(plan_schedule="0 0 * * * *", extra={"CLAIM_SECONDS": "9"})
    text = json.dumps(compose_settings(tmp_path, ports, options))
    for name, usual in USUAL_PORTS.items():
        assert f"127.0.0.1:{ports[name]}" in text
        assert f"127.0.0.1:{usual}" not in text
    values = json.loads(text)
    assert values["REQUESTS_CA_BUNDLE"] == str(tmp_path / "ca.pem")
    assert (values["PLAN_SCHEDULE"], values["CLAIM_SECONDS"]) == ("0 0 * * * *", "9")


def test_nothing_in_the_shell_wins_over_the_clouds_settings() -> None:
    shell = {
        "HOME": "/home/me",
        "GITHUB_TOKEN": "x",
        "AZURE_CLIENT_ID": "x",
        "servicebus": "x",
        "NO_PROXY": "a",
    }
    environment = child_environment(shell, {"GITHUB_TOKEN": "local", "ServiceBus": "local"})
    assert environment["HOME"] == "/home/me"
    assert environment["NO_PROXY"] == "a,127.0.0.1,localhost"
    assert not {"GITHUB_TOKEN", "AZURE_CLIENT_ID", "servicebus"} & set(environment)
