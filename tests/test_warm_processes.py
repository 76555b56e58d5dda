"""A warm process is one like any other: it has its own environment, folder, streams, signals and end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.warm_processes import WarmProcess, start


def run(folder: Path, code: str, **environment: str) -> tuple[int, str, str]:
    """Run a script warm; return its exit code and what it wrote to both streams."""
    script = folder / "script.py"
    script.write_text(code)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        env = {**os.environ, **environment}
        ended = start([script, "argument"], stdout=out, stderr=err, env=env, cwd=folder).wait(60)
        for file in (out, err):
            file.seek(0)
        return ended, out.read().decode(), err.read().decode()


def running(folder: Path) -> WarmProcess:
    """Start a script that runs until a signal comes, and return once it does."""
    script = folder / "script.py"
    script.write_text("import signal\nprint('runs', flush=True)\nsignal.pause()")
    read, write = os.pipe()
    process = start([script], stdout=write, stderr=subprocess.STDOUT, env=os.environ)
    os.close(write)
    assert os.read(read, 100) == b"runs\n"
    os.close(read)
    return process


def test_it_has_its_own_arguments_environment_folder_and_streams(tmp_path: Path) -> None:
    code = (
        "import os, sys\nprint(sys.argv[1:], os.getcwd(), os.environ['OWN'])\nprint('error', file=sys.stderr)"
    )
    assert run(tmp_path, code, OWN="value") == (0, f"['argument'] {tmp_path} value\n", "error\n")
    assert "OWN" not in run(tmp_path, "import os\nprint(*os.environ)")[1]


def test_it_runs_a_program_that_is_given_as_an_argument() -> None:
    with tempfile.TemporaryFile() as out:
        code = start(["-c", "import sys\nprint(sys.argv)"], stdout=out, stderr=out, env=os.environ).wait(60)
        out.seek(0)
        assert (code, out.read()) == (0, b"['-c']\n")


@pytest.mark.parametrize(
    ("code", "ended", "error"),
    [
        ("", 0, ""),
        ("import sys\nsys.exit(7)", 7, ""),
        ("import sys\nsys.exit('a message')", 1, "a message\n"),
        ("import os\nos._exit(9)", 9, ""),
    ],
)
def test_its_exit_code_is_that_of_a_cold_process(tmp_path: Path, code: str, ended: int, error: str) -> None:
    assert run(tmp_path, code) == (ended, "", error)
    cold = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (cold.returncode, cold.stderr) == (ended, error)


def test_an_error_ends_it_with_its_traceback(tmp_path: Path) -> None:
    ended, _, error = run(tmp_path, "raise ValueError('wrong')")
    assert (ended, error.splitlines()[-1]) == (1, "ValueError: wrong")


def test_what_one_changes_no_other_one_has(tmp_path: Path) -> None:
    run(tmp_path, "import cli.errors\ncli.errors.changed = True\nprint('done', end='')")
    assert run(tmp_path, "import cli.errors\nprint(hasattr(cli.errors, 'changed'))")[1] == "False\n"


def test_it_waits_for_its_threads_and_runs_what_it_registered(tmp_path: Path) -> None:
    code = """
import atexit, threading, time
atexit.register(print, "at the end")
threading.Thread(target=lambda: (time.sleep(0.05), print("thread"))).start()
"""
    assert run(tmp_path, code) == (0, "thread\nat the end\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    process = running(tmp_path)
    assert process.poll() is None
    process.send_signal(number)
    assert process.wait(10) == -number
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    process.kill()


def test_one_that_does_not_end_in_time_is_reported(tmp_path: Path) -> None:
    process = running(tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    process.wait(10)
