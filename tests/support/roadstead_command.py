"""The commands of ``roadstead``, runs of it as a process, and fleet repositories on disk for it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from signal import SIGINT
from typing import Any

from cli.app import COMMANDS, NEW, PRICES, ROLLOUT, SETUP
from cli.lazy import Sections
from localcloud.common.programs import TOOLS
from tests.support.function_calls import ADMIN_KEY
from tests.support.warm_processes import start

ROADSTEAD = Path(sys.executable).with_name("roadstead")
ROOT = Path(__file__).parent.parent.parent
GROUPS: Mapping[str, Sections] = {"new": NEW, "prices": PRICES, "rollout": ROLLOUT, "setup": SETUP}
OWN = {
    "PYTHONPATH": str(ROOT),
    "ROADSTEAD_KEY": ADMIN_KEY,
    "ROADSTEAD_CONTEXTS": os.devnull,
    "PATH": os.pathsep.join([str(TOOLS / "kubectl"), os.environ.get("PATH", os.defpath)]),
}


@cache
def commands() -> Mapping[str, Any]:
    """Return every command by its whole name, such as "roadstead rollout list"."""
    return dict(_commands(COMMANDS, "roadstead"))


def _commands(sections: Sections, prefix: str) -> Iterator[tuple[str, Any]]:
    for entries in sections.values():
        for name, entry in entries.items():
            if name in GROUPS:
                yield from _commands(GROUPS[name], f"{prefix} {name}")
            else:
                yield f"{prefix} {name}", entry.load(name)


def options(command: Any) -> set[str]:
    """Return the options of a command, in every form."""
    return {option for parameter in command.params for option in parameter.opts}


def roadstead(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command of this checkout; return its output and exit code."""
    environment = {**os.environ, **OWN, **env}
    command = [str(ROADSTEAD), *arguments]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = start(command, stdout=out, stderr=err, env=environment, cwd=cwd).wait(60)
        texts = [(file.seek(0), file.read().decode())[1] for file in (out, err)]
    return subprocess.CompletedProcess(command, code, *texts)


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files below a folder and return it."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def on_terminal(
    *arguments: str,
    columns: int = 80,
    rows: int = 24,
    cwd: Path | None = None,
    interrupt_at: str = "",
    **env: str,
) -> tuple[int, str]:
    """Return the exit code and terminal output of the command; send Ctrl-C once it wrote ``interrupt_at``."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment = {**inherited, "TERM": "xterm", **OWN, **env}
    running = start(
        [ROADSTEAD, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
        cwd=cwd,
    )
    os.close(terminal)
    written, waiting = b"", bool(interrupt_at)
    try:
        while part := os.read(controller, 65536):
            written += part
            if waiting and interrupt_at.encode() in written:
                running.send_signal(SIGINT)
                waiting = False
    except OSError:  # the terminal is closed
        pass
    os.close(controller)
    return running.wait(timeout=60), written.decode()


def plain(written: str) -> str:
    """Return text without its colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written).replace("\r\n", "\n")
