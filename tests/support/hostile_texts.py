"""Hostile texts of git, Azure, Flux and people in whatever the pages of the console read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from shared.app.console.pages import PAGES

ATTACK = (
    "\"'><script>alert(1)</script><img src=x onerror=alert(1)>`<b>`[a](javascript:a)\u202e\x1b[2J\x00\r\n"
)
VIEWS = {"cluster_detail", "drift_of_cluster", "describe_unknown", "costs_by_name", "open_requests"}
"""What the pages read, apart from what is named ``..._view``."""
NAMED = {"labels", "outputs"}
"""What has names of the fleet as its keys."""
TIME = re.compile(r"\d{4}-\d\d-\d\d")


def attacked(value: Any, attack: str = ATTACK, *, keys: bool = False) -> Any:
    """Return an object of the API in which every text but a time ends with an attack."""
    if isinstance(value, str):
        return value if TIME.match(value) else value + attack
    if is_dataclass(value) and not isinstance(value, type):
        found = {part.name: attacked(getattr(value, part.name), attack) for part in fields(value)}
        return replace(value, **found)
    if isinstance(value, tuple):
        return tuple(attacked(part, attack) for part in value)
    if isinstance(value, dict):
        named = {key: attacked(part, attack, keys=key in NAMED) for key, part in value.items()}
        return {key + attack * keys: part for key, part in named.items()}
    return [attacked(part, attack) for part in value] if isinstance(value, list) else value


def attack_pages(monkeypatch: pytest.MonkeyPatch, attack: str = ATTACK) -> None:
    """Let the pages read hostile texts alone."""

    def attacking(read: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given, **named: attacked(read(*given, **named), attack)

    for module in {page.make.__globals__["__name__"]: page.make.__globals__ for page in PAGES}.values():
        for name in [name for name in module if name.endswith("_view") or name in VIEWS]:
            if name != "health_view":
                monkeypatch.setitem(module, name, attacking(module[name]))
