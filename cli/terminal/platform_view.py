"""What changes of what Flux applies to clusters, as lines of a terminal: by change, and not by cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from cli.charts import ChartChange
from cli.terminal.cluster_table import indented
from cli.terminal.render import few
from cli.text import line
from shared.frozen import dataclass
from shared.platform.changes.report import ReportSection, as_json, text_of
from shared.sentences import many

_STYLES = {"+": "green", "-": "red", "~": "cyan", "?": "bold red", "!": "yellow"}
_LONGEST = 4000
_MOST = 50
"""How many objects of a chart are shown."""
_STATES = {"refused": "bold red", "needs approval": "yellow"}


@dataclass(frozen=True)
class PlatformView:
    """What changes of what Flux applies, as wide as the terminal is; unwrapped in a pipe.

    ``problems`` are those of what would be applied, and ``notes`` what may be one, and was not before.
    ``builder`` is what built it, "" for nothing, and ``note`` says what was not built. ``charts`` is what
    changes of what charts render, where helm is installed. ``followed`` says who follows what besides the
    stages of the fleet repository.
    """

    sections: tuple[ReportSection, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    builder: str = ""
    note: str = ""
    charts: tuple[ChartChange, ...] = ()
    followed: tuple[str, ...] = ()

    def as_json(self) -> Mapping[str, Any]:
        """Return it for scripts; its problems are among those of the plan."""
        return {
            "builtWith": self.builder,
            "note": self.note,
            "notes": list(self.notes),
            "followed": list(self.followed),
            "changes": [as_json(section) for section in self.sections],
            "charts": [chart.as_json() for chart in self.charts],
        }

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        if self.note:
            yield Text(line(self.note), style="yellow")
        for followed in self.followed:
            yield Text(line(f"{followed}.", _LONGEST), style="yellow")
        if self.builder and not (self.sections or self.problems):
            yield Text(f"Flux: no object differs (built with {self.builder})", style="dim")
        for section in self.sections:
            head = Text(f"\n{line(section.heading)}", style="bold")
            if section.state:
                head.append(f": {section.state}", style=_STATES[section.state])
            yield head
            if len(section.clusters) > 1:
                yield indented(Text(few(section.clusters), style="dim"), 2)
            for text in text_of(section, options.max_width - 2):
                yield Text(f"  {_plain(text)}", style=_STYLES.get(text[0], ""))
        for chart in self.charts:
            yield from self._chart(chart, options.max_width)
        if self.notes:
            yield Text("\nFlux: may be wrong", style="bold")
        for known in self.notes:
            yield indented(Text(line(known, _LONGEST), style="yellow"), 2)

    def _chart(self, chart: ChartChange, width: int) -> RenderResult:
        names, changes = chart.section.clusters, len(chart.section.lines)
        of = names[0] if len(names) == 1 else f"{len(names)} clusters"
        what = many(changes, "object") if changes or not chart.note else chart.note
        yield Text(f"\nChart of HelmRelease {line(chart.release)} on {line(of)}: {line(what)}", style="bold")
        if changes and chart.note:
            yield indented(Text(line(chart.note), style="yellow"), 2)
        for text in text_of(chart.section, width - 2, _MOST):
            yield Text(f"  {_plain(text)}", style=_STYLES.get(text[0], ""))


NO_PLATFORM = PlatformView()


def _plain(text: str) -> str:
    """Return a line with its indentation, without control characters."""
    return f"{' ' * (len(text) - len(text.lstrip(' ')))}{line(text.strip(), _LONGEST)}"
