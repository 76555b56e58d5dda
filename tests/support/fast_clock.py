"""A clock for processes that is put forward: libfaketime in each of them reads the offset from a file.

``time.monotonic`` goes on as it does, so nothing that waits for another process gives up early.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_LIBRARY = "vendor/libfaketime/src/libfaketime.so.1"


class FastClock:
    """Put forward with ``forward``; ``spawn`` starts a process that has it."""

    def __init__(self, file: Path) -> None:
        found = find_spec("libfaketime")
        if found is None or found.origin is None:
            raise RuntimeError("libfaketime is not installed: pip install libfaketime")
        self._library = Path(found.origin).parent / _LIBRARY
        self._file, self.seconds = file, 0
        self.forward(0)

    def forward(self, seconds: int) -> None:
        """Let every process have a time that is so much later; each notices it within a second."""
        self.seconds += seconds
        following = self._file.with_suffix(".next")
        following.write_text(f"+{self.seconds}\n")
        following.replace(self._file)

    def spawn(self, command: Any, *, env: Mapping[str, str], **named: Any) -> subprocess.Popen[bytes]:
        """Start a process, as ``subprocess.Popen`` does."""
        fast = {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        return subprocess.Popen(command, env={**env, **fast}, **named)
