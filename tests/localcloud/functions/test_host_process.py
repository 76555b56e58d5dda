"""``python -m localcloud.functions.host`` as a process: settings, signals, exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from localcloud.runtime.options import ROOT

pytestmark = pytest.mark.lives

APP = """
import os, time
import azure.functions as func

app = func.FunctionApp()

@app.route("slow")
def slow(req: func.HttpRequest) -> str:
    print("started", flush=True)
    time.sleep(0.7)
    return os.environ["GREETING"]

@app.timer_trigger("timer", "%SCHEDULE%")
def never(timer: func.TimerRequest) -> None: ...
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "host.json", tmp_path)
    (tmp_path / "function_app.py").write_text(APP)
    return tmp_path


def start(app: Path, values: dict[str, str], **environment: str) -> subprocess.Popen[str]:
    (app / "local.settings.json").write_text(json.dumps({"Values": values}))
    command = [
        sys.executable,
        "-m",
        "localcloud.functions.host",
        "--settings",
        "local.settings.json",
        "--port",
        "0",
    ]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen(
        command, cwd=app, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_running_invocations_end_and_exits_with_zero(app: Path, number: signal.Signals) -> None:
    replies: list[str] = []
    values = {"GREETING": "from the file", "SCHEDULE": "0 0 0 1 1 *"}
    with start(app, values, GREETING="from the shell") as host:
        assert host.stdout is not None
        lines = iter(host.stdout.readline, "")
        url = next(found[1] for line in lines if (found := re.search(r"Host started at (\S+)", line)))
        call = threading.Thread(target=lambda: replies.append(httpx.get(f"{url}/slow").text))
        call.start()
        assert any(line == "started\n" for line in lines)
        host.send_signal(number)
        call.join(10)
        rest = "".join(lines)
        assert host.wait(10) == 0
    assert replies == ["from the shell"]
    assert "Executed 'Functions.slow' (Succeeded" in rest
    assert rest.rstrip().endswith("Host stopped")


def test_a_setting_that_is_missing_is_named_and_the_exit_code_is_one(app: Path) -> None:
    with start(app, {"GREETING": "hello"}) as host:
        out, _ = host.communicate(timeout=60)
    assert host.returncode == 1
    assert "The functions cannot start: function 'never': %SCHEDULE% does not resolve" in out
    assert "Traceback" not in out
