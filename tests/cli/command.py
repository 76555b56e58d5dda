"""Runs ``roadstead`` as a person does, and makes fleet repositories on disk for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROADSTEAD = Path(sys.executable).with_name("roadstead")
ROOT = Path(__file__).parent.parent.parent


def roadstead(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Return what the command of this very checkout printed and its exit status, on 80 columns."""
    environment = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(ROOT), **env}
    command = [str(ROADSTEAD), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment, cwd=cwd
    )


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files below a folder and return it."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder
