"""Reads fleet.yaml, the environments and the classes of a commit, and holds them against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from shared.fleet.layers import Layer, Layers, unknown
from shared.fleet.layout import CLASSES, ENVIRONMENTS, FLEET_FILE, Files
from shared.fleet.manifests import ClusterClass, Environment, Fleet
from shared.fleet.nodes import Mark, Node
from shared.fleet.problems import Problem, problem_at
from shared.fleet.reading import Loaded, Problems, Read, layer_problems, load, part, reference, without

DEFAULTS = ("spec", "defaults")


def read_layers(fleet: str, files: Files, read: Read) -> Layers:
    """Return the shared files of the fleet that is called ``fleet``."""
    loaded = _fleet_file(fleet, files, read)
    stray: list[Problem] = []
    environments, manifests = _environments(files, read, stray)
    classes = _classes(files, read, stray)
    problems: Problems = loaded.problems
    manifest, order = loaded.manifest, tuple(manifests)
    if manifest is not None:
        order = manifest.spec.environments
        problems = (*layer_problems(loaded.node, DEFAULTS), *_listed(loaded.node, order, environments))
        environments = {name: _in_list(name, layer, order) for name, layer in environments.items()}
    base = Layer(part(loaded.node, *DEFAULTS), problems=tuple(problems))
    told = [*base.problems, *stray]
    told += [problem for layer in (*environments.values(), *classes.values()) for problem in layer.problems]
    return Layers(
        base,
        None if problems else manifest,
        environments,
        {name: manifests[name] for name in order if name in manifests},
        classes,
        tuple(dict.fromkeys(told)),
    )


def _fleet_file(name: str, files: Files, read: Read) -> Loaded[Fleet]:
    start = Mark(FLEET_FILE, 1, 1)
    if files.unreadable:
        return Loaded(Node({}, start), problems=files.unreadable)
    if FLEET_FILE not in files.blobs:
        message = "the repository has no fleet.yaml; add one with kind: Fleet"
        return Loaded(Node({}, start), problems=(problem_at(start, "", message),))
    loaded = load(FLEET_FILE, Fleet, read)
    given = loaded.manifest.metadata.name if loaded.manifest else name
    if given == name:
        return loaded
    mark = loaded.node.find(("metadata", "name")).mark
    message = f"this app serves the fleet {name}, not {given}; change one of the two"
    return Loaded(loaded.node, problems=(problem_at(mark, "metadata.name", message),))


def _environments(
    files: Files, read: Read, stray: list[Problem]
) -> tuple[dict[str, Layer], dict[str, Environment]]:
    paths, wrong = files.of(ENVIRONMENTS)
    layers, manifests = _unreadable(wrong, stray), {}
    for name, path in paths.items():
        loaded = load(path, Environment, read, name=name)
        layers[name] = Layer(problems=loaded.problems)
        if loaded.manifest is not None:
            manifests[name] = loaded.manifest
            where = loaded.node.find(("spec", "production")) if loaded.manifest.spec.production else None
            problems = tuple(layer_problems(loaded.node, DEFAULTS))
            layers[name] = Layer(part(loaded.node, *DEFAULTS), production=where, problems=problems)
    return layers, manifests


def _unreadable(wrong: Mapping[str, Problem], stray: list[Problem]) -> dict[str, Layer]:
    """Return layers for what cannot be read; what is wrong with a whole folder is nobody's."""
    stray += [problem for name, problem in wrong.items() if not name]
    return {name: Layer(problems=(problem,)) for name, problem in wrong.items() if name}


def _listed(fleet: Node, order: tuple[str, ...], environments: Mapping[str, Layer]) -> Iterator[Problem]:
    """Yield what is wrong in fleet.yaml with the list of environments."""
    for number, name in enumerate(order):
        mark, field = fleet.find(("spec", "environments", number)).mark, f"spec.environments[{number}]"
        if name in order[:number]:
            yield problem_at(mark, field, f"{name} is listed twice; keep the first")
        elif name not in environments:
            yield problem_at(mark, field, unknown("environment", name, environments))


def _in_list(name: str, layer: Layer, order: tuple[str, ...]) -> Layer:
    if name in order or layer.problems:
        return layer
    message = f"{name} is not in spec.environments of {FLEET_FILE}; add it there, where its turn is"
    problem = problem_at(Mark(f"{ENVIRONMENTS}/{name}.yaml", 1, 1), "", message)
    return replace(layer, problems=(problem,))


def _classes(files: Files, read: Read, stray: list[Problem]) -> dict[str, Layer]:
    paths, wrong = files.of(CLASSES)
    layers, nodes = _unreadable(wrong, stray), {}
    for name, path in paths.items():
        loaded = load(path, ClusterClass, read, name=name)
        layers[name] = Layer(problems=loaded.problems)
        if loaded.manifest is not None:
            nodes[name] = part(loaded.node, "spec")
            layers[name] = _class(loaded.node, nodes[name])
    for name, spec in nodes.items():
        inherited = tuple(_inheritance(name, spec, layers))
        layers[name] = replace(layers[name], problems=(*layers[name].problems, *inherited))
    return layers


def _class(root: Node, spec: Node) -> Layer:
    parent, wrong = reference(spec, "class")
    problems = (*layer_problems(root, ("spec",), chooses=("class",)), *([wrong] if wrong else []))
    return Layer(without(spec, "class", "environment"), parent, problems=problems)


def _inheritance(name: str, spec: Node, classes: Mapping[str, Layer]) -> Iterator[Problem]:
    """Yield what is wrong with the class that a class inherits from."""
    parent, mark = classes[name].parent, spec.find(("class",)).mark
    if parent and parent not in classes:
        yield problem_at(mark, "spec.class", unknown("class", parent, classes.keys() - {name}))
    way = [name]
    while parent in classes and parent not in way:
        way.append(parent)
        parent = classes[parent].parent
    if parent == name:
        circle = " -> ".join((*way, name))
        message = f"the classes inherit in a circle: {circle}; take one spec.class of these away"
        yield problem_at(mark, "spec.class", message)
