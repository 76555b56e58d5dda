"""Answers of real services, recorded below ``tests/localcloud/recorded`` with the version that gave them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "localcloud/recorded"


def recorded(name: str) -> dict[str, Any]:
    """Return a recording: its ``version``, and what was answered."""
    found: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return found


def record(name: str, version: str, answers: Mapping[str, Any]) -> None:
    """Write the answers of a real service down."""
    content = {"version": version, "answers": answers}
    (FOLDER / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
