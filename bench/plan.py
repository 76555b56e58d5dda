"""Parsing alone compared with validating and planning a whole fleet: ``python -m bench.plan [CLUSTERS]``.

Times are CPU seconds of one process after another on the same files; only their ratio means something on a
machine that does other things as well. Memory is the whole process's peak. The functions host plans many
times in one process, so the models of manifests, which pydantic builds at their first use, are built before a
plan is measured; ``roadstead validate`` builds them each time.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.fleet import generate
from cli.commands.write.validate import summary
from cli.platform import platform_of
from cli.worktree import open_worktree
from shared.language.resolve.repository_layout import Files, blob_id, manifest_paths
from shared.language.resolve.resolver import resolve
from shared.language.yaml.parser import parse
from shared.plan.make_plan import make_plan
from shared.process_memory import collect_rarely

COMMIT = "c" * 40
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def parsing(clusters: int, _: Path) -> Callable[[], str]:
    """Parse every manifest."""
    files = generate(clusters)

    def work() -> str:
        for path, content in files.items():
            if path.endswith(".yaml") and not path.startswith("flux/"):
                parse(content, path)
        return f"{len(files)} files"

    return work


def reading(_: int, folder: Path) -> Callable[[], str]:
    """Find and read the files of a folder, and parse every manifest."""

    def work() -> str:
        tree = open_worktree(folder)
        for path in manifest_paths(tree.files):
            parse(tree.read(path), path)
        return f"{len(tree.files.blobs)} files"

    return work


def validating(_: int, folder: Path) -> Callable[[], str]:
    """Do what ``roadstead validate`` does: find and read the files of a folder, resolve and build them."""

    def work() -> str:
        tree = open_worktree(folder)
        desired = tree.resolve()
        return summary(desired, platform_of(tree, desired))

    return work


def planning(clusters: int, _: Path) -> Callable[[], str]:
    """Resolve every cluster and plan the fleet from nothing."""
    _plan_of(2)()
    return _plan_of(clusters)


def _plan_of(clusters: int) -> Callable[[], str]:
    files = generate(clusters)
    fleet = Files({path: blob_id(content) for path, content in files.items()})
    return lambda: _plan(fleet, files)


def _plan(fleet: Files, files: Mapping[str, bytes]) -> str:
    desired = resolve("bench", fleet, files)
    if desired.problems:
        raise SystemExit(f"the generated fleet has problems: {desired.problems[0]}")
    return make_plan(COMMIT, desired, {}, now=NOW).summary


PARTS = {"parsing": parsing, "plan": planning, "reading": reading, "validate": validating}
ALONE = {"plan": "parsing", "validate": "reading"}
"""What each is compared with: parsing alone, from memory or from the same folder."""


def measure(part: str, clusters: int, folder: Path) -> None:
    """Run one part in this process and print seconds, peak MiB and what was done."""
    if part in ("parsing", "plan"):
        collect_rarely()  # as the app does
    work = PARTS[part](clusters, folder)
    before = time.process_time()
    result = work()
    seconds = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{seconds:.3f} {peak} {result}")


def compare(clusters: int, folder: Path) -> None:
    """Measure every part twice, each in a process of its own, and compare the better ones."""
    for path, content in generate(clusters).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    best: dict[str, float] = {}
    for _ in range(2):
        for part in PARTS:
            command = [sys.executable, "-m", "bench.plan", part, str(clusters), str(folder)]
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            seconds, peak, result = out.split(" ", 2)
            best[part] = min(best.get(part, float("inf")), float(seconds))
            print(f"{part:<9} {float(seconds):7.2f} s  {peak:>5} MiB  {result.strip()}")
    for part, alone in ALONE.items():
        print(f"{part} takes {best[part] / best[alone]:.2f} times as long as {alone} alone")


def main() -> None:
    """Compare the parts, or measure the one that is named."""
    if len(sys.argv) == 4:
        measure(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
        return
    with TemporaryDirectory() as folder:
        compare(int(sys.argv[1]) if len(sys.argv) == 2 else 10_000, Path(folder))


if __name__ == "__main__":
    main()
