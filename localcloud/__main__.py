"""``python -m localcloud up``: see ``localcloud.up``."""

from __future__ import annotations

import sys

from localcloud import up

_USAGE = "usage: python -m localcloud up [--state FOLDER] [--help]"


def main() -> int:
    """Run the command that was named."""
    match sys.argv[1:]:
        case ["up", *arguments]:
            return up.main(arguments)
        case _:
            print(_USAGE, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
