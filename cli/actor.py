"""Who runs the command, as the API is told."""

from __future__ import annotations

import getpass
import os


def actor() -> str:
    """Return the name of this machine's user; the number of one that has no name, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
