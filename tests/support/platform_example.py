"""The example fleet with a platform in layers."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples/platform"


def platform_example() -> dict[str, bytes]:
    """Return the files of the fleet by path."""
    found = (path for path in sorted(FOLDER.rglob("*")) if path.is_file() and path.name != "README.md")
    return {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in found}
