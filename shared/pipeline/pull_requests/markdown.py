"""GitHub's Markdown from untrusted text: it cannot break a table, mention a person or create a link.

Rules: github.github.com/gfm. Values go into code spans, where only a backtick and, in a table, a bar have a
meaning; every special character of prose is escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

_ZERO_WIDTH = "\u200b"
"""A zero-width space: after it, @name is no mention, #1 no reference and :// no link."""


def line(text: str) -> str:
    """Return text as one line without control characters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def code(text: str) -> str:
    """Return a code span that shows the text as it is, "" for no text; safe in a table."""
    shown = line(text).replace("|", "\\|")
    if not shown:
        return ""
    ticks = "`" * (_longest_run(shown) + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def prose(text: str) -> str:
    """Return untrusted text with every special character of Markdown escaped."""
    shown = re.sub(r"([\\`*_\[\]~|])", r"\\\1", html.escape(line(text), quote=False))
    return re.sub(r"(@|#|://|\bGH-|\bwww\.)", rf"\1{_ZERO_WIDTH}", shown)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    ruler = "|".join(["---"] * len(heads))
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, *rows)]
    return "\n".join([lines[0], f"|{ruler}|", *lines[1:]])


def fence(text: str, language: str = "") -> str:
    """Return a block of code with the text, whatever the text contains."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def details(summary: str, body: str) -> str:
    """Return a body that is collapsed below its summary, which is plain text."""
    return f"<details><summary>{html.escape(summary)}</summary>\n\n{body}\n\n</details>"


def fit(parts: Iterable[str], limit: int, last: str) -> str:
    """Return as many whole parts as fit into ``limit`` characters; ``last`` ends a shortened text."""
    room = limit - len(last) - 2
    fitting: list[str] = []
    for part in parts:
        room -= len(part) + 2
        if room < 0:
            return "\n\n".join([*fitting, last])
        fitting.append(part)
    return "\n\n".join(fitting)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
