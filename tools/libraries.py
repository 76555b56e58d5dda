"""The libraries of the package: those of the lock, for the Python and the platform of function apps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PLATFORM = "x86_64-manylinux_2_28"
"""Flex Consumption runs Linux on amd64 with a newer C library than that."""


class NotInstalled(Exception):
    """The package index has not given every library; the installer has said why."""


def install(lock: Path, python: str, target: Path) -> None:
    """Install what the lock has for a version of Python ("3.13") into a folder, from wheels alone.

    Each file has one of the digests of the lock. Raise NotInstalled where that fails. The installer is uv:
    pip reads the markers of the lock for the Python that runs it.
    """
    command = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--no-config"]
    command += ["--require-hashes", "--requirements", str(lock), "--target", str(target)]
    command += ["--only-binary", ":all:", "--python-version", python, "--python-platform", PLATFORM]
    if subprocess.run(command, check=False).returncode:
        raise NotInstalled(f"uv could not install {lock.name} for Python {python}: see above")
    (target / ".lock").unlink(missing_ok=True)
