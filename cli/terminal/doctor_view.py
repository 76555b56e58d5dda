"""What is wrong with the apps, as text for a terminal."""

from __future__ import annotations

from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.text import printable
from cli.times import age
from shared.app.api import schema
from shared.sentences import many


def doctor(view: schema.DoctorView, now: datetime) -> RenderableType:
    """Return a line for each app, and three for each finding: what is wrong, since when, what mends it."""
    view = printable(view)
    apps = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for app in view["apps"]:
        examined = f"examined {age(app['examinedAt'], now)} ago" if app["examinedAt"] else "never examined"
        functions = many(len(app["functions"]), "function") if app.get("functions") else ""
        apps.add_row(app["app"], app["version"], functions, examined)
    parts: list[RenderableType] = [apps]
    for finding in view["findings"]:
        text = Text.assemble(
            (f"{finding['app']}: {finding['what']}", "bold red"),
            f"\n  {finding['problem']}",
            (f"\n  for {age(finding['since'], now)}; {finding['remedy']}", "dim"),
        )
        parts.append(text)
    found = many(len(view["findings"]), "finding") if view["findings"] else "nothing is wrong"
    return Group(*parts, Text(found, style="red" if view["findings"] else "green"))
