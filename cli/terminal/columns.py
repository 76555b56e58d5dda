"""Lines of aligned columns below their heads, as many columns as a terminal has room for."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

GAP = 2
"""Spaces between two columns."""


def fitted(rows: Sequence[tuple[str, Sequence[Text]]], least: int, width: int) -> tuple[list[Text], int]:
    """Return a line for each item, and how many of the cells next to its name there was room for.

    Each item is a name and its cells; the first one has the heads, and ``least`` cells are always shown. A
    name that is too long for its column has a line of its own.
    """
    names, cells = [name for name, _ in rows], [row for _, row in rows]
    widths = [max(len(row[column]) for row in cells) + GAP for column in range(len(cells[0]))]
    longest, shown = max(map(len, names)), least
    while shown < len(widths) and longest + sum(widths[: shown + 1]) <= width:
        shown += 1
    room = max(len(names[0]), min(longest, width - sum(widths[:shown])))
    lines = [
        _line(name, row[:shown], room, widths, bold=number == 0)
        for number, (name, row) in enumerate(zip(names, cells, strict=True))
    ]
    return lines, shown


def _line(name: str, cells: Sequence[Text], room: int, widths: Sequence[int], *, bold: bool) -> Text:
    line = Text(f"{name}\n{'':<{room}}" if len(name) > room else f"{name:<{room}}")
    for cell, width in zip(cells, widths, strict=False):
        line.append(" " * GAP)
        cell.pad_right(width - GAP - len(cell))
        line.append(cell)
    line.rstrip()
    if bold:
        line.stylize("bold")
    return line
