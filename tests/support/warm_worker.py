"""Stands for Python where pytest-xdist starts a worker: the worker is forked from the warm process.

So no worker imports the project, which takes seconds of a core. Its arguments are those of Python:
``-u -c PROGRAM``.
"""

from __future__ import annotations

import os
import sys

from tests.support.warm_processes import start

if __name__ == "__main__":
    _, _, *program = sys.argv
    sys.exit(start(program, stdin=0, stdout=1, stderr=2, env=os.environ).wait())
