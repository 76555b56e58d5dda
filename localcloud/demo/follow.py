"""Follows a commit: live in a terminal, with a line for each change elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from cli.errors import NotFound
from cli.fleet_api.client import Api
from cli.terminal import render
from localcloud.runtime.local_cloud import LocalCloud

DEADLINE = 90.0
"""Seconds that one commit may take; the local cloud needs a quarter of that."""


class NotReached(Exception):
    """The fleet did not reach the desired state; the message describes its state."""


def wait_for_plan(api: Api, commit: str, cloud: LocalCloud) -> dict[str, Any]:
    """Return the plan of a commit once it exists."""
    for _ in _polls(cloud):
        try:
            return api.get(f"plans/{commit}")
        except NotFound:
            continue
    raise NotReached(f"the commit {commit[:8]} was not planned within {DEADLINE:.0f} s")


def follow(api: Api, commit: str, cloud: LocalCloud, console: Console) -> str:
    """Show progress until the commit status is success, and return its description; raise NotReached."""
    show = _live if console.is_terminal else _lines
    for plan in show(api, commit, cloud, console):
        state, _, description = str(plan["status"]).partition(": ")
        if state == "success":
            return description
        if state in ("failure", "error"):
            raise NotReached(f"the commit status of {commit[:8]} is {state}: {description}")
    raise NotReached(f"the commit {commit[:8]} is not done after {DEADLINE:.0f} s; see roadstead status")


def _live(api: Api, commit: str, cloud: LocalCloud, console: Console) -> Iterator[dict[str, Any]]:
    with Live(console=console, auto_refresh=False) as live:
        for _ in _polls(cloud):
            fleet = api.fleet()
            live.update(render.fleet(fleet, datetime.now(UTC)), refresh=True)
            yield api.get(f"plans/{commit}")


def _lines(api: Api, commit: str, cloud: LocalCloud, console: Console) -> Iterator[dict[str, Any]]:
    shown: dict[str, tuple[str, str]] = {}
    began = time.monotonic()
    for _ in _polls(cloud):
        now = {view["name"]: (view["phase"], _step(view)) for view in api.get("clusters")["clusters"]}
        now |= {name: ("Deleted", "") for name in shown if name not in now}
        for name, cells in now.items():
            if shown.get(name) != cells:
                grid = Table.grid(padding=(0, 2))
                for width in (6, 12, 12, None):
                    grid.add_column(width=width)
                grid.add_row(f"{time.monotonic() - began:5.0f}s", name, *cells)
                console.print(grid)
        shown = now
        yield api.get(f"plans/{commit}")


def _step(view: dict[str, Any]) -> str:
    return f"{view['step']}: {view['reason']}" if view["reason"] else str(view["step"])


def _polls(cloud: LocalCloud) -> Iterator[None]:
    """Yield four times a second until the deadline; raise PartFailed when a process of the cloud ends."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        cloud.check()
        yield
        time.sleep(0.25)
