"""``roadstead approve``: shows what a commit would delete, asks, and releases exactly that."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from cli.actor import actor
from cli.client import Api, ApiError
from cli.output import line


def find_plan(api: Api, commit: str) -> dict[str, Any]:
    """Return the whole plan whose commit begins with these characters; raise ApiError for none or several."""
    found = [plan["commit"] for plan in api.get("plans")["plans"] if plan["commit"].startswith(commit)]
    if not found:
        raise ApiError(f"no recent plan has a commit that begins with {commit[:40]}; see roadstead plans")
    if len(found) > 1:
        raise ApiError(f"several plans begin with {commit[:40]}; give more of the commit")
    return api.whole(f"plans/{found[0]}", "items", "heldDeletes")


def held_deletes(plan: dict[str, Any]) -> list[str]:
    """Return what the plan holds; raise ApiError when there is nothing to approve, or too late."""
    held = [str(name) for name in plan["heldDeletes"]]
    if held and not plan["release"]:
        raise ApiError(f"a newer commit than {plan['commit'][:8]} is planned; approve that: roadstead plans")
    if not held:
        raise ApiError(f"the plan of {plan['commit'][:8]} holds no delete; nothing is to be approved")
    return held


def show(plan: dict[str, Any], held: list[str], console: Console) -> None:
    """Print what an approval would release, and why it is held."""
    many = f"{len(held)} cluster{'s' * (len(held) != 1)}"
    console.print(Text(f"The plan of {plan['commit'][:8]} would delete {many}, and all that runs there:"))
    found = (item for item in plan["items"] if item["heldDelete"])
    for reason, items in groupby(sorted(found, key=_reason), key=_reason):
        for item in items:
            console.print(Text(f"  {item['cluster']}", style="bold red"))
        console.print(Padding(Text(line(reason), style="dim"), (0, 0, 0, 4)))


def _reason(item: dict[str, Any]) -> str:
    return str(item["reason"])


def release(api: Api, plan: dict[str, Any], held: list[str]) -> dict[str, Any]:
    """Approve exactly these deletes, in the name of this machine's user."""
    return api.post(f"plans/{plan['commit']}/approve", {"clusters": held}, actor=actor())
