"""Stands for Python where pytest-xdist starts a worker: the worker is forked from the warm process.

So no worker imports the project, which takes seconds of a core. The arguments are those of Python:
``warm_worker.py -u -c PROGRAM``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> int:
    """Run the program in a warm process, with these streams; return its exit code."""
    sys.path[0] = str(Path(__file__).parents[2])
    from tests.support.warm_processes import start

    _, _, *program = sys.argv
    return start(program, stdin=0, stdout=1, stderr=2, env=os.environ).wait()


if __name__ == "__main__":
    sys.exit(main())
