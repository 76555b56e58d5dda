"""Resolves one cluster: merges its file over its layers, fills in placeholders, validates the result once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from shared.fleet.desired import Desired
from shared.fleet.manifests.kinds import ADOPT, REBUILD, REPLACES, Cluster, ClusterElsewhere
from shared.fleet.resolve.layers import Base, Layers
from shared.fleet.resolve.manifest_file import (
    Contents,
    Problems,
    layer_problems,
    over_limit,
    part,
    reference,
    same_names,
    without,
    wrong_name,
)
from shared.fleet.resolve.placeholders import Placeholders
from shared.fleet.resolve.problems import Problem, described, problem_at, problem_in
from shared.fleet.resolve.removals import LayersBelow, unmatched_removals
from shared.fleet.resolve.repository_layout import CLUSTER_FILE, NOT_PLAIN, Files, cluster_path
from shared.fleet.resolve.rules.cross_field_rules import Finding, findings
from shared.fleet.resolve.rules.existing_rules import fields_of_aks, is_elsewhere, without_aks
from shared.fleet.resolve.validation import problems_of
from shared.fleet.resolve.work import Work, units_of
from shared.fleet.yaml_tree.merging import merge, plain_value, without_nulls, without_removed
from shared.fleet.yaml_tree.nodes import Items, Mark, Node, Root
from shared.fleet.yaml_tree.parser import YamlError, parse

SPEC = ("spec",)
BATCH = 256
"""How many clusters are parsed, and then validated, together. Alternating for every cluster takes a sixth
longer (measured), because parsing and validation evict each other from the processor's cache."""


@dataclass(frozen=True)
class _Merged:
    """A cluster's manifest merged over its layers, without ``class`` and ``environment`` in its spec.

    ``problems`` are those of the cluster's file that the merged manifest no longer shows.
    """

    node: Node
    base: Base
    cluster_class: str
    environment: str
    problems: Problems = ()

    @property
    def model(self) -> type[Cluster]:
        """The model of the provider that the manifest names."""
        return ClusterElsewhere if is_elsewhere(self.node.find(SPEC)) else Cluster


@dataclass(frozen=True)
class _Filled:
    """A merged manifest and its plain value with placeholders filled in, not validated yet."""

    merged: _Merged
    plain: Any


class ClusterResolver:
    """Resolves the clusters of a commit."""

    def __init__(self, layers: Layers, files: Files, contents: Contents) -> None:
        self._layers, self._files, self._contents = layers, files, contents
        self._last: tuple[str, Node | None] = ("", None)
        self._share = layers.work.limit

    def clusters(self, names: Sequence[str]) -> Iterator[tuple[str, Desired | Problems]]:
        """Yield each of these clusters, or its problems, with the name of its folder."""
        self._share = self._layers.work.share(len(names))
        for start in range(0, len(names), BATCH):
            batch = names[start : start + BATCH]
            for name, filled in [(name, self._filled(name)) for name in batch]:
                yield name, self._validated(name, filled) if isinstance(filled, _Filled) else filled

    def _filled(self, name: str) -> _Filled | Problems:
        merged = self._merged(name)
        if not isinstance(merged, _Merged):
            return merged
        placeholders = self._placeholders(name, merged)
        plain = plain_value(merged.node, placeholders.fill, merged.base.finished)
        if placeholders.failed:
            return (*placeholders.problems(without_nulls(merged.node)), *merged.problems)
        return _Filled(merged, plain)

    def _validated(self, name: str, filled: _Filled) -> Desired | Problems:
        try:
            manifest = filled.merged.model.model_validate(filled.plain)
        except ValidationError as error:
            problems = _validation_problems(error, filled.merged.node, filled.merged.model)
            fields = {problem.field for problem in problems}
            return (*problems, *(other for other in filled.merged.problems if other.field not in fields))
        return self._checked(name, manifest, filled.merged)

    def _checked(self, name: str, manifest: Cluster, merged: _Merged) -> Desired | Problems:
        misnamed = wrong_name(merged.node, manifest.metadata.name, name, "folder is called", more=_RENAMED)
        if misnamed:
            return (misnamed, *merged.problems)
        annotations = manifest.metadata.annotations
        for key, asked in ((ADOPT, annotations.adopt), (REBUILD, annotations.rebuild)):
            if asked and merged.model is ClusterElsewhere:
                place = merged.node.find(("metadata", "annotations", key)).mark
                return (problem_at(place, f"metadata.annotations.{key}", _ONLY_AZURE), *merged.problems)
        if annotations.replaces == name:
            place = merged.node.find(("metadata", "annotations", REPLACES)).mark
            return (problem_at(place, f"metadata.annotations.{REPLACES}", _ITSELF), *merged.problems)
        violations = list(findings(manifest.spec))
        components, extension = (
            manifest.spec.flux.components.removeprefix("./"),
            manifest.spec.flux.is_extension,
        )
        if not extension and components not in self._files.blobs:
            violations.append((("flux", "components"), self._no_components(components)))
        if violations or merged.problems:
            return (*_placed(merged.node, violations), *merged.problems)
        desired = Desired(
            name,
            manifest.spec,
            "" if extension else self._files.blobs[components],
            merged.environment,
            merged.cluster_class,
            manifest.metadata.labels,
            manifest.metadata.annotations.adopt or "",
            manifest.metadata.annotations.rebuild or "",
            replaces=manifest.metadata.annotations.replaces or "",
        )
        size = _size_of(desired)
        if size > MAX_RESOLVED_BYTES:
            text = (
                f"has {size} bytes with everything that is merged into it, and at most {MAX_RESOLVED_BYTES}"
            )
            return (problem_at(merged.node.mark, "", f"{text} are stored"),)
        return desired

    def _no_components(self, path: str) -> str:
        if path in self._files.other:
            return NOT_PLAIN.format(path)
        return f"there is no file {path} in the repository; write it with flux install --export"

    def _merged(self, name: str) -> _Merged | Problems:
        root = self._parsed(name)
        if not isinstance(root, Root):
            return root
        given = root.child("spec")
        is_object = given is not None and isinstance(given.value, dict)
        spec = given if given is not None and is_object else Node({}, root.mark)
        cluster_class, environment, problems = self._chosen(spec)
        base = self._layers.base(cluster_class, environment)
        if not self._layers.work.admits(base.size, self._share):
            return (problem_at(root.mark, "", _over_share(base.size, self._share, self._layers.work)),)
        if problems or base.problems:
            own = [*_header(root), *layer_problems(root, SPEC, chooses=("class", "environment")), *problems]
            return (*sorted(own), *base.problems)
        if not is_object:
            return _Merged(root, base, cluster_class, environment)
        own_spec, below = without(spec, "class", "environment"), base.node
        unmatched: list[Problem] = []
        if is_elsewhere(own_spec if own_spec.child("provider") else below):
            unmatched += fields_of_aks(spec, below)
            own_spec, below = without_aks(own_spec), without_aks(below)
        merged = Node({**root.value, "spec": _protected(merge(below, own_spec), base)}, root.mark)
        if root.has_removals:
            unmatched += unmatched_removals(own_spec, LayersBelow([below]), SPEC, root)
        return _Merged(merged, base, cluster_class, environment, tuple(unmatched))

    def _parsed(self, name: str) -> Root | Problems:
        path = cluster_path(name)
        if name in self._files.misplaced:
            return self._files.misplaced[name]
        if path not in self._files.blobs:
            return (problem_at(Mark(path, 1, 1), "", self._no_file(name)),)
        content, work = self._contents[path], self._layers.work
        if not work.admits(units_of(content), self._share):
            return (problem_at(Mark(path, 1, 1), "", over_limit(content, work, self._share)),)
        try:
            return parse(content, path)
        except YamlError as error:
            return (problem_at(error.mark, error.field, error.message),)

    def _no_file(self, name: str) -> str:
        near = cluster_path(name).removesuffix("yaml") + "yml"
        if near in self._files.blobs:
            return f"the folder has no {CLUSTER_FILE}; rename cluster.yml to {CLUSTER_FILE}"
        return f"the folder has no {CLUSTER_FILE}; add it, or remove the whole folder to delete the cluster"

    def _chosen(self, spec: Node) -> tuple[str, str, list[Problem]]:
        """Return the class and environment that a spec names, "" for one that does not exist."""
        chosen, problems = [], []
        for kind in ("class", "environment"):
            name, problem = reference(spec, kind)
            message = self._layers.unknown(kind, name)
            if problem is None and message:
                problem = problem_at(spec.find((kind,)).mark, f"spec.{kind}", message)
            problems += [problem] if problem else []
            chosen.append("" if problem else name)
        return chosen[0], chosen[1], problems

    def _placeholders(self, name: str, merged: _Merged) -> Placeholders:
        values = {"name": name, "environment": merged.environment, "class": merged.cluster_class}
        location = merged.node.find(("spec", "location")).value
        if isinstance(location, str):
            values["location"] = Placeholders(values).fill(location) if "{" in location else location
        return Placeholders(values)

    def tree(self, name: str) -> Node | None:
        """Return a cluster's merged manifest with the place of every value, None for one without a manifest.

        The last tree is cached, because callers look up many values of one cluster at a time.
        """
        if self._last[0] != name:
            merged, node = self._merged(name) if cluster_path(name) in self._contents else (), None
            if isinstance(merged, _Merged):
                node = _fill(merged.node, self._placeholders(name, merged))
            self._last = (name, node)
        return self._last[1]

    def content(self, name: str) -> bytes:
        """Return a cluster's manifest as it was read, b"" for one that was not."""
        return self._contents.get(cluster_path(name), b"")

    def place(self, name: str, violations: Iterable[Finding]) -> Problems:
        """Return the problems of findings about a cluster."""
        node = self.tree(name)
        return _placed(node, violations) if node else ()


MAX_RESOLVED_BYTES = 512 * 1024
"""What a record holds however little it can be compressed (an entity of Table Storage has 1 MiB)."""
_ONLY_AZURE = "is for clusters in Azure, and this one has provider: existing; remove it"
_ITSELF = "a cluster cannot replace itself; name another one, or rebuild this one with roadstead rebuild"
_RENAMED = "; a cluster is renamed by deleting and creating it"


def _size_of(desired: Desired) -> int:
    """Return the bytes of the stored form as JSON; an upper bound where that is small enough."""
    spec = desired.spec.model_dump_json(by_alias=True, exclude_none=True).encode()
    bound = 2 * len(spec) + 8 * len(str(desired.labels)) + 1000  # spaces at most double it
    if bound <= MAX_RESOLVED_BYTES:
        return bound
    return len(json.dumps(desired.document(), ensure_ascii=False).encode())


def _over_share(size: int, share: int, work: Work) -> str:
    return (
        f"is not resolved: all clusters together take more than {work.limit:,} units of work, and its class, "
        f"environment and fleet with {size:,} values take more than its share of {share:,}; make them smaller"
    )


def _placed(node: Node, violations: Iterable[Finding]) -> Problems:
    places = ((node.find((*SPEC, *path)).mark, (path, message)) for path, message in violations)
    return tuple(described(places, lambda _, one: problem_in(node, (*SPEC, *one[0]), one[1])))


def _validation_problems(error: ValidationError, node: Node, model: type[Cluster]) -> list[Problem]:
    """Return the problems of a merged manifest; of a list with duplicate names, only the duplicates."""
    duplicates = same_names(part(node, *SPEC), SPEC, node)
    lists = tuple({f"{problem.field}[" for problem in duplicates if problem.field})
    others = problems_of(error, without_removed(node), model)
    return sorted([*duplicates, *(other for other in others if not f"{other.field}[".startswith(lists))])


def _header(root: Node) -> list[Problem]:
    """Return the problems of everything but the spec."""
    try:
        Cluster.model_validate(root.plain())
    except ValidationError as error:
        return [p for p in problems_of(error, root, Cluster) if p.field.partition(".")[0] != "spec"]
    return []


def _protected(spec: Node, base: Base) -> Node:
    """Protect a cluster of a production environment from deletion unless its manifest sets the field."""
    own = spec.child("deletionProtection")
    if base.production is None or (own is not None and own.value is not None):
        return spec
    return Node({**spec.value, "deletionProtection": Node(True, base.production.mark)}, spec.mark)


def _fill(node: Node, placeholders: Placeholders) -> Node:
    value: Any = node.value
    if isinstance(value, str):
        value = placeholders.fill(value)
    elif isinstance(value, dict):
        value = {key: _fill(inner, placeholders) for key, inner in value.items()}
    elif isinstance(value, tuple):
        value = Items(_fill(inner, placeholders) for inner in value)
    return Node(value, node.mark)
