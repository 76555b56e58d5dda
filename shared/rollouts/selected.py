"""Which strategy a commit has: the one that it selects, or that of its kinds of changes.

A commit that names a strategy which it may not select has that of its changes, and nothing of it starts until
a person lets it: somebody who mistyped the name of a careful strategy gets no quicker one by that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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


_NAMED = re.compile(rf"{TRAILER}[ \t]*:(.*)", re.IGNORECASE)


def named_in(message: str) -> list[str]:
    """Return the strategies that a commit names: those of the lines ``Rollout: NAME`` of its last paragraph.

    These are the trailers that git reads (git-scm.com/docs/git-interpret-trailers), and those between which
    other lines stand: what nobody meant so is refused, and holds.
    """
    *above, last = re.split(r"\n[ \t]*\n", message.strip())
    lines = map(_NAMED.fullmatch, last.split("\n") if above else ())
    return [" ".join(line[1].split()) for line in lines if line]
