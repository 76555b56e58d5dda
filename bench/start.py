"""What a start of the function app costs: ``python -m bench.start [FOLDER ...]``, each a checkout.

In one run: the import of ``function_app`` in a new interpreter, which every instance pays, for each app of
each folder; the same with what a first event imports, its client libraries too; and the size of what is
deployed, files by ``.funcignore`` and libraries by the lock. The first line is the command with ``--help``,
the second an app with one timer, of which each start of an app is a multiple. Seconds are of the processor
for the whole process, with bytecode, the least of several runs in turn; compare only lines of one run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from shared.configuration.settings import App
from tools.deployed import deployed
from tools.lock import locked

RUNS = 7
EMPTY = """
import azure.functions as func
app = func.FunctionApp()
@app.timer_trigger("timer", "0 0 * * * *")
def tick(timer: func.TimerRequest) -> None: ...
"""
APP = "import function_app"
COMMAND = """
sys.argv[1:] = ["--help"]
from contextlib import suppress
from cli.main import main
with suppress(SystemExit):
    main()
sys.stdout = sys.__stdout__
"""
PORTS = f"""
{APP}, handlers.sign_in, shared.app.door, shared.ports.masked, shared.configuration.production
import azure.identity, shared.adapters.servicebus, shared.adapters.tables
"""
MESSAGES = f"""{PORTS}
import handlers.queues, handlers.dead_letters
"""
JOB = f"""{MESSAGES}
import shared.app.worker.worker, shared.adapters.arm, shared.adapters.kubernetes
import azure.mgmt.resource.resources, azure.mgmt.containerservice
"""
STARTS = {
    "": (APP, [*App]),
    ", and a webhook": (f"{PORTS}import handlers.webhooks", [App.CONTROL]),
    ", and a call of the API": (f"{PORTS}import handlers.api", [App.CONTROL]),
    ", and a plan": (
        f"{MESSAGES}import shared.app.planner.planner, shared.adapters.github",
        [App.CONTROL],
    ),
    ", and a job": (JOB, [App.WORKER, App.DELETER]),
}
"""What a start imports, and what with its first event, by its title; and the apps that do."""
PROBE = """
import resource, sys, time
sys.path.insert(0, ".")
exec(sys.argv[1])
seconds = time.process_time()
try:
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(seconds, peak / 1024)
"""
"""On Linux, getrusage would count the memory of the process that started this one."""


_BYTECODE = tempfile.TemporaryDirectory(prefix="bytecode-")
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class Start:
    """Seconds of the processor and MiB of memory."""

    seconds: float
    memory: float


@dataclass(frozen=True)
class Case:
    """Code in a folder, as an app of the fleet."""

    code: str
    folder: Path
    app: App = App.CONTROL
    title: str = ""

    def run(self) -> Start:
        """Run the code in a new interpreter, with the bytecode that a package has."""
        values = json.loads((self.folder / "local.settings.example.json").read_text())["Values"]
        done = subprocess.run(
            [sys.executable, "-c", PROBE, self.code],
            cwd=self.folder,
            env={**_ENVIRONMENT, **values, "ROADSTEAD_APP": self.app, "PYTHONPYCACHEPREFIX": _BYTECODE.name},
            capture_output=True,
            text=True,
            check=True,
        )
        return Start(*map(float, done.stdout.split()[-2:]))


def measure(cases: Sequence[Case], runs: int = RUNS) -> Sequence[Start]:
    """Run the cases in turn; return the least of each."""
    found = [[case.run() for case in cases] for _ in range(1 + runs)][1:]  # the first one compiles
    return [
        Start(min(start.seconds for start in starts), min(start.memory for start in starts))
        for starts in zip(*found, strict=True)
    ]


def libraries(folder: Path) -> Sequence[str]:
    """Return the libraries that the lock has for this Python."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [lock.name for lock in locked(folder / "requirements.txt", python)]


def size_of(library: str) -> int:
    """Return the bytes of an installed library, without compiled files."""
    try:
        files = distribution(library).files or []
    except PackageNotFoundError:
        raise SystemExit(f"{library} is not installed here; install it to compare") from None
    paths = [Path(str(file.locate())) for file in files if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())


def own_size(folder: Path) -> int:
    """Return the bytes of our own files that are deployed."""
    return sum(path.stat().st_size for path in deployed(folder))


def main(folders: Sequence[str]) -> None:
    """Print a line for each app of each folder."""
    paths = [Path(name).resolve() for name in folders]
    cases = [
        Case(code, path, app, title)
        for path in paths
        for title, (code, apps) in STARTS.items()
        for app in apps
    ]
    here = Path().resolve()
    empty, command, *found = measure([Case(EMPTY, here), Case(COMMAND, here), *cases])
    print(f"{'roadstead --help':40} {command.seconds:5.2f} s {command.memory:4.0f} MiB")
    print(f"{'an app with one timer':40} {empty.seconds:5.2f} s {empty.memory:4.0f} MiB")
    for case, start in zip(cases, found, strict=True):
        name = f"{case.folder.name}, {case.app}{case.title}"
        times = start.seconds / empty.seconds
        print(f"{name:40} {start.seconds:5.2f} s {start.memory:4.0f} MiB {times:5.1f} times")
    for path in paths:
        names = libraries(path)
        size, own = sum(map(size_of, names)) / 1e6, own_size(path) / 1e6
        print(
            f"{path.name:40} {size + own:5.1f} MB unpacked: {len(names)} libraries, {own:.1f} MB of our own"
        )


if __name__ == "__main__":
    main(sys.argv[1:] or ["."])
