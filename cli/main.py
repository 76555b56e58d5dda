"""The entry point of ``roadstead``: runs the app, and turns every end into an exit code."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130
"""``ExitCode.INTERRUPTED``, available before any import."""


def main() -> None:
    """Run the command. An error is one line on stderr; Ctrl-C is silent."""
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run() -> int:
    from cli.app import COMPLETE, app
    from cli.errors import CommandError
    from cli.text import line

    if COMPLETE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    try:
        app()
    except CommandError as error:
        sys.stderr.write(f"roadstead: {line(str(error))}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    main()
