"""Which clusters of a commit equal their record, decided without reading their manifests.

A cluster's document is resolved from its file, the merged layers below it, the id of its Flux components and
this code: equal inputs give an equal document. A fingerprint states "these inputs give the document with this
digest". While both match, the recorded document is used unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from shared.fleet.desired import Desired, Stored, digest_of
from shared.fleet.json_tree import Json
from shared.fleet.resolve.layers import Layers
from shared.fleet.resolve.repository_layout import Files, cluster_path


@dataclass(frozen=True)
class Known:
    """What is recorded of a cluster; ``fingerprint`` is "" where no inputs were recorded."""

    document: Json
    digest: str
    fingerprint: str = ""


def fingerprint_of(inputs: str, digest: str) -> str:
    """Return the fingerprint of a document that was resolved from these inputs, "" for unknown inputs.

    A push computes one for each cluster of the fleet.
    """
    return hashlib.sha256(f"{inputs}\n{digest}".encode()).hexdigest()[:16] if inputs else ""


class Inputs:
    """What the clusters of a commit are resolved from; ``code_version`` names this code."""

    def __init__(self, layers: Layers, files: Files, code_version: str) -> None:
        self._layers, self._files, self._code_version = layers, files, code_version
        self._shared: dict[tuple[str, str, str | None], str] = {}
        self._bases: dict[tuple[str, str], str] = {}

    def of(self, cluster: Desired) -> str:
        """Return the name, blob ids and hash of layers of a cluster, "" when one of its inputs is missing.

        The cluster's own file, which names its class and environment, is among the inputs.
        """
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
        return digest_of([base.node.plain(), base.production is not None, self._code_version])


def unchanged(
    names: Iterable[str], known: Mapping[str, Known], inputs: Inputs
) -> Iterator[tuple[Stored, str]]:
    """Yield each of these clusters of a commit that equals its record, with its inputs."""
    for name in names:
        recorded = known.get(name)
        if recorded is None or not recorded.fingerprint:
            continue
        cluster = Stored(recorded.document, recorded.digest)
        resolved_from = inputs.of(cluster)
        if fingerprint_of(resolved_from, recorded.digest) == recorded.fingerprint:
            yield cluster, resolved_from
