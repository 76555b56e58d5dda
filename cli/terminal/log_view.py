"""The commits that an environment lacks, as text: each with its files, and where its clusters are."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from cli.terminal.cluster_table import indented
from cli.text import printable
from shared.app.api import schema
from shared.sentences import many, some_of

NAMES = 3


def log_view(found: schema.Log, *, wide: bool = False) -> RenderableType:
    """Return two lines for each commit, and one for the clusters that pull it."""
    return Group(*_lines(printable(found), most=1000 if wide else NAMES))


def _lines(found: schema.Log, *, most: int) -> Iterator[RenderableType]:
    behind = max((pulled["behind"] or 0 for pulled in found["pulled"]), default=0)
    distance = f"up to {many(behind, 'commit')} behind " if behind else ""
    head = f"{found['branch']} at {found['head'][:8]}"
    yield Text(f"{found['environment']}: {distance}{head}", style="bold")
    shown = len(found["commits"])
    for number in range(shown + 1):
        yield from (_place(pulled, most) for pulled in found["pulled"] if pulled["behind"] == number)
        if number < shown:
            commit = found["commits"][number]
            yield Text(f"{commit['commit'][:8]}  {commit['title']}")
            files = some_of(commit["files"], most, total=commit["fileCount"]) or "changes no file"
            yield indented(Text(files, style="dim"), 10)
    if found["more"]:
        yield Text(f"{many(found['more'], 'older commit')} not shown", style="yellow")
    others = (pulled for pulled in found["pulled"] if pulled["behind"] is None or pulled["behind"] > shown)
    yield from (_place(pulled, most) for pulled in others)


def _place(pulled: schema.PulledCommit, most: int) -> RenderableType:
    """Return which clusters pull a commit, and how far they are where no commit shows it."""
    count = pulled["clusterCount"]
    who = f"{many(count, 'cluster')}: {some_of(pulled['clusters'], most, total=count)}"
    if not pulled["commit"]:
        return indented(Text(f"Flux follows its source by itself on {who}", style="yellow"), 2)
    unverified = f"; {pulled['unverifiedCount']} not verified" * (pulled["unverifiedCount"] > 0)
    unknown = "; over 250 commits behind, or not on the branch" * (pulled["behind"] is None)
    style = "yellow" if unknown or unverified else "green"
    return Text(f"{pulled['commit'][:8]}  {who}{unverified}{unknown}", style=style)
