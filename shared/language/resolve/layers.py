"""What clusters share: the fleet's defaults, classes and environments, merged once per combination.

A cluster's spec is merged over its environment, its class and the fleet, in this order. A problem in a shared
file is reported once, at its place, and invalidates only the clusters that use the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from operator import attrgetter

from shared.frozen import dataclass, field
from shared.language.model.kinds import Environment, Fleet
from shared.language.resolve.manifest_file import Problems
from shared.language.resolve.problems import SHOWN_OF_FILE, Problem, nearest, problem_at
from shared.language.resolve.repository_layout import FLEET_FILE
from shared.language.resolve.work import Work
from shared.language.yaml.nodes import Mark, Node, merge, size_of

EMPTY = Node({}, Mark(FLEET_FILE, 1, 1))


UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
MAX_VALUES = 20_000
"""How many values the layers of a cluster may have together: each of its clusters is resolved from all."""
KUBERNETES, NODE_IMAGES, FLUX = "kubernetes", "nodeImages", "flux"
"""The fields in which an environment says which channels it follows."""
MAX_INHERITANCE = 16
"""How many classes a class may inherit from, one after the other."""


@dataclass(frozen=True)
class Layer:
    """One shared file's part of a cluster's spec. ``parent`` is the class that a class inherits from.

    ``production`` is where an environment says that it is one, ``channels`` where it says what it follows, by
    the field of the environment.
    """

    spec: Node = EMPTY
    parent: str = ""
    production: Node | None = None
    channels: Mapping[str, Node] = field(default_factory=dict)
    problems: Problems = ()

    @cached_property
    def size(self) -> int:
        """How many values the layer has."""
        return size_of(self.spec)


@dataclass(frozen=True)
class Base:
    """All layers below the clusters of one class and environment, merged."""

    node: Node
    production: Node | None
    channels: Mapping[str, Node]
    problems: Problems
    size: int


@dataclass(frozen=True)
class Layers:
    """The shared files of a commit; ``problems`` includes those of files that no cluster uses."""

    fleet: Layer
    manifest: Fleet | None
    environments: Mapping[str, Layer]
    manifests: Mapping[str, Environment]
    classes: Mapping[str, Layer]
    problems: Problems
    work: Work = field(default_factory=Work)

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The subscriptions that the shared files name, in lower case, also those without a cluster."""
        layers = (self.fleet, *self.environments.values(), *self.classes.values())
        named = (layer.spec.child("subscriptionId") for layer in layers)
        values = {str(node.value).lower() for node in named if node is not None}
        return tuple(sorted(value for value in values if re.fullmatch(UUID, value)))

    _bases: dict[tuple[str, str], Base] = field(default_factory=dict)

    def unknown(self, kind: str, name: str) -> str:
        """Return why there is no such class or environment, "" when there is one."""
        known = self.classes if kind == "class" else self.environments
        return "" if not name or name in known else unknown(kind, name, known)

    def base(self, cluster_class: str, environment: str) -> Base:
        """Return the merged layers of a class and an environment, each "" where there is none."""
        key = (cluster_class, environment)
        if key not in self._bases:
            self._bases[key] = self._merged(*key)
        return self._bases[key]

    def _merged(self, cluster_class: str, environment: str) -> Base:
        over = self.environments.get(environment, Layer())
        line = reversed(line_of(cluster_class, self.classes))
        layers = [self.fleet, *(self.classes[name] for name in line), over]
        size = sum(layer.size for layer in layers)
        problems = tuple(dict.fromkeys(problem for layer in reversed(layers) for problem in layer.problems))
        if size > MAX_VALUES:
            problem = _too_large(max(layers, key=attrgetter("size")), size)
            return Base(EMPTY, over.production, over.channels, (problem, *problems)[:SHOWN_OF_FILE], 0)
        self.work.spend(size)
        node = layers[0].spec
        for layer in layers[1:]:
            node = merge(node, layer.spec)
        return Base(node, over.production, over.channels, problems[:SHOWN_OF_FILE], size)


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the message for a reference to a class or environment that does not exist."""
    names = sorted(known)
    near = nearest(name, names)
    if near:
        return f"there is no {kind} {name}; did you mean {near}?"
    file = f"{'classes' if kind == 'class' else 'environments'}/{name}.yaml"
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"there is no {kind} {name}; " + (f"there are {shown}" if names else f"add the file {file}")


def _too_large(layer: Layer, size: int) -> Problem:
    message = (
        f"this file and the layers that it is merged with have {size:,} values, at most {MAX_VALUES:,} are "
        "merged into a cluster; make it smaller"
    )
    return problem_at(layer.spec.mark, "", message)


def line_of(name: str, classes: Mapping[str, Layer]) -> list[str]:
    """Return a class and those that it inherits from, the base class last; of too many, one too many."""
    line = list[str]()
    while name in classes and name not in line and len(line) <= MAX_INHERITANCE + 1:
        line.append(name)
        name = classes[name].parent
    return line
