"""``make up`` and the cloud it runs, as real processes around a small function app, and how they end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcloud.runtime.child_processes import PartFailed
from localcloud.runtime.guide import CLUSTER, EXAMPLE, guide
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import ROOT, USUAL_PORTS, Options, child_environment, compose_settings
from localcloud.runtime.state_folder import StateFolderError
from tests.support.sample import sample
from tests.support.waiting import until
from tests.support.warm_processes import spawn


@contextmanager
def up(state: Path, app: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run ``python -m localcloud up``; kill what is left of it."""
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


def listens(port: int) -> bool:
    """Return whether something accepts connections at a port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def read_cloud(state: Path) -> dict[str, Any]:
    """Return what the cloud wrote down about itself."""
    cloud: dict[str, Any] = json.loads((state / "cloud.json").read_text())
    return cloud


def functions_answer(state: Path) -> bool:
    """Return whether the small app of a cloud answers."""
    try:
        return httpx.get(f"{read_cloud(state)['urls']['functions']}/api/fleet").is_success
    except (OSError, httpx.HTTPError, ValueError):
        return False


def processes_below(parent: int) -> dict[int, str]:
    """Return the commands of a process's children, and of theirs, by process id."""
    listed = [line.split(None, 2) for line in _ps("-ewwo", "pid=,ppid=,args=")]
    found: dict[int, str] = {}
    above = {parent}
    while above:
        below = {int(pid): command for pid, ppid, command in listed if int(ppid) in above}
        found |= below
        above = set(below)
    return found


def any_lives(processes: Sequence[int]) -> bool:
    """Return whether one of the processes still runs; a zombie does not."""
    listed = _ps("-o", "stat=", "-p", ",".join(map(str, processes)))
    return any(not state.startswith("Z") for state in listed)


def _ps(*options: str) -> list[str]:
    return subprocess.run(["ps", *options], capture_output=True, text=True, check=False).stdout.splitlines()


pytestmark = pytest.mark.lives


def test_up_prints_the_next_commands_and_ctrl_c_stops_everything(tmp_path: Path, app: Path) -> None:
    state = tmp_path / "state"
    with up(state, app, GITHUB_TOKEN="the shell's own") as process:
        until(lambda: functions_answer(state))
        cloud = read_cloud(state)
        settings = json.loads((state / "local.settings.json").read_text())["Values"]
        reply = httpx.get(f"{cloud['urls']['functions']}/api/fleet")
        assert reply.text == f"example {settings['GITHUB_TOKEN']}"
        assert cloud["ports"]
        assert all(listens(port) for port in cloud["ports"].values())
        subprocess.run(["git", "ls-remote", cloud["remote"]], check=True, timeout=60)
        with up(state, app) as second:
            _, refusal = second.communicate(timeout=60)
        assert second.returncode == 1
        assert refusal.startswith(
            f"The local cloud cannot start: a local cloud (process {process.pid}) is running"
        )
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert f"git clone {cloud['remote']} fleet" in out
    assert not any(listens(port) for port in cloud["ports"].values())


def test_a_part_that_crashes_stops_the_cloud_and_is_named(tmp_path: Path, app: Path) -> None:
    state = tmp_path / "state"
    with up(state, app) as process:
        until(lambda: functions_answer(state))
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{read_cloud(state)['urls']['functions']}/api/crash")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "functions ended with exit code 7; the end of state/logs/functions.log:" in err
    assert "Executed 'Functions.fleet' (Succeeded" in err


def test_functions_can_be_killed_and_started_again_and_clouds_run_side_by_side(
    tmp_path: Path, app: Path
) -> None:
    options = Options(app=app, extra={"ROADSTEAD_FLEET": "harbour"})
    with LocalCloud(tmp_path / "one", options, spawn=spawn) as one:
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
        with LocalCloud(tmp_path / "two", Options(functions=False), spawn=spawn) as two:
            assert not set(one.ports.values()) & set(two.ports.values())
            two.check()


def test_functions_that_cannot_start_are_shown_with_the_end_of_their_log(tmp_path: Path, app: Path) -> None:
    (app / "function_app.py").write_text("raise RuntimeError('wrong setting')")
    with pytest.raises(PartFailed, match=r"(?s)functions ended with exit code 1.*wrong setting"):
        LocalCloud(tmp_path / "state", Options(app=app), spawn=spawn).start()


def test_storage_has_all_three_services_and_nobody_else_can_read_the_folder(tmp_path: Path) -> None:
    with LocalCloud(tmp_path / "state", Options(functions=False), spawn=spawn) as cloud:
        storage = dict(field.split("=", 1) for field in cloud.settings["AzureWebJobsStorage"].split(";"))
        for service in ("Blob", "Queue", "Table"):
            reply = httpx.get(storage[f"{service}Endpoint"])
            assert reply.headers["Server"].startswith(f"Azurite-{service}/"), service
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in cloud.state.iterdir()}
        private = {"local.settings.json": 0o600, "cloud.json": 0o600, "kubeconfigs": 0o700, "logs": 0o700}
        assert private.items() <= modes.items()
        assert stat.S_IMODE(cloud.state.stat().st_mode) == 0o700


@pytest.mark.parametrize("functions", [True, False])
@pytest.mark.parametrize("moved", [0, 20000])
def test_the_guide_fits_80_columns_and_names_the_port_only_when_it_is_not_the_usual_one(
    functions: bool, moved: int
) -> None:
    cloud = LocalCloud(ROOT / ".localcloud-2", Options(functions=functions))
    cloud.ports = {name: port % 10000 + moved for name, port in USUAL_PORTS.items()}
    cloud.settings = compose_settings(cloud.state, cloud.ports, cloud.options)
    lines = guide(cloud, ROOT).splitlines()
    assert max(map(len, lines)) <= 80
    assert f"  git clone {cloud.remote} fleet" in lines
    assert (f"  export ROADSTEAD_URL={cloud.urls.functions}" in lines) == bool(moved)
    assert any(line.startswith("  func start") for line in lines) != functions
    assert f"  kubectl --kubeconfig .localcloud-2/kubeconfigs/{CLUSTER}.yaml \\" in lines
    assert (EXAMPLE / "clusters" / CLUSTER).is_dir()


def test_the_commands_of_the_guide_work_as_they_stand_also_a_second_time(tmp_path: Path) -> None:
    with LocalCloud(tmp_path / "state", Options(functions=False), spawn=spawn) as cloud:
        for _ in range(2):
            lines = [
                line for line in guide(cloud, tmp_path).splitlines() if line.startswith(("  git", "  cp -r"))
            ]
            who = {
                f"GIT_{role}_{key}": "x@example.com"
                for role in ("AUTHOR", "COMMITTER")
                for key in ("NAME", "EMAIL")
            }
            done = subprocess.run(
                ["sh", "-ec", "\n".join(lines)],
                cwd=tmp_path,
                env={**os.environ, **who},
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            assert done.returncode == 0, done.stderr
        assert len(lines) == 1


def test_every_port_of_the_example_settings_is_moved(tmp_path: Path) -> None:
    ports = {name: 20000 + number for number, name in enumerate(USUAL_PORTS)}
    options = Options(plan_schedule="0 0 * * * *", extra={"LEASE_SECONDS": "9"})
    text = json.dumps(compose_settings(tmp_path, ports, options))
    for name, usual in USUAL_PORTS.items():
        if name == "registry":  # the clusters pull from it, and no setting of the app names it
            continue
        assert f"127.0.0.1:{ports[name]}" in text
        assert f"127.0.0.1:{usual}" not in text
    values = json.loads(text)
    assert values["REQUESTS_CA_BUNDLE"] == str(tmp_path / "ca.pem")
    assert (values["PLAN_SCHEDULE"], values["LEASE_SECONDS"]) == ("0 0 * * * *", "9")


def test_no_variable_of_the_shell_overrides_the_settings_of_the_cloud() -> None:
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


PARTS = ("storage", "servicebus", "azure", "github")


@pytest.mark.parametrize("after", sample("seconds of a start", [0, 0.1, 0.4, 0.8, 1.2], 2))
def test_ctrl_c_during_the_start_stops_it_without_an_error(tmp_path: Path, app: Path, after: float) -> None:
    state = tmp_path / "state"
    with up(state, app) as process:
        until(state.exists)
        time.sleep(after)
        below = processes_below(process.pid)
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert time.monotonic() - asked < 3
    assert (process.returncode, err) == (0, "")
    until(lambda: not any_lives([*below]), seconds=2)


def test_a_function_that_hangs_does_not_hold_up_ctrl_c(tmp_path: Path, app: Path) -> None:
    state = tmp_path / "state"
    with up(state, app) as process:
        until(lambda: functions_answer(state))
        with socket.create_connection(("127.0.0.1", read_cloud(state)["ports"]["functions"])) as caller:
            caller.sendall(b"GET /api/hang HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.2)
            asked = time.monotonic()
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
            assert time.monotonic() - asked < 3.5
    assert (process.returncode, err) == (0, "")


def test_no_process_outlives_a_supervisor_that_was_killed(tmp_path: Path, app: Path) -> None:
    state = tmp_path / "state"
    with up(state, app) as process:
        until(lambda: functions_answer(state))
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
            until(partial(_is_named, cloud, part))


def _is_named(cloud: LocalCloud, part: str) -> bool:
    try:
        cloud.check()
    except PartFailed as failure:
        return re.search(rf"^{part} ended by SIGKILL; the end of .*{part}\.log", str(failure)) is not None
    return False
