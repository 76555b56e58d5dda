"""Specs that clusters have in common, but for the few fields in which the clusters of a class usually differ.

Two clusters of one class and environment whose manifests have the same content, apart from these own fields,
have the same spec, apart from these own fields. The first is merged and validated as a whole, the others only
in their own fields. Whatever is not plainly so is resolved as a whole: a problem of any kind, a value that is
removed, a placeholder that has another value in each cluster.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, create_model

from shared.fleet.desired import Desired
from shared.fleet.manifests.base import Manifest
from shared.fleet.manifests.cluster.spec import ClusterSpec
from shared.fleet.manifests.kinds import Cluster, ClusterMetadata
from shared.fleet.resolve.layers import Base
from shared.fleet.resolve.placeholders import Placeholders
from shared.fleet.yaml_tree.merging import plain_value
from shared.fleet.yaml_tree.nodes import Node, texts
from shared.frozen import replace

_FIELDS = ("resource_group", "node_resource_group", "location", "tags")
OWN = frozenset(ClusterSpec.model_fields[name].alias or name for name in _FIELDS)
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


@dataclass(frozen=True)
class Common:
    """The first cluster with a spec, and the own fields of its layers.

    ``size`` is the most that its stored form takes.
    """

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
        """Return the cluster with the name, the metadata and the own fields of another manifest.

        Both have the same ones: the names of own fields are part of what the clusters have in common.
        """
        values = fields.__dict__
        given = {field: values[field] for field in fields.model_fields_set}
        annotations = metadata.annotations
        return replace(
            self.cluster,
            name=name,
            spec=self.cluster.spec.model_copy(update=given),
            labels=metadata.labels,
            adopt=annotations.adopt or "",
            rebuild=annotations.rebuild or "",
            replaces=annotations.replaces or "",
        )


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
        self._known[key] = None if given.failed else Common(cluster, plain_value(own, str, {}), size)


def key_of(own: Iterable[str], rest: Mapping[str, Any]) -> str:
    """Return the key of a spec with own fields of these names and this rest, which says its class too."""
    text = repr((sorted(own), rest))
    return text if len(text) < LONG else hashlib.sha256(text.encode()).hexdigest()
