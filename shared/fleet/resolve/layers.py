"""What clusters share: the fleet's defaults, classes and environments, merged once per combination.

A cluster's spec is laid on fleet <- class <- environment. A mistake in one of these is told once, at its
place, and holds the clusters that use it and nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from shared.fleet.manifests import ClusterSpec, Environment, Fleet
from shared.fleet.resolve.manifest_file import Problems
from shared.fleet.resolve.placeholders import has_placeholder
from shared.fleet.resolve.problems import models_in, nearest
from shared.fleet.resolve.repository_layout import FLEET_FILE
from shared.fleet.resolve.yaml_tree import Mark, Node, merge, settled

NOTHING = Node({}, Mark(FLEET_FILE, 1, 1))


@dataclass(frozen=True)
class Layer:
    """One shared file's part of a cluster's spec. ``parent`` is the class that a class inherits from.

    ``production`` is where an environment says that it is one.
    """

    spec: Node = NOTHING
    parent: str = ""
    production: Node | None = None
    problems: Problems = ()


@dataclass(frozen=True)
class Base:
    """All layers below the clusters of one class and environment, merged.

    ``ready`` has the checked models of its parts by the id of their node: a cluster that leaves a part as
    it is takes the model, which is faster and needs memory once.
    """

    node: Node
    ready: Mapping[int, Any]
    production: Node | None
    problems: Problems


@dataclass(frozen=True)
class Layers:
    """The shared files of a commit; ``problems`` are all of theirs, those of no user too."""

    fleet: Layer
    manifest: Fleet | None
    environments: Mapping[str, Layer]
    manifests: Mapping[str, Environment]
    classes: Mapping[str, Layer]
    problems: Problems
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
        layers = [self.fleet, *lineage(cluster_class, self.classes), over]
        node = layers[0].spec
        for layer in layers[1:]:
            node = merge(node, layer.spec)
        problems = dict.fromkeys(problem for layer in reversed(layers) for problem in layer.problems)
        return Base(node, _ready(node), over.production, tuple(problems))


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the words for a class or environment that is named and is not there."""
    names = sorted(known)
    near = nearest(name, names)
    if near:
        return f"there is no {kind} {name}; did you mean {near}?"
    file = f"{'classes' if kind == 'class' else 'environments'}/{name}.yaml"
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"there is no {kind} {name}; " + (f"there are {shown}" if names else f"add the file {file}")


def lineage(name: str, classes: Mapping[str, Layer]) -> list[Layer]:
    """Return a class and those it inherits from, the farthest first."""
    found: dict[str, Layer] = {}
    while name in classes and name not in found:
        found[name] = classes[name]
        name = classes[name].parent
    return list(reversed(found.values()))


def _ready(spec: Node) -> dict[int, Any]:
    """Return what is finished in the merged layers, by the id of its node.

    Models of the parts that are right by themselves, and plain values in which nothing is filled in.
    """
    found: dict[int, Any] = dict(_plain_parts(spec))
    for name, info in ClusterSpec.model_fields.items():
        node, model = spec.child(info.alias or name), next(models_in(info.annotation), None)
        if node is None or model is None:
            continue
        for piece in node.value if isinstance(node.value, tuple) else (node,):
            checked = _checked(piece, model)
            if checked is not None:
                found[id(piece)] = checked
        if isinstance(node.value, tuple) and not has_placeholder(node):
            del found[id(node)]
            found[id(node)] = settled(node, str, found)
    return found


def _plain_parts(node: Node) -> Iterator[tuple[int, Any]]:
    for inner in node.value.values() if isinstance(node.value, dict) else node.value:
        if isinstance(inner.value, dict | tuple):
            yield from _plain_parts(inner)
            if not has_placeholder(inner):
                yield id(inner), settled(inner, str, {})


def _checked(node: Node, model: type[BaseModel]) -> BaseModel | None:
    if not isinstance(node.value, dict) or has_placeholder(node):
        return None
    try:
        return model.model_validate(settled(node, str, {}))
    except ValidationError:
        return None  # not whole without the cluster's own part, or a mistake that is told there
