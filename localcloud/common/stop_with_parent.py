"""Lets a part of the local cloud notice that its supervisor is gone, however that ended.

The supervisor holds the other end of each part's standard input; when it ends, even by ``kill -9``, the
system closes that end.
"""

from __future__ import annotations

import os
import signal
import sys
import threading


def stop_with_parent() -> None:
    """Send this process SIGTERM as soon as its standard input closes."""
    threading.Thread(target=_wait, daemon=True, name="stop-with-parent").start()


def _wait() -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
