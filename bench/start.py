"""What a start of the function app costs: ``python -m bench.start [FOLDER ...]``, each a checkout.

For each folder, in one run: the import of ``function_app`` in a new interpreter, which every instance pays;
the same with every client library, which a worker has imported after its first jobs; and the size of what is
deployed, files by ``.funcignore`` and libraries by the lock. The first line is a function app without
functions. Seconds are of the processor, the least of several runs; compare only lines of one run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from tools.lock import locked
from tools.package import deployed

RUNS = 5
EMPTY = "import azure.functions as func; app = func.FunctionApp()"
APP = "import function_app"
CLIENTS = """
import function_app, azure.identity, azure.mgmt.resource.resources, azure.mgmt.containerservice
import shared.adapters.arm, shared.adapters.github, shared.adapters.kubernetes
import shared.adapters.servicebus, shared.adapters.tables
"""
PROBE = """
import resource, sys, time
sys.path.insert(0, ".")
before = time.process_time()
exec(sys.argv[1])
seconds = time.process_time() - before
try:
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(seconds, peak / 1024)
"""
"""On Linux, getrusage would count the memory of the process that started this one."""


@dataclass(frozen=True)
class Start:
    """Seconds of the processor and MiB of memory."""

    seconds: float
    memory: float


def measure(code: str, folder: Path, runs: int = RUNS) -> Start:
    """Run the code in new interpreters; return the least of each."""
    values = json.loads((folder / "local.settings.example.json").read_text())["Values"]
    found = []
    for _ in range(runs):
        command = [sys.executable, "-c", PROBE, code]
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **values}, capture_output=True, text=True, check=True
        )
        found.append([float(number) for number in done.stdout.split()])
    return Start(*(min(numbers) for numbers in zip(*found, strict=True)))


def libraries(folder: Path) -> Sequence[str]:
    """Return the libraries that the lock has for this Python."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [each.name for each in locked(folder / "requirements.txt", python)]


def size_of(library: str) -> int:
    """Return the bytes of an installed library, without compiled files."""
    try:
        files = distribution(library).files or []
    except PackageNotFoundError:
        raise SystemExit(f"{library} is not installed here; install it to compare") from None
    paths = [Path(str(each.locate())) for each in files if each.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())


def own_size(folder: Path) -> int:
    """Return the bytes of our own files that are deployed."""
    return sum(path.stat().st_size for path in deployed(folder))


def main(folders: Sequence[str]) -> None:
    """Print a line for each folder."""
    empty = measure(EMPTY, Path())
    print(f"{'':24} {'start':>16} {'with every client':>20} {'libraries':>14} {'own files':>10}")
    print(f"{'an app without functions':24} {empty.seconds:5.2f} s {empty.memory:4.0f} MiB")
    for name in folders:
        folder = Path(name).resolve()
        start, clients = measure(APP, folder), measure(CLIENTS, folder)
        names = libraries(folder)
        size = sum(map(size_of, names)) / 1e6
        print(
            f"{folder.name:24} {start.seconds:5.2f} s {start.memory:4.0f} MiB"
            f" {clients.seconds:9.2f} s {clients.memory:4.0f} MiB"
            f" {size:6.0f} MB in {len(names)} {own_size(folder) / 1e6:6.2f} MB"
        )


if __name__ == "__main__":
    main(sys.argv[1:] or ["."])
