"""Builds the real programs from the Go module proxy: ``python -m tests.authority.build``.

A program is built again when its go.mod, its go.sum or its command changed. Sums of every module are in
go.sum, so that a build has exactly the sources that were reviewed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.authority.programs import ALL, BUILT, MODULES, Program

_FLAGS = ("-trimpath", "-mod=readonly")
_VERSION = "k8s.io/component-base/version"


def main() -> int:
    """Build what is missing."""
    if shutil.which("go") is None:
        print("make authority needs Go (1.26 or newer): https://go.dev/dl/", file=sys.stderr)
        return 1
    BUILT.mkdir(parents=True, exist_ok=True)
    try:
        for program in ALL:
            ensure(program)
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(error.cmd)} failed: see above", file=sys.stderr)
        return 1
    return 0


def ensure(program: Program) -> None:
    """Build a program unless that was done."""
    sums = [(MODULES / program.folder / name).read_text() for name in ("go.mod", "go.sum")]
    wanted = {"sums": sums, "flags": list(_FLAGS)}
    if program.stamp.is_file() and program.path.is_file():
        built = json.loads(program.stamp.read_text())
        if {name: built.get(name) for name in wanted} == wanted:
            return
    version, folder = program.pinned()
    print(f"Building {program.name} {version} from its Go module, once: some minutes ...", flush=True)
    command = ["go", "build", *_FLAGS, f"-ldflags={_linked(version)}", f"-o={program.path}"]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    package = f"{program.module}{program.package}"
    subprocess.run([*command, package], cwd=MODULES / program.folder, env=environment, check=True)
    if program.files:
        _copy(folder / program.files, program.config)
    program.stamp.write_text(json.dumps({"version": version, **wanted}))


def _copy(source: Path, target: Path) -> None:
    """Copy the contents of a folder of the module cache, where everything is read-only."""
    shutil.rmtree(target, ignore_errors=True)
    for file in sorted(source.rglob("*.yaml")):
        copied = target / file.relative_to(source)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_bytes(file.read_bytes())


def _linked(version: str) -> str:
    """Return the linker's flags: no debug tables, and the version that Kubernetes reports of itself."""
    major, minor, *_ = version.removeprefix("v").split(".")
    named = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s", "-w", *(f"-X={_VERSION}.{name}={value}" for name, value in named.items())])


if __name__ == "__main__":
    sys.exit(main())
