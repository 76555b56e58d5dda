"""Resolves clusters: fills in the placeholders of each merged manifest, and validates the result once."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from shared.language.cluster_systems import Systems
from shared.language.desired import Desired, stored_form
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.kinds import ADOPT, REBUILD, REPLACES, AttachedCluster, Cluster, ClusterMetadata
from shared.language.resolve.cluster_manifest import (
    SPEC,
    ClusterReader,
    MergedManifest,
    MergedValue,
    ReadManifest,
)
from shared.language.resolve.layers import Layers
from shared.language.resolve.manifest_file import (
    Contents,
    Placeholders,
    Problems,
    filled,
    part,
    placeholders_of,
    same_names,
    wrong_name,
)
from shared.language.resolve.problems import Problem, described, problem_at, problem_in
from shared.language.resolve.repository_layout import NOT_PLAIN, Files, cluster_path
from shared.language.resolve.reuse import Common, CommonSpecs, OwnManifest, parts_of
from shared.language.resolve.rules.cross_field_rules import findings, findings_of_place
from shared.language.resolve.rules.refusal import Finding
from shared.language.resolve.validation import problems_of
from shared.language.yaml.nodes import Items, Mark, Node, plain_value, without_nulls, without_removed


class ClusterResolver:
    """Resolves the clusters of a commit."""

    def __init__(self, layers: Layers, files: Files, contents: Contents) -> None:
        self._files, self._contents = files, contents
        self._last: tuple[str, Node | None] = ("", None)
        self._common = CommonSpecs()
        self._reader = ClusterReader(layers, files, contents)

    def clusters(self, names: Sequence[str]) -> Iterator[tuple[str, Desired | Problems]]:
        """Yield each of these clusters, or its problems, with the name of its folder."""
        self._reader.share_among(len(names))
        for name in names:
            content = self._reader.content(name)
            yield name, self._resolved(name, content) if isinstance(content, bytes) else content

    def _resolved(self, name: str, content: bytes) -> Desired | Problems:
        read = self._reader.unplaced(content) if self._common.are_found else None
        key = read.key if read else None
        common = self._common.get(key)
        like = self._like(name, read, common) if read and common else None
        return like or self._as_a_whole(name, content, key)

    def _like(self, name: str, read: MergedValue, common: Common) -> Desired | None:
        """Return a cluster with a common spec and fields of its own; None if any of them is a problem."""
        first = common.cluster
        value = common.merged(read.value, read.own)
        location = value["spec"].get("location")
        placeholders = placeholders_of(name, first.environment, first.cluster_class, location)
        plain = filled(value, placeholders.fill)
        try:
            own = OwnManifest.model_validate(plain)
        except ValidationError:
            return None
        metadata = own.metadata
        size = common.size + _most(plain)
        misnamed = metadata.name != name or metadata.annotations.replaces == name
        if placeholders.failed or misnamed or size > MAX_RESOLVED_BYTES:
            return None
        cluster = common.with_own(name, metadata, own.spec)
        if first.adopt and not cluster.adopt:  # less was asked of the first one
            return None
        if any(findings_of_place(cluster)):
            return None
        self._reader.merges(read)
        return cluster

    def _as_a_whole(self, name: str, content: bytes, key: str | None) -> Desired | Problems:
        read = self._reader.placed(name, content)
        if not isinstance(read, ReadManifest):
            return read
        merged = self._reader.merged(read)
        placeholders = _placeholders(name, merged)
        plain = plain_value(merged.node, placeholders.fill)
        if placeholders.failed:
            never = ("location",) if merged.model is AttachedCluster else ()
            return (*placeholders.problems(without_nulls(merged.node), never), *merged.problems)
        try:
            manifest = merged.model.model_validate(plain)
        except ValidationError as error:
            problems = _validation_problems(error, merged.node, merged.model)
            fields = {problem.field for problem in problems}
            return (*problems, *(other for other in merged.problems if other.field not in fields))
        return self._checked(name, manifest, merged, key)

    def _checked(
        self, name: str, manifest: Cluster, merged: MergedManifest, key: str | None
    ) -> Desired | Problems:
        misnamed = wrong_name(merged.node, manifest.metadata.name, name, "folder is called", more=_RENAMED)
        if misnamed:
            return (misnamed, *merged.problems)
        annotations = manifest.metadata.annotations
        for annotation, asked in ((ADOPT, annotations.adopt), (REBUILD, annotations.rebuild)):
            if asked and merged.model is AttachedCluster:
                place = merged.node.find(("metadata", "annotations", annotation)).mark
                field = f"metadata.annotations.{annotation}"
                return (problem_at(place, field, _ONLY_AZURE), *merged.problems)
        if annotations.replaces == name:
            place = merged.node.find(("metadata", "annotations", REPLACES)).mark
            return (problem_at(place, f"metadata.annotations.{REPLACES}", _ITSELF), *merged.problems)
        desired = self._desired(name, manifest.spec, manifest.metadata, merged)
        violations = list(findings(manifest.spec, adopted=bool(desired.adopt)))
        if merged.model is Cluster:
            violations += findings_of_place(desired)
        if not (desired.components or desired.has_extension):
            violations.append((("flux", "components"), self._no_components(desired.components_path)))
        duplicates = same_names(part(merged.node, *SPEC), SPEC, merged.node)
        if violations or duplicates or merged.problems:
            return (*_placed(merged.node, violations), *duplicates, *merged.problems)
        size = _size_of(desired)
        if size > MAX_RESOLVED_BYTES:
            return (_too_large(size, merged.node.mark),)
        if merged.model is Cluster and key is not None:
            self._common.add(key, desired, size, merged.read.base, merged.node.find(SPEC))
        return desired

    def _desired(
        self, name: str, spec: ClusterSpec, metadata: ClusterMetadata, merged: MergedManifest
    ) -> Desired:
        components = spec.flux.components.removeprefix("./")
        blob = "" if spec.flux.is_extension else self._files.blobs.get(components, "")
        layers = {"environment": merged.read.environment, "class": merged.read.cluster_class}
        document = stored_form(name, spec, blob, **layers, **parts_of(metadata))
        return Desired.of(document, spec, metadata.annotations.rebuild or "")

    def _no_components(self, path: str) -> str:
        if path in self._files.other:
            return NOT_PLAIN.format(path)
        return f"there is no file {path} in the repository; write it with flux install --export"

    def tree(self, name: str) -> Node | None:
        """Return a cluster's merged manifest with the place of every value, None for one without a manifest.

        The last tree is cached, because callers look up many values of one cluster at a time.
        """
        if self._last[0] != name:
            read, node = self._reader.read(name) if cluster_path(name) in self._contents else (), None
            if isinstance(read, ReadManifest):
                merged = self._reader.merged(read)
                node = _fill(merged.node, _placeholders(name, merged))
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


def _placeholders(name: str, merged: MergedManifest) -> Placeholders:
    location = merged.node.find(("spec", "location")).value
    return placeholders_of(name, merged.read.environment, merged.read.cluster_class, location)


def _most(value: Mapping[str, Any]) -> int:
    """Return an upper bound of the bytes of a value as JSON."""
    return 8 * len(str(value))


def with_too_many_systems(
    clusters: Mapping[str, Desired], recorded: Mapping[str, Systems], unchanged: Collection[str]
) -> Iterator[tuple[str, Problems]]:
    """Yield the clusters that are too large with their systems, with their problems.

    One that is ``unchanged``, and whose systems are those ``recorded``, is stored already.
    """
    for name, desired in clusters.items():
        stored = name in unchanged and desired.systems == recorded.get(name)
        size = _size_of(desired) if desired.systems and not stored else 0
        if size > MAX_RESOLVED_BYTES:
            yield name, (_too_large(size, Mark(cluster_path(name), 1, 1)),)


def _too_large(size: int, place: Mark) -> Problem:
    merged = f"has {size} bytes with everything that is merged into it"
    return problem_at(place, "", f"{merged}, and at most {MAX_RESOLVED_BYTES} are stored")


def _size_of(desired: Desired) -> int:
    """Return the bytes of the stored form as JSON; an upper bound where that is small enough."""
    bound = _most(desired.stored)
    if bound <= MAX_RESOLVED_BYTES:
        return bound
    return len(json.dumps(desired.stored, ensure_ascii=False).encode())


def _placed(node: Node, violations: Iterable[Finding]) -> Problems:
    places = ((node.find((*SPEC, *path)).mark, (path, message)) for path, message in violations)
    return tuple(
        described(places, lambda _, violation: problem_in(node, (*SPEC, *violation[0]), violation[1]))
    )


def _validation_problems(error: ValidationError, node: Node, model: type[Cluster]) -> list[Problem]:
    """Return the problems of a merged manifest; of a list with duplicate names, only the duplicates."""
    duplicates = same_names(part(node, *SPEC), SPEC, node)
    lists = tuple({f"{problem.field}[" for problem in duplicates if problem.field})
    others = problems_of(error, without_removed(node), model)
    return sorted([*duplicates, *(other for other in others if not f"{other.field}[".startswith(lists))])


def _fill(node: Node, placeholders: Placeholders) -> Node:
    value: Any = node.value
    if isinstance(value, str):
        value = placeholders.fill(value)
    elif isinstance(value, dict):
        value = {key: _fill(inner, placeholders) for key, inner in value.items()}
    elif isinstance(value, tuple):
        value = Items(_fill(inner, placeholders) for inner in value)
    return Node(value, node.mark)
