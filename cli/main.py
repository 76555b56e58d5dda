"""The entry point of ``roadstead``: runs the app, and turns every end into an exit code."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command. An error is one line on stderr; Ctrl-C is silent."""
    from cli.errors import CommandError, ExitCode

    try:
        from cli.app import app

        app()
    except CommandError as error:
        from cli.text import line

        sys.stderr.write(f"roadstead: {line(str(error))}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    main()
