"""Where the programs are that ``localcloud.runtime.tools`` installs."""

from __future__ import annotations

import shutil
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / ".tools"


def program(name: str, tools: Path = TOOLS) -> str | None:
    """Return the path of ``kubectl`` or ``helm``: the installed one, else that of the machine, or None."""
    installed = tools / name / name
    return str(installed) if installed.is_file() else shutil.which(name)
