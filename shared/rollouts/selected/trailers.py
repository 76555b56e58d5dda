"""The trailers of a commit message, by the rules of ``git interpret-trailers``.

They are the last paragraph of the message, if all of its lines are trailers, or one is by git itself and a
quarter of the lines are trailers. A line that begins with a space continues the one before it, and one that
begins with # is a comment. What follows a line with ``---`` is no part of the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_TRAILER = re.compile(r"([A-Za-z0-9-]+)[ \t]*:(.*)")
_OF_GIT = ("Signed-off-by: ", "(cherry picked from commit ")
_END = re.compile(r"---(\s.*)?")
_COMMENT = "#"


def trailer_values(message: str, name: str) -> Sequence[str]:
    """Return the values of the trailers of a name, whatever its case, in order, each as one line."""
    return [value for key, value in trailers(message) if key.lower() == name.lower()]


def trailers(message: str) -> Iterator[tuple[str, str]]:
    """Yield the trailers of a message, each with the lines that continue it as one."""
    found = list[str]()
    for line in _block(message):
        if _continues(line) and found:
            found[-1] += f" {line}"
        else:
            found.append(line)
    for line in found:
        trailer = _TRAILER.fullmatch(line)
        if trailer is not None:
            yield trailer[1], " ".join(trailer[2].split())


def _continues(line: str) -> bool:
    return line[:1] in (" ", "\t")


def _block(message: str) -> Sequence[str]:
    """Return the lines of the last paragraph below the subject, if they are trailers.

    A line that continues none counts as one that is no trailer.
    """
    lines = _lines(message)
    named = others = continuing = 0
    of_git = False
    for place in range(len(lines) - 1, -1, -1):
        line = lines[place]
        if not line.strip():
            others += continuing
            enough = named * 3 >= others if of_git else named > 0 and others == 0
            return lines[place + 1 :] if enough else []
        if line.startswith(_COMMENT):
            others, continuing = others + continuing, 0
        elif line.startswith(_OF_GIT) or _TRAILER.fullmatch(line):
            named, continuing, of_git = named + 1, 0, of_git or line.startswith(_OF_GIT)
        elif _continues(line):
            continuing += 1
        else:
            others, continuing = others + continuing + 1, 0
    return []


def _lines(message: str) -> Sequence[str]:
    """Return the lines of a message without blank ones, and comments, at its end."""
    lines = list[str]()
    for line in message.split("\n"):
        if _END.fullmatch(line):
            break
        lines.append(line)
    while lines and (not lines[-1].strip() or lines[-1].startswith(_COMMENT)):
        lines.pop()
    return lines
