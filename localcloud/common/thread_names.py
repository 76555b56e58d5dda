"""Names of threads that the tools of the system show too, such as top."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def name_thread(name: str) -> None:
    """Name the current thread, and those that it starts, for the system; only Linux can.

    Python names threads for itself alone before 3.14. ``name`` has at most 15 characters (proc(5)).
    """
    with suppress(OSError):
        Path("/proc/thread-self/comm").write_text(name)
