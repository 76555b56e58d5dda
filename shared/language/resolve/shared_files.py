"""Resolves fleet.yaml, the environments and the classes of a commit, and checks them against each other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from shared.frozen import dataclass, replace
from shared.language.model.kinds import ClusterClass, Environment, Fleet, Versions
from shared.language.resolve.layers import (
    FLUX,
    KUBERNETES,
    MAX_INHERITANCE,
    NODE_IMAGES,
    Layer,
    Layers,
    line_of,
    unknown,
)
from shared.language.resolve.manifest_file import (
    Contents,
    LoadedFile,
    Problems,
    Shared,
    layer_problems,
    load,
    part,
    reference,
    same_names,
    unmatched_removals,
    without,
)
from shared.language.resolve.problems import Problem, described, limited, problem_at
from shared.language.resolve.repository_layout import (
    CLASSES,
    ENVIRONMENTS,
    FLEET_FILE,
    VERSIONS,
    Files,
    environment_path,
    shared_paths,
    versions_path,
)
from shared.language.resolve.work import Work
from shared.language.yaml.nodes import Mark, Node, merge


def inheritance_problems(
    marks: Mapping[str, Mark], classes: Mapping[str, Layer]
) -> Iterator[tuple[str, Problem]]:
    """Yield each class with the problem of its ``spec.class``, whose places are ``marks``."""
    for name, mark in marks.items():
        parent, line = classes[name].parent, line_of(name, classes)
        message = ""
        if parent and parent not in classes:
            message = unknown("class", parent, classes.keys() - {name})
        elif len(line) > MAX_INHERITANCE + 1:
            most = f"more than {MAX_INHERITANCE} classes, one after the other"
            message = f"inherits from {most}; merge some of them"
        elif classes[line[-1]].parent == name:
            cycle = " -> ".join((*line, name))
            message = (
                f"the classes inherit from each other in a cycle: {cycle}; remove one of these spec.class"
            )
        if message:
            yield name, problem_at(mark, "spec.class", message)


DEFAULTS = ("spec", "defaults")


def read_layers(fleet: str, files: Files, contents: Contents, work: Work | None = None) -> Layers:
    """Return the shared files of the fleet that is called ``fleet``."""
    work = work or Work()
    read = _SharedFiles(files, contents, work, work.share(len(shared_paths(files))))
    loaded = _fleet_file(fleet, read)
    unassigned: list[Problem] = []
    listed: dict[str, list[Problem]] = {}
    environments, manifests = _environments(read, unassigned)
    classes = _classes(read, unassigned)
    problems: Problems = loaded.problems
    manifest, order, fleet_spec = loaded.manifest, tuple(manifests), part(loaded.node, *DEFAULTS)
    if manifest is not None:
        order = manifest.spec.environments
        unmatched = unmatched_removals(fleet_spec, (), DEFAULTS, loaded.node)
        duplicates = same_names(part(loaded.node, "spec"), ("spec",), loaded.node)
        problems = (*duplicates, *layer_problems(loaded.node, DEFAULTS), *unmatched)
        listed = _listed(loaded.node, order, environments)
        unassigned += [problem for problems_of_one in listed.values() for problem in problems_of_one]
        named = frozenset(order)
        environments = {
            name: _in_list(name, layer, named, listed.get(name, ())) for name, layer in environments.items()
        }
    base = Layer(fleet_spec, problems=tuple(problems))
    all_problems = [*base.problems, *unassigned]
    if manifest is not None:
        environments, classes = _with_unmatched_removals(base, environments, classes)
    for layer in (*environments.values(), *classes.values()):
        all_problems += layer.problems
    return Layers(
        base,
        None if problems or listed else manifest,
        environments,
        {name: manifests[name] for name in order if name in manifests},
        classes,
        limited(all_problems),
        work,
    )


@dataclass(frozen=True)
class _SharedFiles:
    """The shared files, and the units of work that each of them may take."""

    files: Files
    contents: Contents
    work: Work
    share: int

    def load(self, path: str, model: type[Shared], name: str = "") -> LoadedFile[Shared]:
        """Return the manifest of a file."""
        return load(path, model, self.contents, self.work, self.share, name=name)


def _fleet_file(name: str, read: _SharedFiles) -> LoadedFile[Fleet]:
    start, files = Mark(FLEET_FILE, 1, 1), read.files
    if files.unreadable:
        return LoadedFile(Node({}, start), problems=files.unreadable)
    if FLEET_FILE not in files.blobs:
        message = "the repository has no fleet.yaml; add one with kind: Fleet"
        return LoadedFile(Node({}, start), problems=(problem_at(start, "", message),))
    loaded = read.load(FLEET_FILE, Fleet)
    given = loaded.manifest.metadata.name if loaded.manifest else name
    if given == name:
        return loaded
    mark = loaded.node.find(("metadata", "name")).mark
    message = f"this app serves the fleet {name}, not {given}; change it here, or the setting ROADSTEAD_FLEET"
    return LoadedFile(loaded.node, problems=(problem_at(mark, "metadata.name", message),))


def _environments(
    read: _SharedFiles, unassigned: list[Problem]
) -> tuple[dict[str, Layer], dict[str, Environment]]:
    paths, wrong = read.files.of(ENVIRONMENTS)
    layers, manifests = _unreadable(wrong, unassigned), {}
    for name, path in paths.items():
        loaded = read.load(path, Environment, name)
        layers[name] = Layer(problems=loaded.problems)
        if loaded.manifest is not None:
            manifests[name] = loaded.manifest
            spec = loaded.manifest.spec
            where = loaded.node.find(("spec", "production")) if spec.production else None
            followed = {KUBERNETES: spec.kubernetes, NODE_IMAGES: spec.node_images, FLUX: spec.flux}
            channels = {
                field: loaded.node.find(("spec", field, "channel"))
                for field, channel in followed.items()
                if channel is not None
            }
            problems = tuple(layer_problems(loaded.node, DEFAULTS))
            own = part(loaded.node, *DEFAULTS)
            layer = Layer(own, production=where, channels=channels, problems=problems)
            layers[name] = _with_versions(layer, name, read)
    lost = read.files.of(VERSIONS)[0].keys() - paths.keys()
    unassigned += [_needless(name, f"there is no {environment_path(name)}") for name in sorted(lost)]
    return layers, manifests


_GIVEN = {
    KUBERNETES: (("kubernetesVersion",), "version", "`roadstead versions {} VERSION`"),
    NODE_IMAGES: (("minNodeImageVersion",), "oldest node image", "`roadstead versions {} --image IMAGE`"),
    FLUX: (
        ("flux.extension.version", "flux.instance.distribution.version"),
        "version of Flux",
        "`roadstead versions {} --extension VERSION`, or `--flux VERSION` for the operator,",
    ),
}
"""What each channel gives the clusters of an environment, what that is called, and how to write it."""


def _with_versions(layer: Layer, name: str, read: _SharedFiles) -> Layer:
    """Return an environment with what its channels have, or with what is wrong with that."""
    paths, wrong = read.files.of(VERSIONS)
    if name in wrong:
        return replace(layer, problems=(*layer.problems, wrong[name]))
    if not layer.channels:
        why = f"{environment_path(name)} has no spec.kubernetes, spec.nodeImages or spec.flux"
        needless = _needless(name, why)
        return replace(layer, problems=(*layer.problems, needless)) if name in paths else layer
    problems = [*_given_twice(layer, name)]
    if name not in paths:
        problems += [_without_file(name, field, node) for field, node in layer.channels.items()]
        return replace(layer, problems=(*layer.problems, *problems))
    versions = read.load(paths[name], Versions, name)
    if versions.manifest is None:
        return replace(layer, problems=(*layer.problems, *problems, *versions.problems))
    spec = part(versions.node, "spec")
    problems += _not_as_followed(spec, layer, name)
    if problems:
        return replace(layer, problems=(*layer.problems, *problems))
    return replace(layer, spec=merge(layer.spec, spec))


def _given_twice(layer: Layer, name: str) -> Iterator[Problem]:
    for field, node in layer.channels.items():
        paths, called, _ = _GIVEN[field]
        for path in paths:
            *above, last = path.split(".")
            own = part(layer.spec, *above).child(last)
            if own is not None:
                message = (
                    f"the channel {node.value} gives the environment its {called}, in "
                    f"{versions_path(name)}; remove this, or spec.{field}"
                )
                yield problem_at(own.mark, f"spec.defaults.{path}", message)


def _without_file(name: str, field: str, node: Node) -> Problem:
    _, called, command = _GIVEN[field]
    message = (
        f"there is no {versions_path(name)} with the {called} that the channel has now; "
        f"{command.format(name)} writes it"
    )
    return problem_at(node.mark, f"spec.{field}.channel", message)


def _not_as_followed(spec: Node, layer: Layer, name: str) -> Iterator[Problem]:
    """Yield what the file lacks of the channels that are followed, and what it has of others."""
    for field, (paths, called, _) in _GIVEN.items():
        path = paths[0].partition(".")[0]
        given = spec.child(path)
        if field in layer.channels and given is None:
            message = f"is not there; write the {called} that the clusters of {name} have now"
            yield problem_at(spec.mark, f"spec.{path}", message)
        if field not in layer.channels and given is not None:
            why = f"{environment_path(name)} has no spec.{field}, so that nothing follows this"
            yield problem_at(given.mark, f"spec.{path}", f"{why}; remove it, or add that")


def _needless(name: str, why: str) -> Problem:
    message = f"{why}, so that nothing follows these versions; remove this file, or add that"
    return problem_at(Mark(versions_path(name), 1, 1), "", message)


def _unreadable(wrong: Mapping[str, Problem], unassigned: list[Problem]) -> dict[str, Layer]:
    """Return a layer for each unreadable entry; the problem of a whole folder belongs to no layer."""
    unassigned += [problem for name, problem in wrong.items() if not name]
    return {name: Layer(problems=(problem,)) for name, problem in wrong.items() if name}


def _listed(
    fleet: Node, order: tuple[str, ...], environments: Mapping[str, Layer]
) -> dict[str, list[Problem]]:
    """Return the problems of the list of environments in fleet.yaml, by environment."""
    first = {name: number for number, name in reversed([*enumerate(order)])}
    wrong = [
        (fleet.find(("spec", "environments", number)).mark, (number, name, first[name] != number))
        for number, name in enumerate(order)
        if first[name] != number or name not in environments
    ]
    problems: dict[str, list[Problem]] = {}

    def describe(mark: Mark, entry: tuple[int, str, bool]) -> Problem:
        number, name, again = entry
        twice = f"{name} is listed twice; keep the first"
        message = twice if again else unknown("environment", name, environments)
        problem = problem_at(mark, f"spec.environments[{number}]", message)
        problems.setdefault(name, []).append(problem)
        return problem

    more = [problem for problem in described(wrong, describe) if problem.more]
    return problems | ({"": more} if more else {})


def _in_list(name: str, layer: Layer, order: Collection[str], wrong: Iterable[Problem]) -> Layer:
    """Return an environment with the problems of its entry in the list."""
    if wrong or layer.problems:
        return replace(layer, problems=(*layer.problems, *wrong))
    if name in order:
        return layer
    message = f"{name} is not in spec.environments of {FLEET_FILE}; add it there, in the order of the rollout"
    problem = problem_at(Mark(f"{ENVIRONMENTS}/{name}.yaml", 1, 1), "", message)
    return replace(layer, problems=(problem,))


def _with_unmatched_removals(
    fleet: Layer, environments: Mapping[str, Layer], classes: Mapping[str, Layer]
) -> tuple[dict[str, Layer], dict[str, Layer]]:
    """Return environments and classes with a problem for each removal of a name that no layer below has.

    An environment is merged over many classes: one of them with the name is enough. Where a layer below is
    invalid, nothing is reported, because the names that it should have are unknown.
    """
    valid = all(not layer.problems for layer in (fleet, *classes.values()))
    under = [fleet.spec, *(layer.spec for layer in classes.values())]
    above = {
        name: _checked_removals(layer, under, DEFAULTS) if valid else layer
        for name, layer in environments.items()
    }
    checked = {}
    for name, layer in classes.items():
        parents = [fleet, *(classes[parent] for parent in line_of(layer.parent, classes))]
        if any(parent.problems for parent in (layer, *parents)):
            checked[name] = layer
        else:
            below = [parent.spec for parent in parents]
            checked[name] = _checked_removals(layer, below, ("spec",))
    return above, checked


def _checked_removals(layer: Layer, below: Sequence[Node], at: tuple[str, ...]) -> Layer:
    root = layer.spec
    for step in reversed(at):
        root = Node({step: root}, root.mark)
    unmatched = unmatched_removals(layer.spec, below, at, root)
    return replace(layer, problems=(*layer.problems, *unmatched)) if unmatched else layer


def _classes(read: _SharedFiles, unassigned: list[Problem]) -> dict[str, Layer]:
    paths, wrong = read.files.of(CLASSES)
    layers, nodes = _unreadable(wrong, unassigned), {}
    for name, path in paths.items():
        loaded = read.load(path, ClusterClass, name)
        layers[name] = Layer(problems=loaded.problems)
        if loaded.manifest is not None:
            nodes[name] = part(loaded.node, "spec")
            layers[name] = _class(loaded.node, nodes[name])
    marks = {name: spec.find(("class",)).mark for name, spec in nodes.items()}
    for name, problem in inheritance_problems(marks, layers):
        layers[name] = replace(layers[name], problems=(*layers[name].problems, problem))
    return layers


def _class(root: Node, spec: Node) -> Layer:
    parent, wrong = reference(spec, "class")
    problems = (*layer_problems(root, ("spec",), chooses=("class",)), *([wrong] if wrong else []))
    return Layer(without(spec, "class", "environment"), parent, problems=problems)
