"""``roadstead approve``: shows what a commit would delete, asks, and releases exactly that."""

from __future__ import annotations

import getpass
from typing import Any

from rich.console import Console
from rich.text import Text

from cli.client import Api, ApiError


def find_plan(api: Api, commit: str) -> dict[str, Any]:
    """Return the plan whose commit begins with these characters; raise ApiError for none or several."""
    found = [plan["commit"] for plan in api.get("plans")["plans"] if plan["commit"].startswith(commit)]
    if not found:
        raise ApiError(f"no recent plan has a commit that begins with {commit[:40]}; see roadstead plans")
    if len(found) > 1:
        raise ApiError(f"several plans begin with {commit[:40]}; give more of the commit")
    return api.get(f"plans/{found[0]}")


def held_deletes(plan: dict[str, Any]) -> list[str]:
    """Return what the plan holds; raise ApiError when there is nothing to approve."""
    held = [str(name) for name in plan["heldDeletes"]]
    if not held:
        raise ApiError(f"the plan of {plan['commit'][:8]} holds no delete; nothing is to be approved")
    return held


def show(plan: dict[str, Any], held: list[str], console: Console) -> None:
    """Print what an approval would release, and why it is held."""
    console.print(Text(f"The plan of {plan['commit'][:8]} would delete {len(held)} clusters:"))
    for item in plan["items"]:
        if item["cluster"] in held:
            console.print(Text(f"  {item['cluster']}", style="red"), Text(item["reason"], style="dim"))


def release(api: Api, plan: dict[str, Any], held: list[str]) -> dict[str, Any]:
    """Approve exactly these deletes, in the name of this machine's user."""
    return api.post(f"plans/{plan['commit']}/approve", {"clusters": held}, actor=getpass.getuser())
