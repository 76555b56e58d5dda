"""The command as a wheel, in an environment without anything else: its size, its start, what it can do."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from shutil import copy, copytree

import pytest

from tests.support import fleet_files
from tests.support.roadstead_command import write

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
PARTS = ("pyproject.toml", "README.md", "LICENSE", "cli", "shared")
"""What the build reads; it writes next to that."""
SIZE = 50 * 2**20
SECONDS = 0.2
RUNS = 5


def uv(*arguments: str | Path) -> None:
    subprocess.run([UV, *arguments, "--quiet"], check=True)


def seconds_of(*command: str | Path) -> float:
    """Return the seconds of the processor that a command takes: a busy machine takes longer by the clock."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=ALONE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


ALONE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "ROADSTEAD_CONTEXTS": os.devnull}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_wheel_is_small_starts_quickly_and_validates_a_fleet(tmp_path: Path) -> None:
    environment, bin_folder = tmp_path / "python", tmp_path / "python" / "bin"
    source = tmp_path / "source"
    source.mkdir()
    for name in PARTS:
        (copytree if (ROOT / name).is_dir() else copy)(ROOT / name, source / name)
    uv("build", "--wheel", source, "--out-dir", tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    uv("venv", "--python", sys.executable, environment)
    uv("pip", "install", "--compile-bytecode", "--python", bin_folder / "python", wheel)
    command = bin_folder / "roadstead"
    packages = next((environment / "lib").glob("python*")) / "site-packages"
    assert sum(path.stat().st_size for path in packages.rglob("*") if path.is_file()) <= SIZE
    assert not (packages / "azure").exists()
    assert min(seconds_of(command, "--help") for _ in range(RUNS)) < SECONDS
    fleet = write(tmp_path / "fleet", fleet_files.example())
    done = subprocess.run(
        [command, "validate", fleet], capture_output=True, text=True, env=ALONE, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    status = subprocess.run(
        [command, "status"],
        capture_output=True,
        text=True,
        env={**ALONE, "ROADSTEAD_URL": "https://app.example", "ROADSTEAD_SCOPE": "api://x/.default"},
        check=False,
    )
    assert (status.returncode, "install it: `uv tool install 'roadstead[entra]'`" in status.stderr) == (
        2,
        True,
    )
