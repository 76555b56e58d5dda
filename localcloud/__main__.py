"""``python -m localcloud``: see ``up``, ``azure_command`` and ``pull_command`` of ``localcloud.runtime``."""

from __future__ import annotations

import os
import signal
import sys

_USAGE = """\
usage: python -m localcloud up [--state FOLDER] [--help]
       python -m localcloud azure CLUSTER CONTROL [CODE] [FIELD=VALUE ...] [--state FOLDER] [--help]
       python -m localcloud pull open BRANCH [--title TITLE] [--body TEXT] [--state FOLDER] [--help]
       python -m localcloud pull show|merge|close NUMBER [--state FOLDER] [--help]
       python -m localcloud pull list [--all] [--state FOLDER] [--help]"""


def main() -> int:
    """Run the command that was named."""
    match sys.argv[1:]:
        case ["up", *arguments]:
            # Imports take a moment, in which nothing runs yet that would have to be stopped.
            signal.signal(signal.SIGINT, lambda *_: os._exit(0))
            from localcloud.runtime import up

            return up.main(arguments)
        case ["azure", *arguments]:
            from localcloud.runtime import azure_command

            return azure_command.main(arguments)
        case ["pull", *arguments]:
            from localcloud.runtime import pull_command

            return pull_command.main(arguments)
        case _:
            print(_USAGE, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
