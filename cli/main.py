"""The entry point of ``roadstead``: runs the app, and turns every end into an exit code."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

INTERRUPTED = 130
FAILED, USAGE = 1, 2
"""As in ``ExitCode``, available before any import."""


def main() -> None:
    """Run the command. An error is one line on stderr; Ctrl-C is silent.

    A letter that standard output has no code for is written as its number.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run() -> int:
    from cli.app import COMPLETE, app
    from cli.errors import CommandError
    from cli.text import problem

    if COMPLETE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    try:
        app()
    except CommandError as error:
        sys.stderr.write(f"roadstead: {problem(str(error))}\n")
        return error.exit_code
    except UnicodeEncodeError:
        sys.stderr.write("roadstead: an argument is not UTF-8\n")
        return USAGE
    except OSError as error:  # of standard output, above all: a full disk
        sys.stderr.write(f"roadstead: {problem(str(error))}\n")
        return FAILED
    return 0


if __name__ == "__main__":
    main()
