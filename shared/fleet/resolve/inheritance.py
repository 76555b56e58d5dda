"""Which classes a class inherits from: a chain that ends, and not too late. Every class is looked at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shared.fleet.resolve.layers import MAX_INHERITANCE, Layer, unknown
from shared.fleet.resolve.problems import Problem, problem_at
from shared.fleet.yaml_tree.nodes import Mark

SHOWN_OF_CYCLE = 8


@dataclass(frozen=True)
class _Chain:
    """How many classes a class inherits from, and the first class of these that inherits from too many.

    ``cycle`` is the beginning of the circle that the class is in, and ``members`` how many it has.
    """

    length: int = 0
    first_beyond: str = ""
    cycle: tuple[str, ...] = ()
    members: int = 0


def inheritance_problems(
    marks: Mapping[str, Mark], classes: Mapping[str, Layer]
) -> Iterator[tuple[str, Problem]]:
    """Yield each class with the problem of its chain; ``marks`` has the place of each ``spec.class``.

    Every class that inherits from too many has the problem of the first one in its chain, at its place.
    """
    chains = _chains(classes)
    for name, mark in marks.items():
        chain, parent = chains[name], classes[name].parent
        if parent and parent not in classes:
            yield name, problem_at(mark, "spec.class", unknown("class", parent, classes.keys() - {name}))
        elif chain.cycle:
            yield name, problem_at(mark, "spec.class", _circular(name, chain))
        elif chain.first_beyond:
            message = (
                f"inherits from more than {MAX_INHERITANCE} classes, one after the other; merge some of them"
            )
            yield name, problem_at(marks.get(chain.first_beyond, mark), "spec.class", message)


def _chains(classes: Mapping[str, Layer]) -> Mapping[str, _Chain]:
    chains: dict[str, _Chain] = {}
    for name in classes:
        way: dict[str, int] = {}
        at = name
        while at in classes and at not in chains and at not in way:
            way[at] = len(way)
            at = classes[at].parent
        above = list(way)
        if at in way:
            members = above[way[at] :]
            del above[way[at] :]
            chains |= _in_cycle(members)
        for one in reversed(above):
            chains[one] = _longer(one, chains.get(classes[one].parent))
    return chains


def _in_cycle(members: list[str]) -> Iterator[tuple[str, _Chain]]:
    around = (*members, *members[:SHOWN_OF_CYCLE])
    for number, name in enumerate(members):
        shown = around[number : number + min(len(members), SHOWN_OF_CYCLE)]
        yield name, _Chain(cycle=shown, members=len(members))


def _longer(name: str, parent: _Chain | None) -> _Chain:
    if parent is None:
        return _Chain()
    length = parent.length + 1
    return _Chain(length, parent.first_beyond or (name if length > MAX_INHERITANCE else ""))


def _circular(name: str, chain: _Chain) -> str:
    rest = () if chain.members == len(chain.cycle) else (f"... ({chain.members} classes)",)
    cycle = " -> ".join((*chain.cycle, *rest, name))
    return f"the classes inherit from each other in a cycle: {cycle}; remove one of these spec.class"
