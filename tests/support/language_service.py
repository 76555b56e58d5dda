"""Kusto's own language service, from npm: ``python -m tests.support.language_service`` installs it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from localcloud.common.programs import TOOLS
from localcloud.runtime.tools import install_from_npm, node

PINS = Path(__file__).parent.parent / "kusto"
INSTALLED = TOOLS / "kusto"


def diagnostics(queries: Sequence[str]) -> list[list[str]]:
    """Return what the language service says of each query over the table customMetrics, in their order."""
    if not (INSTALLED / "node_modules").is_dir():
        install_from_npm(PINS, INSTALLED)
    said = subprocess.run(
        [node(), str(PINS / "diagnostics.cjs"), str(INSTALLED)],
        input=json.dumps(queries),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[list[str]] = json.loads(said.stdout)
    return found


if __name__ == "__main__":
    install_from_npm(PINS, INSTALLED)
