"""Runs the story; exit status 0 when every part of it came true."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from cli.client import ApiError
from localcloud.demo.checkout import GitFailed
from localcloud.demo.follow import NotReached
from localcloud.demo.story import tell
from localcloud.runtime.child_processes import PartFailed
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import Options
from localcloud.runtime.state_folder import StateFolderError
from localcloud.runtime.tools import ToolError


def main(arguments: Sequence[str] | None = None) -> int:
    """Tell the story on a fresh cloud."""
    parser = argparse.ArgumentParser(prog="python -m localcloud.demo", description=__doc__)
    parser.add_argument("--state", type=Path, default=Path(".localcloud-demo"), help="folder, made fresh")
    parser.add_argument("--create-seconds", type=float, default=6.0, help="how long a cluster takes")
    given = parser.parse_args(arguments)
    console = Console(highlight=False)
    console.print("Starting a cloud on this machine: storage, Service Bus, Azure, GitHub, the functions.")
    try:
        with LocalCloud(given.state, Options(create_seconds=given.create_seconds)) as cloud:
            tell(cloud, console)
    except (PartFailed, StateFolderError, ToolError, GitFailed, NotReached, ApiError) as error:
        console.print(f"[bold red]The demo failed:[/] {error}", soft_wrap=True)
        console.print(f"The logs are in {given.state}/logs")
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    console.print("\nEverything is stopped. To try it by hand: make up")
    return 0


if __name__ == "__main__":
    sys.exit(main())
