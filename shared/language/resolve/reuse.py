"""What is not resolved again: clusters that equal their record, and specs that clusters have in common.

A cluster's document is resolved from its file, the merged layers below it, the id of its Flux components and
this code: equal inputs give an equal document. A fingerprint states "these inputs give the document with this
digest". While both match, the recorded document is used unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from pydantic import BaseModel, create_model

from shared.frozen import dataclass
from shared.json_tree import Json, digest_of
from shared.language.desired import Desired
from shared.language.model.base import Manifest
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.kinds import Cluster, ClusterMetadata
from shared.language.resolve.layers import Base, Layers
from shared.language.resolve.manifest_file import Placeholders
from shared.language.resolve.repository_layout import Files, cluster_path
from shared.language.yaml.nodes import Node, plain_value, texts


@dataclass(frozen=True)
class KnownCluster:
    """What is recorded of a cluster; ``fingerprint`` is "" where no inputs were recorded."""

    document: Json
    digest: str
    fingerprint: str = ""


def fingerprint_of(inputs: str, digest: str) -> str:
    """Return the fingerprint of a document that was resolved from these inputs, "" for unknown inputs."""
    return hashlib.sha256(f"{inputs}\n{digest}".encode()).hexdigest()[:16] if inputs else ""


class Inputs:
    """What the clusters of a commit are resolved from; ``code_version`` names this code."""

    def __init__(self, layers: Layers, files: Files, code_version: str) -> None:
        self._layers, self._files, self._code_version = layers, files, code_version
        self._shared: dict[tuple[str, str, str | None], str] = {}
        self._bases: dict[tuple[str, str], str] = {}

    def of(self, cluster: Desired) -> str:
        """Return the name, blob ids and hash of layers of a cluster, "" when one of its inputs is missing."""
        name = cluster.name
        own = self._files.blobs.get(cluster_path(name), "")
        components = None if cluster.has_extension else cluster.components_path
        key = (cluster.cluster_class, cluster.environment, components)
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = self._of_shared(cluster)
        if not (own and shared) or name in self._files.misplaced:
            return ""
        return f"{name}\n{own}\n{shared}"

    def _of_shared(self, cluster: Desired) -> str:
        """Return the inputs that a cluster has in common with others, "" when one is missing."""
        pinned = "-" if cluster.has_extension else self._files.blobs.get(cluster.components_path, "")
        base = self._base(cluster.cluster_class, cluster.environment)
        return f"{pinned}\n{base}" if pinned and base else ""

    def _base(self, cluster_class: str, environment: str) -> str:
        key = (cluster_class, environment)
        if key not in self._bases:
            self._bases[key] = self._hash_of_base(cluster_class, environment)
        return self._bases[key]

    def _hash_of_base(self, cluster_class: str, environment: str) -> str:
        layers, base = self._layers, self._layers.base(cluster_class, environment)
        missing = layers.unknown("class", cluster_class) or layers.unknown("environment", environment)
        if missing or base.problems:
            return ""
        channels = {field: node.value for field, node in base.channels.items()}
        return digest_of([base.node.plain(), base.production is not None, channels, self._code_version])


def unchanged(
    names: Iterable[str], known: Mapping[str, KnownCluster], inputs: Inputs
) -> Iterator[tuple[Desired, str]]:
    """Yield each of these clusters of a commit that equals its record, with its inputs."""
    for name in names:
        recorded = known.get(name)
        if recorded is None or not recorded.fingerprint:
            continue
        cluster = Desired(recorded.document, recorded.digest)
        resolved_from = inputs.of(cluster)
        if fingerprint_of(resolved_from, recorded.digest) == recorded.fingerprint:
            yield cluster, resolved_from


# Specs that clusters have in common, but for the few fields in which the clusters of a class usually
# differ.
#
# Two clusters of one class and environment whose manifests have the same content, apart from these own
# fields, have the same spec, apart from these own fields. The first is merged and validated as a whole, the
# others only in their own fields. Whatever is not plainly so is resolved as a whole: a problem of any kind,
# a value that is removed, a placeholder that has another value in each cluster.

_FIELDS = ("resource_group", "node_resource_group", "location", "tags")
_NAMES = {name: ClusterSpec.model_fields[name].alias or name for name in _FIELDS}
OWN = frozenset(_NAMES.values())
"""The own fields: no rule inside a spec compares any of them with another field."""


def _fields(model: type[Manifest], names: Iterable[str]) -> dict[str, Any]:
    """Return fields of a model for another one, with their types, rules and defaults."""
    return {name: (model.model_fields[name].annotation, model.model_fields[name]) for name in names}


_OwnFields: Any = create_model("OwnFields", __base__=Manifest, **_fields(ClusterSpec, _FIELDS))
OwnManifest: Any = create_model(
    "OwnManifest",
    __base__=Manifest,
    spec=(_OwnFields, ...),
    **_fields(Cluster, Cluster.model_fields.keys() - {"spec"}),
)
"""A cluster's manifest with only the own fields in its spec."""
MANY = 1_000
"""So many clusters are asked for in any case."""
LONG = 500
"""Characters of a spec from which on a digest stands for it."""
MOST = 5_000
"""So many common specs are known at most; those of a fleet are few, or each has one cluster."""


_OF_METADATA = ("labels", "adopt", "replaces")


def parts_of(metadata: ClusterMetadata) -> dict[str, Any]:
    """Return what the stored form of a cluster has of its metadata."""
    annotations = metadata.annotations
    values = (metadata.labels, annotations.adopt, annotations.replaces)
    return {part: value for part, value in zip(_OF_METADATA, values, strict=True) if value}


@dataclass(frozen=True)
class Common:
    """The first cluster with a spec, and the own fields of its layers."""

    cluster: Desired
    own: Mapping[str, Any]
    size: int

    def merged(self, manifest: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of another manifest with its own fields, merged over its layers, as its spec."""
        spec = {**self.own, **own}
        below, above = self.own.get("tags"), own.get("tags")
        if isinstance(below, dict) and isinstance(above, dict):
            spec["tags"] = {**below, **above}
        return {**manifest, "spec": spec}

    def with_own(self, name: str, metadata: ClusterMetadata, fields: BaseModel) -> Desired:
        """Return the cluster with the name, the metadata and the own fields of another manifest."""
        values, first = fields.__dict__, self.cluster
        given = {field: values[field] for field in fields.model_fields_set}
        own = {_NAMES[field]: value for field, value in given.items()}  # strings, and tags: JSON as they are
        spec = {**first.stored["spec"], **own}
        document = {**self._common_parts, "name": name, "spec": spec, **parts_of(metadata)}
        return Desired.of(document, first.spec, metadata.annotations.rebuild or "", given)

    @cached_property
    def _common_parts(self) -> Mapping[str, Any]:
        return {part: value for part, value in self.cluster.stored.items() if part not in _OF_METADATA}


class CommonSpecs:
    """The common specs of one commit, by the content that they are resolved from."""

    def __init__(self) -> None:
        self._known: dict[str, Common | None] = {}
        self._asked = self._found = 0

    @property
    def are_found(self) -> bool:
        """Whether enough clusters had one so far: to look for one takes a quarter of what it saves."""
        return self._asked < MANY or self._found * 4 > self._asked

    def get(self, key: str | None) -> Common | None:
        """Return what is known by the key of a cluster, None for a cluster without one."""
        common = self._known.get(key) if key is not None else None
        self._asked += 1
        self._found += common is not None
        return common

    def add(self, key: str, cluster: Desired, size: int, base: Base, merged: Node) -> None:
        """Keep the first cluster of a key, unless its spec has placeholders that others fill differently."""
        if key in self._known or len(self._known) >= MOST:
            return
        given = Placeholders({"environment": cluster.environment, "class": cluster.cluster_class})
        for name, node in merged.value.items():
            if name not in OWN:
                for _, text in texts(node):
                    given.fill(text)
        own = Node({name: node for name, node in base.node.value.items() if name in OWN}, base.node.mark)
        self._known[key] = None if given.failed else Common(cluster, plain_value(own, str), size)


def key_of(own: Iterable[str], rest: Mapping[str, Any]) -> str:
    """Return the key of a spec with own fields of these names and this rest, which says its class too."""
    text = repr((sorted(own), rest))
    return text if len(text) < LONG else hashlib.sha256(text.encode()).hexdigest()
