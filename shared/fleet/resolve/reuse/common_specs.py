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

from shared.fleet.manifests.base import Manifest
from shared.fleet.manifests.cluster.spec import ClusterSpec
from shared.fleet.manifests.kinds import Cluster
from shared.fleet.resolve.layers import Base
from shared.fleet.resolve.placeholders import Placeholders
from shared.fleet.yaml_tree.merging import merge
from shared.fleet.yaml_tree.nodes import Node, Root, texts

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
MOST = 5_000
"""So many common specs are known at most; those of a fleet are few, or each has one cluster."""


@dataclass(frozen=True)
class Common:
    """The spec of the first cluster; ``size`` is the most that its stored form takes."""

    spec: ClusterSpec
    size: int

    def with_own(self, fields: BaseModel) -> ClusterSpec:
        """Return the spec with own fields of another manifest.

        Both have the same ones: the names of own fields are part of what the clusters have in common.
        """
        return self.spec.model_copy(update={name: getattr(fields, name) for name in fields.model_fields_set})


class CommonSpecs:
    """The common specs of one commit, by a digest of the content that they are resolved from."""

    def __init__(self) -> None:
        self._known: dict[bytes, Common | None] = {}
        self._own_of_base: dict[int, tuple[Base, Node]] = {}

    def key(self, root: Root, spec: Node, chosen: tuple[str, str]) -> bytes | None:
        """Return the key of a manifest with this spec, None for one that removes values of its layers."""
        if root.has_removals:
            return None
        own = sorted(name for name in spec.value if name in OWN)
        rest = {name: node.plain() for name, node in spec.value.items() if name not in OWN}
        return hashlib.sha256(repr((chosen, own, rest)).encode()).digest()

    def get(self, key: bytes | None) -> Common | None:
        """Return what is known by a key."""
        return self._known.get(key) if key is not None else None

    def add(self, key: bytes | None, merged: Node, common: Common, placeholders: Mapping[str, str]) -> None:
        """Keep the first spec of a key, unless it has placeholders that are not among these."""
        if key is None or key in self._known or len(self._known) >= MOST:
            return
        given = Placeholders(placeholders)
        for name, node in merged.value.items():
            if name not in OWN:
                for _, text in texts(node):
                    given.fill(text)
        self._known[key] = None if given.failed else common

    def own_fields(self, base: Base, spec: Node) -> Node:
        """Return the own fields of a cluster, merged over its layers."""
        known = self._own_of_base.get(id(base))
        if known is None:
            known = self._own_of_base[id(base)] = base, _own(base.node)
        return merge(known[1], _own(spec))


def _own(spec: Node) -> Node:
    return Node({name: node for name, node in spec.value.items() if name in OWN}, spec.mark)
