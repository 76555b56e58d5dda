"""Which strategy a commit has: the one that it selects, or that of its kinds of changes.

A commit that names a strategy which it may not select has that of its changes, and nothing of it starts until
a person lets it: somebody who mistyped the name of a careful strategy gets no quicker one by that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shared.frozen import dataclass, replace
from shared.language.model.rollout import Strategy
from shared.masking import cut
from shared.plan.plan import Item
from shared.rollouts.candidates import slowest_kind, strategy_name
from shared.rollouts.strategy import StrategyChoice

TRAILER = "Rollout"
MOST_NAMED = 10
LONGEST = 100
"""How much is stored of what a commit names."""


@dataclass(frozen=True)
class CommitRequest:
    """What a commit says: the values of its trailers, and the labels of the pull request merged as it."""

    trailers: tuple[str, ...] = ()
    labels: frozenset[str] = frozenset()


NOTHING = CommitRequest()


def asks(strategies: Sequence[Strategy]) -> bool:
    """Return whether a fleet lets commits select a strategy."""
    return any(strategy.may_be_selected for strategy in strategies)


def asks_labels(strategies: Sequence[Strategy]) -> bool:
    """Return whether a label of a pull request selects a strategy of a fleet."""
    return any(strategy.pull_request_label for strategy in strategies)


def choose(
    strategies: Sequence[Strategy], asked: CommitRequest, updates: Sequence[Item]
) -> tuple[StrategyChoice, tuple[str, ...]]:
    """Return the strategy of a commit with these updates, and the names that it gives and may not.

    Several at once may not be given either.
    """
    default = StrategyChoice(strategy_name(strategies, updates), kind=slowest_kind(updates))
    if not asks(strategies):
        return default, ()
    labelled = [strategy.name for strategy in strategies if strategy.pull_request_label in asked.labels]
    named = tuple(dict.fromkeys((*asked.trailers, *labelled)))
    allowed = {*labelled, *(strategy.name for strategy in strategies if strategy.selectable)}
    if len(named) == 1 and named[0] in allowed:
        return replace(default, name=named[0], selected=True), ()
    return default, tuple(cut(name, LONGEST) for name in named[:MOST_NAMED])


# The trailers of a commit message, by the rules of ``git interpret-trailers``.
#
# They are the last paragraph of the message, if all of its lines are trailers, or one is by git itself and
# a quarter of the lines are trailers. A line that begins with a space continues the one before it, and one
# that begins with # is a comment. What follows a line with ``---`` is no part of the message.

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
