"""Local clouds as processes, for the tests of ``make up``."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from localcloud.runtime.options import ROOT


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
