"""Parsing alone beside resolving and planning a whole fleet: ``python -m bench.plan [CLUSTERS]``.

Times are of one process after another on the same files; only their ratio means something on a machine
that does other things as well. Memory is the whole process's peak.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

from bench.fleet import blob_id, generate
from shared.fleet.layout import Files
from shared.fleet.loader import resolve
from shared.fleet.nodes import parse
from shared.fleet.plan import make_plan

COMMIT = "c" * 40


def parsing(files: dict[str, bytes]) -> str:
    """Parse every manifest."""
    for path, content in files.items():
        if path.endswith(".yaml") and not path.startswith("flux/"):
            parse(content, path)
    return f"{len(files)} files"


def planning(files: dict[str, bytes]) -> str:
    """Resolve every cluster and plan the fleet from nothing."""
    fleet = Files({path: blob_id(content) for path, content in files.items()})
    desired = resolve("bench", fleet, files.__getitem__)
    if desired.problems:
        raise SystemExit(f"the generated fleet has problems: {desired.problems[0]}")
    return make_plan(COMMIT, desired, {}, now=datetime.now(UTC)).summary


PARTS: dict[str, Callable[[dict[str, bytes]], str]] = {"parsing": parsing, "planning": planning}


def measure(part: str, clusters: int) -> None:
    """Run one part in this process and print seconds, peak MiB and what was done."""
    files = generate(clusters)
    before = time.perf_counter()
    words = PARTS[part](files)
    seconds = time.perf_counter() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{seconds:.3f} {peak} {words}")


def main() -> None:
    """Measure both parts twice, each in a process of its own, and print the better of each."""
    if len(sys.argv) == 3:
        measure(sys.argv[1], int(sys.argv[2]))
        return
    clusters = int(sys.argv[1]) if len(sys.argv) == 2 else 10_000
    best: dict[str, float] = {}
    for _ in range(2):
        for part in PARTS:
            command = [sys.executable, "-m", "bench.plan", part, str(clusters)]
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            seconds, peak, words = out.split(" ", 2)
            best[part] = min(best.get(part, float("inf")), float(seconds))
            print(f"{part:<9} {float(seconds):7.2f} s  {peak:>5} MiB  {words.strip()}")
    print(f"planning takes {best['planning'] / best['parsing']:.2f} times as long as parsing alone")


if __name__ == "__main__":
    main()
