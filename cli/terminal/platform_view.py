"""What changes of what Flux applies to clusters, as lines of a terminal: by change, and not by cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from cli.terminal.cluster_table import indented
from cli.terminal.render import few
from cli.text import line
from shared.frozen import dataclass
from shared.platform.changes.report import Section, as_json, text_of

_STYLES = {"+": "green", "-": "red", "~": "cyan", "?": "bold red", "!": "yellow"}
_LONGEST = 4000
_STATES = {"refused": "bold red", "needs approval": "yellow"}


@dataclass(frozen=True)
class PlatformView:
    """What changes of what Flux applies, as wide as the terminal is; unwrapped in a pipe.

    ``problems`` are those of what would be applied, and ``notes`` what may be one, and was not before.
    ``builder`` is what built it, "" for nothing, and ``note`` says what was not built.
    """

    sections: tuple[Section, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    builder: str = ""
    note: str = ""

    def as_json(self) -> Mapping[str, Any]:
        """Return it for scripts; its problems are among those of the plan."""
        return {
            "builtWith": self.builder,
            "note": self.note,
            "notes": list(self.notes),
            "changes": [as_json(section) for section in self.sections],
        }

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        if self.note:
            yield Text(line(self.note), style="yellow")
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

        if self.notes:
            yield Text("\nFlux: may be wrong", style="bold")
        for known in self.notes:
            yield indented(Text(line(known, _LONGEST), style="yellow"), 2)


NO_PLATFORM = PlatformView()


def _plain(text: str) -> str:
    """Return a line with its indentation, without control characters."""
    return f"{' ' * (len(text) - len(text.lstrip(' ')))}{line(text.strip(), _LONGEST)}"
