"""Resolves one cluster: its file laid on its layers, texts filled in, then checked once as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from shared.fleet.desired import Desired
from shared.fleet.manifests import Cluster
from shared.fleet.resolve import removals
from shared.fleet.resolve.cross_field_rules import Finding, findings
from shared.fleet.resolve.layers import Base, Layers
from shared.fleet.resolve.manifest_file import (
    Problems,
    Read,
    layer_problems,
    part,
    reference,
    same_names,
    without,
    wrong_name,
)
from shared.fleet.resolve.placeholders import Filler
from shared.fleet.resolve.problems import Problem, problem_at, problem_in, problems_of
from shared.fleet.resolve.repository_layout import CLUSTER_FILE, NOT_PLAIN, Files, cluster_path
from shared.fleet.resolve.yaml_tree import (
    Mark,
    Node,
    Root,
    YamlError,
    merge,
    parse,
    without_nulls,
    without_removed,
)
from shared.fleet.resolve.yaml_tree import settled as settle

SPEC = ("spec",)
BATCH = 256
"""Clusters that are parsed, and then checked, together: parser and checks crowd each other out of the
processor's cache when they take turns at every cluster, which takes a sixth longer (measured)."""


@dataclass(frozen=True)
class _Merged:
    """A cluster's manifest on its layers; the class and environment are taken out of its spec.

    ``problems`` are those that the whole does not show any more.
    """

    node: Node
    base: Base
    cluster_class: str
    environment: str
    problems: Problems = ()


@dataclass(frozen=True)
class _Settled:
    """A merged manifest and its plain value with the texts filled in, not checked yet."""

    merged: _Merged
    plain: Any


class Reader:
    """Resolves the clusters of a commit."""

    def __init__(self, layers: Layers, files: Files, read: Read) -> None:
        self._layers, self._files, self._read = layers, files, read
        self._last: tuple[str, Node | None] = ("", None)

    def clusters(self, names: Sequence[str]) -> Iterator[tuple[str, Desired | Problems]]:
        """Yield, by its folder's name, each cluster that is asked for, or what is wrong with it."""
        for start in range(0, len(names), BATCH):
            batch = names[start : start + BATCH]
            for name, settled in [(name, self._settled(name)) for name in batch]:
                yield name, self._cluster(name, settled) if isinstance(settled, _Settled) else settled

    def _settled(self, name: str) -> _Settled | Problems:
        merged = self._merged(name)
        if not isinstance(merged, _Merged):
            return merged
        filler = self._filler(name, merged)
        plain = settle(merged.node, filler, merged.base.ready)
        if filler.lacks:
            return (*filler.problems(without_nulls(merged.node)), *merged.problems)
        return _Settled(merged, plain)

    def _cluster(self, name: str, settled: _Settled) -> Desired | Problems:
        try:
            manifest = Cluster.model_validate(settled.plain)
        except ValidationError as error:
            wrong = _wrong(error, settled.merged.node)
            fields = {problem.field for problem in wrong}
            return (*wrong, *(problem for problem in settled.merged.problems if problem.field not in fields))
        return self._checked(name, manifest, settled.merged)

    def _checked(self, name: str, manifest: Cluster, merged: _Merged) -> Desired | Problems:
        wrong = wrong_name(merged.node, manifest.metadata.name, name, "folder is called", more=_RENAMED)
        if wrong:
            return (wrong, *merged.problems)
        found = list(findings(manifest.spec))
        components = manifest.spec.flux.components.removeprefix("./")
        if components not in self._files.blobs:
            found.append((("flux", "components"), self._no_components(components)))
        if found or merged.problems:
            return (*_placed(merged.node, found), *merged.problems)
        return Desired(
            name,
            manifest.spec,
            self._files.blobs[components],
            merged.environment,
            merged.cluster_class,
            manifest.metadata.labels,
            manifest.metadata.annotations.adopt or "",
        )

    def _no_components(self, path: str) -> str:
        if path in self._files.other:
            return NOT_PLAIN.format(path)
        return f"there is no file {path} in the repository; write it with flux install --export"

    def _merged(self, name: str) -> _Merged | Problems:
        root = self._parsed(name)
        if not isinstance(root, Root):
            return root
        written = root.child("spec")
        whole = written is not None and isinstance(written.value, dict)
        spec = written if written is not None and whole else Node({}, root.mark)
        cluster_class, environment, problems = self._chosen(spec)
        base = self._layers.base(cluster_class, environment)
        if problems or base.problems:
            own = [*_header(root), *layer_problems(root, SPEC, chooses=("class", "environment")), *problems]
            return (*sorted(own), *base.problems)
        if not whole:
            return _Merged(root, base, cluster_class, environment)
        said = without(spec, "class", "environment")
        laid = Node({**root.value, "spec": _protected(merge(base.node, said), base)}, root.mark)
        nothing = tuple(removals.of_nothing(said, [base.node], SPEC, root)) if root.takes_away else ()
        return _Merged(laid, base, cluster_class, environment, nothing)

    def _parsed(self, name: str) -> Root | Problems:
        path = cluster_path(name)
        if name in self._files.misplaced:
            return self._files.misplaced[name]
        if path not in self._files.blobs:
            return (problem_at(Mark(path, 1, 1), "", self._no_file(name)),)
        try:
            return parse(self._read(path), path)
        except YamlError as error:
            return (problem_at(error.mark, "", error.message),)

    def _no_file(self, name: str) -> str:
        near = cluster_path(name).removesuffix("yaml") + "yml"
        if near in self._files.blobs:
            return f"the folder has no {CLUSTER_FILE}; cluster.yml must be called so"
        return f"the folder has no {CLUSTER_FILE}; add it, or remove the whole folder to delete the cluster"

    def _chosen(self, spec: Node) -> tuple[str, str, list[Problem]]:
        """Return the class and environment that a spec names, "" for those that do not exist."""
        chosen, problems = [], []
        for kind in ("class", "environment"):
            name, wrong = reference(spec, kind)
            message = self._layers.unknown(kind, name)
            if wrong is None and message:
                wrong = problem_at(spec.find((kind,)).mark, f"spec.{kind}", message)
            problems += [wrong] if wrong else []
            chosen.append("" if wrong else name)
        return chosen[0], chosen[1], problems

    def _filler(self, name: str, merged: _Merged) -> Filler:
        values = {"name": name, "environment": merged.environment, "class": merged.cluster_class}
        location = merged.node.find(("spec", "location")).value
        if isinstance(location, str):
            values["location"] = Filler(values)(location) if "{" in location else location
        return Filler(values)

    def origin(self, name: str) -> Node | None:
        """Return a cluster's merged manifest with the place of every value; the last one is kept."""
        if self._last[0] != name:
            merged = self._merged(name)
            self._last = (
                name,
                _filled(merged.node, self._filler(name, merged)) if isinstance(merged, _Merged) else None,
            )
        return self._last[1]

    def place(self, name: str, found: Iterable[Finding]) -> Problems:
        """Return findings about a cluster with their places."""
        node = self.origin(name)
        return _placed(node, found) if node else ()


_RENAMED = "; a cluster is renamed by deleting and creating it"


def _placed(node: Node, found: Iterable[Finding]) -> Problems:
    return tuple(sorted(problem_in(node, (*SPEC, *path), message) for path, message in found))


def _wrong(error: ValidationError, node: Node) -> list[Problem]:
    """Return what is wrong with a merged manifest; of two things with one name, that alone."""
    twice = same_names(part(node, *SPEC), SPEC, node)
    fields = tuple(f"{problem.field}[" for problem in twice)
    found = problems_of(error, without_removed(node), Cluster)
    return sorted([*twice, *(problem for problem in found if not problem.field.startswith(fields))])


def _header(root: Node) -> list[Problem]:
    """Check what stands around the spec."""
    try:
        Cluster.model_validate(root.plain())
    except ValidationError as error:
        return [p for p in problems_of(error, root, Cluster) if p.field.partition(".")[0] != "spec"]
    return []


def _protected(spec: Node, base: Base) -> Node:
    """Protect a cluster of a production environment that says nothing about it."""
    said = spec.child("deletionProtection")
    if base.production is None or (said is not None and said.value is not None):
        return spec
    return Node({**spec.value, "deletionProtection": Node(True, base.production.mark)}, spec.mark)


def _filled(node: Node, fill: Callable[[str], str]) -> Node:
    value: Any = node.value
    if isinstance(value, str):
        return Node(fill(value), node.mark)
    if isinstance(value, dict):
        return Node({key: _filled(inner, fill) for key, inner in value.items()}, node.mark)
    if isinstance(value, tuple):
        return Node(tuple(_filled(inner, fill) for inner in value), node.mark)
    return node
