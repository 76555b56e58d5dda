"""GitHub's Markdown from untrusted text, which is inert: it breaks no table, and creates no mention or link.

Rules: github.github.com/gfm, and what GitHub adds to it (docs.github.com/get-started/writing-on-github):
mentions, references to issues and commits, emoji and mathematical expressions. Values go into code spans,
where only a backtick and, in a table, a bar have a meaning; in prose everything is escaped.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from shared.masking import without_secrets

_ZERO_WIDTH = "\u200b"
"""A zero-width space: GitHub finds no name, number or address across it."""
NAMES_TOGETHER = 100
COLUMNS = 80
_LINKED = re.compile(
    r"@|#|://|:(?=[\w+-]+:)|\bGH-|\bwww\.|[0-9a-f]{6}(?=[0-9a-f])|\bmailto:|\bxmpp:", re.IGNORECASE
)
"""Mentions and addresses, references to issues, links, emoji, and ids of commits, from 7 digits on."""


def line(text: str) -> str:
    """Return text as one line without control characters, and without secrets, which escapes would hide."""
    safe = without_secrets(text)
    return " ".join("".join(letter if letter.isprintable() else " " for letter in safe).split())


def code(text: str) -> str:
    """Return a code span that shows the text as it is, "" for no text; safe in a table."""
    shown = line(text).replace("|", "\\|")
    if not shown:
        return ""
    ticks = "`" * (_longest_run(shown) + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def prose(text: str) -> str:
    """Return untrusted text with everything escaped that Markdown or GitHub would give a meaning.

    A dollar sign, which begins a mathematical expression, stands in an element of its own, as GitHub's page
    about writing mathematical expressions advises.
    """
    shown = _LINKED.sub(lambda found: f"{found[0]}{_ZERO_WIDTH}", line(text))
    shown = html.escape(shown, quote=False).replace("$", "<span>$</span>")
    return re.sub(r"([\\`*_\[\]~|]|^[-+=]|^[0-9]+(?=[.)]))", _escaped, shown)


def _escaped(found: re.Match[str]) -> str:
    """Return a character that is escaped, or the number of a list that is none."""
    return f"{found[0]}{_ZERO_WIDTH}" if found[0].isdigit() else f"\\{found[0]}"


def names(given: Sequence[str]) -> Iterator[str]:
    """Yield names as code spans, in paragraphs of at most 100 whose lines fit a narrow window."""
    for first in range(0, len(given), NAMES_TOGETHER):
        text = ", ".join(map(code, given[first : first + NAMES_TOGETHER]))
        yield "\n".join(textwrap.wrap(text, COLUMNS, break_long_words=False, break_on_hyphens=False))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    ruler = "|".join(["---"] * len(heads))
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, *rows)]
    return "\n".join([lines[0], f"|{ruler}|", *lines[1:]])


def fence(text: str, language: str = "") -> str:
    """Return a block of code with the text, whatever the text contains."""
    lines = without_secrets(text).split("\n")
    shown = "\n".join("".join(c if c.isprintable() else " " for c in text_line) for text_line in lines)
    ticks = "`" * max(3, _longest_run(shown) + 1)
    return f"{ticks}{language}\n{shown.rstrip()}\n{ticks}"


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
