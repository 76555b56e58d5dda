"""Fleet repositories on disk with git, and an environment without an app."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.roadstead_command import write

WITHOUT_APP = {"ROADSTEAD_URL": "http://127.0.0.1:1"}


def git(folder: Path, *arguments: str) -> str:
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    name = ("-c", "user.name=ada", "-c", "user.email=ada@example.com")
    command = ["git", *name, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def committed(folder: Path, files: Mapping[str, bytes]) -> str:
    """Write the files as a commit of a new repository; return its id."""
    write(folder, files)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=fleet")
    return git(folder, "rev-parse", "HEAD")
