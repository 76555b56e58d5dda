"""What is wrong with the apps, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.text import printable
from cli.times import age
from shared.app.api import schema
from shared.sentences import many

NOW = "deployment"
"""Whose findings are of this moment: Azure does not say since when."""


def doctor(view: schema.DoctorView, now: datetime) -> RenderableType:
    """Return a line for each app, and for each finding what is wrong, since when, and what mends it."""
    view = printable(view)
    apps = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for app in view["apps"]:
        examined = f"examined {age(app['examinedAt'], now)} ago" if app["examinedAt"] else "never examined"
        functions = [many(len(app["functions"]), "function")] if app.get("functions") else []
        apps.add_row(app["app"], app["version"], *functions, examined)
    parts: list[RenderableType] = [apps] if view["apps"] else []
    for finding in view["findings"]:
        parts.append(Text(f"{finding['app']}: {finding['what']}", style="bold red"))
        parts.append(_indented(Text(finding["problem"])))
        since = "" if finding["app"] == NOW else f"for {age(finding['since'], now)}; "
        parts += _remedy(since + finding["remedy"])
    found = many(len(view["findings"]), "finding") if view["findings"] else "nothing is wrong"
    return Group(*parts, Text(found, style="red" if view["findings"] else "green"))


def _remedy(text: str) -> Iterator[RenderableType]:
    """Yield the text, wrapped, and each command in it as a line of its own, which is copied as a whole."""
    for number, piece in enumerate(text.split("`")):
        words = piece.strip(" ,;:.") if number else piece.rstrip()
        if number % 2:
            yield Text(f"    {piece}", no_wrap=True, overflow="ignore")
        elif words:
            yield _indented(Text(words, style="dim"))


def _indented(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 2), expand=False)
