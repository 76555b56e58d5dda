"""The operator's clone of the fleet repository, changed with the git command."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from localcloud.git.world.git_commands import git_environment


class GitFailed(Exception):
    """A git command failed; the message has the command and its error."""


class Checkout:
    """A clone of the fleet repository in ``folder``; every change is committed and pushed to a branch."""

    def __init__(self, remote: str, folder: Path, *, branch: str = "main") -> None:
        self.folder, self._branch = folder, branch
        self._git("clone", "--quiet", remote, str(folder), inside=False)

    def copy(self, source: Path) -> None:
        """Copy a folder's content into the clone."""
        shutil.copytree(source, self.folder, dirs_exist_ok=True)

    def replace_all(self, files: Mapping[str, bytes]) -> None:
        """Replace the content of the clone by these files."""
        for path in self.folder.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, content in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(content)

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace a string in a file; it must occur once."""
        file = self.folder / path
        text = file.read_text()
        if text.count(old) != 1:
            raise GitFailed(f"{path} does not contain this string exactly once: {old!r}")
        file.write_text(text.replace(old, new))

    def remove(self, path: str) -> None:
        """Remove a folder."""
        shutil.rmtree(self.folder / path)

    def push(self, message: str) -> str:
        """Commit everything and push it; return the commit."""
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", message)
        self._git("push", "--quiet", "origin", f"HEAD:{self._branch}")
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str, inside: bool = True) -> str:
        place = ["-C", str(self.folder)] if inside else []
        who = ["-c", "user.name=Operator", "-c", "user.email=operator@example.com"]
        done = subprocess.run(
            ["git", *place, *who, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=git_environment(),
        )
        if done.returncode:
            raise GitFailed(f"git {arguments[0]}: {done.stderr.strip()}")
        return done.stdout
