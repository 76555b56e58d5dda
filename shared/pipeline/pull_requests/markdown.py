"""GitHub's Markdown from text that nobody vouches for: it cannot break a table, ping a person or link.

Rules: github.github.com/gfm. Values go into code spans, where nothing but a backtick and, in a table, a bar
has a meaning; prose is escaped sign by sign.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

_UNSEEN = "\u200b"
"""A space without width: after it, @name is no mention, #1 no reference and :// no link."""


def line(text: str) -> str:
    """Return text as one line without control signs."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def code(text: str) -> str:
    """Return a code span that shows the text as it is, "" for no text; safe in a table."""
    shown = line(text).replace("|", "\\|")
    if not shown:
        return ""
    ticks = "`" * (_longest_run(shown) + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def prose(text: str) -> str:
    """Return a sentence that may hold other people's words, with every sign of Markdown taken as a sign."""
    shown = re.sub(r"([\\`*_\[\]~|])", r"\\\1", html.escape(line(text), quote=False))
    return re.sub(r"(@|#|://|\bGH-|\bwww\.)", rf"\1{_UNSEEN}", shown)


def table(heads: Sequence[str], records: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown already."""
    ruler = "|".join(["---"] * len(heads))
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, *records)]
    return "\n".join([lines[0], f"|{ruler}|", *lines[1:]])


def fence(text: str, language: str = "") -> str:
    """Return a block of code that holds the text, whatever is in it."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def details(summary: str, body: str) -> str:
    """Return a body that is folded away below its summary (plain words)."""
    return f"<details><summary>{html.escape(summary)}</summary>\n\n{body}\n\n</details>"


def fit(parts: Iterable[str], limit: int, last: str) -> str:
    """Return as many whole parts as fit into ``limit`` characters; ``last`` ends a text that was cut."""
    room = limit - len(last) - 2
    kept: list[str] = []
    for part in parts:
        room -= len(part) + 2
        if room < 0:
            return "\n\n".join([*kept, last])
        kept.append(part)
    return "\n\n".join(kept)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
