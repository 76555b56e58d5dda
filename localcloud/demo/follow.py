"""Following a commit: live in a terminal, a line per change elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.live import Live

from cli import render
from cli.client import Api, NotFound
from localcloud.runtime.local_cloud import LocalCloud

DEADLINE = 90.0
"""Seconds that one commit may take; on the local cloud it takes a quarter of that."""


class NotReached(Exception):
    """The fleet did not become what the commit asks for; the message says where it stands."""


def wait_for_plan(api: Api, commit: str, cloud: LocalCloud) -> dict[str, Any]:
    """Return the plan of a commit once it is made."""
    for _ in _looks(cloud):
        try:
            return api.get(f"plans/{commit}")
        except NotFound:
            continue
    raise NotReached(f"the commit {commit[:8]} was not planned within {DEADLINE:.0f} s")


def follow(api: Api, commit: str, cloud: LocalCloud, console: Console) -> str:
    """Show progress until the commit status is success, and return its words; raise NotReached."""
    show = _live if console.is_terminal else _lines
    for plan in show(api, commit, cloud, console):
        state, _, words = str(plan["status"]).partition(": ")
        if state == "success":
            return words
        if state in ("failure", "error"):
            raise NotReached(f"the commit status of {commit[:8]} is {state}: {words}")
    raise NotReached(f"the commit {commit[:8]} is not done after {DEADLINE:.0f} s; see roadstead status")


def _live(api: Api, commit: str, cloud: LocalCloud, console: Console) -> Iterator[dict[str, Any]]:
    with Live(console=console, auto_refresh=False) as live:
        for _ in _looks(cloud):
            fleet = api.get("clusters")
            live.update(render.fleet(fleet, datetime.now(UTC)), refresh=True)
            yield api.get(f"plans/{commit}")


def _lines(api: Api, commit: str, cloud: LocalCloud, console: Console) -> Iterator[dict[str, Any]]:
    shown: dict[str, str] = {}
    began = time.monotonic()
    for _ in _looks(cloud):
        now = {view["name"]: _line(view) for view in api.get("clusters")["clusters"]}
        now |= {name: "Deleted" for name in shown if name not in now}
        for name, line in now.items():
            if shown.get(name) != line:
                console.print(f"  {time.monotonic() - began:3.0f}s  {name:<13} {line}", soft_wrap=True)
        shown = now
        yield api.get(f"plans/{commit}")


def _line(view: dict[str, Any]) -> str:
    reason = f"  {view['waitingFor']}" if view["waitingFor"] else ""
    return f"{view['phase']:<12} {view['step']}{reason}".rstrip()


def _looks(cloud: LocalCloud) -> Iterator[None]:
    """Yield a few times a second until the deadline; raise PartFailed when a part of the cloud ends."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        cloud.check()
        yield
        time.sleep(0.25)
