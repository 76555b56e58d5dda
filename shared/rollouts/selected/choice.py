"""Which strategy a commit has: the one that it selects, or that of its kinds of changes.

A commit that names a strategy which it may not select has that of its changes, and nothing of it starts until
a person lets it: somebody who mistyped the name of a careful strategy gets no quicker one by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shared.fleet.manifests.rollout import Strategy
from shared.fleet.planning.plan import Item
from shared.masking import cut
from shared.rollouts.change_kinds import strategy_name

TRAILER = "Rollout"
MOST_NAMED = 10
LONGEST = 100
"""How much is stored of what a commit names."""


@dataclass(frozen=True)
class Asked:
    """What a commit says: the values of its trailers, and the labels of the pull request merged as it."""

    trailers: tuple[str, ...] = ()
    labels: frozenset[str] = frozenset()


NOTHING = Asked()


@dataclass(frozen=True)
class Choice:
    """The strategy of a commit; ``selected``: the commit selects it.

    ``refused`` are the names that the commit gives and may not, or several at once.
    """

    strategy: str
    selected: bool = False
    refused: tuple[str, ...] = ()


def asks(strategies: Sequence[Strategy]) -> bool:
    """Return whether a fleet lets commits select a strategy."""
    return any(each.may_be_selected for each in strategies)


def asks_labels(strategies: Sequence[Strategy]) -> bool:
    """Return whether a label of a pull request selects a strategy of a fleet."""
    return any(each.pull_request_label for each in strategies)


def choose(strategies: Sequence[Strategy], asked: Asked, updates: Iterable[Item]) -> Choice:
    """Return the strategy of a commit with these updates."""
    default = strategy_name(strategies, updates)
    if not asks(strategies):
        return Choice(default)
    labelled = [each.name for each in strategies if each.pull_request_label in asked.labels]
    named = tuple(dict.fromkeys((*asked.trailers, *labelled)))
    if not named:
        return Choice(default)
    allowed = {*labelled, *(each.name for each in strategies if each.selectable)}
    if len(named) == 1 and named[0] in allowed:
        return Choice(named[0], selected=True)
    return Choice(default, refused=tuple(cut(name, LONGEST) for name in named[:MOST_NAMED]))
