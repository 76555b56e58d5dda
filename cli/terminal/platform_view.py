"""What changes of what Flux applies to clusters, as lines of a terminal: by change, and not by cluster."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from cli.terminal.cluster_table import indented
from cli.terminal.render import few
from cli.text import line
from shared.platform.report import Section, text_of

_STYLES = {"+": "green", "-": "red", "~": "cyan", "?": "bold red", "!": "yellow"}
_LONGEST = 4000
_STATES = {"refused": "bold red", "needs approval": "yellow"}


class PlatformChanges:
    """The sections of a plan, as wide as the terminal is; unwrapped in a pipe."""

    def __init__(self, sections: Sequence[Section]) -> None:
        self._sections = sections

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        for section in self._sections:
            head = Text(f"\n{line(section.heading)}", style="bold")
            if section.state:
                head.append(f": {section.state}", style=_STATES[section.state])
            yield head
            if len(section.clusters) > 1:
                yield indented(Text(few(section.clusters), style="dim"), 2)
            for text in text_of(section, options.max_width - 2):
                yield Text(f"  {_plain(text)}", style=_STYLES.get(text[0], ""))


def _plain(text: str) -> str:
    """Return a line with its indentation, without control characters."""
    return f"{' ' * (len(text) - len(text.lstrip(' ')))}{line(text.strip(), _LONGEST)}"
