"""Runs the demo on a fresh local cloud; the exit status is 0 when every step succeeded."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from rich.console import Console

from cli.errors import ApiError
from localcloud.demo.checkout import GitFailed
from localcloud.demo.follow import NotReached
from localcloud.demo.story import play
from localcloud.runtime.child_processes import PartFailed
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import Options
from localcloud.runtime.state_folder import StateFolderError
from localcloud.runtime.tools import ToolError
from shared.configuration.settings import GitHostName

HOSTS = [host for host in get_args(GitHostName) if host != "git"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo on a fresh local cloud."""
    parser = argparse.ArgumentParser(prog="python -m localcloud.demo", description=__doc__)
    parser.add_argument(
        "--state", type=Path, default=Path(".localcloud-demo"), help="state folder, emptied at the start"
    )
    parser.add_argument("--create-seconds", type=float, default=6.0, help="how long Azure creates a cluster")
    parser.add_argument("--git-host", choices=HOSTS, default="github")
    given = parser.parse_args(arguments)
    options = Options(create_seconds=given.create_seconds, extra={"GIT_HOST": given.git_host})
    console = Console(highlight=False)
    console.print("Starting the local cloud: storage, Service Bus, Azure, a git host, functions")
    try:
        with LocalCloud(given.state, options) as cloud:
            play(cloud, console)
    except (PartFailed, StateFolderError, ToolError, GitFailed, NotReached, ApiError) as error:
        console.print(f"[bold red]The demo failed:[/] {error}", soft_wrap=True)
        console.print(f"The logs are in {given.state}/logs")
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    console.print("\nThe local cloud has stopped. To try it yourself: make up")
    return 0


if __name__ == "__main__":
    sys.exit(main())
