"""Which clusters of a commit are as they are recorded, told without reading their manifests.

A cluster's document is made from its file, the merged layers below it, the id of its Flux components and the
code that resolves: equal inputs make an equal document. So a mark says "what is made from these inputs is
the document with this digest". While both still hold, the recorded document is taken as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.fleet.desired import Desired, Stored, digest_of
from shared.fleet.resolve.layers import Layers
from shared.fleet.resolve.repository_layout import Files, cluster_path


@dataclass(frozen=True)
class Known:
    """What is recorded of a cluster; ``mark`` is "" for one of which nobody noted what it was made from."""

    document: Mapping[str, Any]
    digest: str
    mark: str = ""


def fingerprint_of(inputs: str, digest: str) -> str:
    """Return the mark of a document that was made from these inputs; "" when they are not known."""
    return digest_of([inputs, digest]) if inputs else ""


class Inputs:
    """Hashes of what the clusters of a commit are made from; ``rules`` names the code that makes them."""

    def __init__(self, layers: Layers, files: Files, rules: str) -> None:
        self._layers, self._files, self._rules = layers, files, rules
        self._bases: dict[tuple[str, str], str] = {}

    def of(self, cluster: Desired) -> str:
        """Return the hash for a cluster; "" when it cannot be made.

        Class and environment are named by the cluster's own file, which is among the inputs.
        """
        own = self._files.blobs.get(cluster_path(cluster.name), "")
        pinned = self._files.blobs.get(cluster.components_path, "")
        base = self._base(cluster.cluster_class, cluster.environment)
        if not (own and pinned and base) or cluster.name in self._files.misplaced:
            return ""
        return digest_of([cluster.name, own, pinned, base])

    def _base(self, cluster_class: str, environment: str) -> str:
        key = (cluster_class, environment)
        if key not in self._bases:
            self._bases[key] = self._hashed(cluster_class, environment)
        return self._bases[key]

    def _hashed(self, cluster_class: str, environment: str) -> str:
        layers, base = self._layers, self._layers.base(cluster_class, environment)
        strange = layers.unknown("class", cluster_class) or layers.unknown("environment", environment)
        if strange or base.problems:
            return ""
        return digest_of([base.node.plain(), base.production is not None, self._rules])


def unchanged(known: Mapping[str, Known], inputs: Inputs, files: Files) -> dict[str, Stored]:
    """Return the clusters of a commit that are as they are recorded, by name."""
    found: dict[str, Stored] = {}
    for name in files.folders:
        recorded = known.get(name)
        if recorded is None or not recorded.mark:
            continue
        cluster = Stored(recorded.document, recorded.digest)
        if fingerprint_of(inputs.of(cluster), recorded.digest) == recorded.mark:
            found[name] = cluster
    return found
