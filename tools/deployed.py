"""The files of the function app: what a package has of this repository. The standard library alone."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path


def deployed(folder: Path) -> Iterator[Path]:
    """Yield the files that the Core Tools upload: all but what ``.funcignore`` names, at any depth."""
    ignored = (folder / ".funcignore").read_text().split()
    for path in sorted(folder.iterdir()):
        if not any(fnmatchcase(path.name, pattern) for pattern in ignored):
            files = sorted(path.rglob("*")) if path.is_dir() else [path]
            yield from (file for file in files if file.is_file() and "__pycache__" not in file.parts)
