"""Runs a program that ends with its supervisor: ``python guard.py PROGRAM ARGUMENT ...``.

The program stops when this process's standard input closes, when it gets SIGTERM, and (on Linux) when it is
killed; its exit code is ours.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from types import FrameType

_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> int:
    """Run the program of the command line until it ends."""
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, preexec_fn=_end_with_parent)  # noqa: PLW1509 - one thread

    def stop(_number: int, _frame: FrameType | None) -> None:
        process.terminate()

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        process.kill()

    signal.signal(signal.SIGTERM, stop)
    threading.Thread(target=watch, daemon=True).start()
    code = process.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
