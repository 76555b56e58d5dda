"""What git asks for: the clusters of a fleet repository, each with its spec fully resolved."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.fleet.ids import ClusterId
from shared.fleet.manifests import ClusterSpec, Environment, Guards, SystemSpec
from shared.fleet.nodes import Node
from shared.fleet.problems import Problem
from shared.fleet.sources import source_of


@dataclass(frozen=True)
class Desired:
    """A cluster as a commit asks for it; ``components`` is the blob id of its Flux components file.

    ``environment`` and ``cluster_class`` are "" where it has none; ``labels`` are those of its metadata.
    ``adopt`` is its annotation of that name: "", "when-equal" or "with-differences".
    """

    name: str
    spec: ClusterSpec
    components: str
    environment: str = ""
    cluster_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    adopt: str = ""

    @property
    def id(self) -> ClusterId:
        """Where the cluster lives in Azure."""
        return ClusterId(self.spec.subscription_id, self.spec.resource_group, self.name)

    def document(self) -> dict[str, Any]:
        """Return the stored form: JSON, with every default filled in, and without what is empty."""
        spec = self.spec.model_dump(by_alias=True, mode="json", exclude_none=True)
        more = {
            "environment": self.environment,
            "class": self.cluster_class,
            "labels": dict(self.labels),
            "adopt": self.adopt,
        }
        stored = {"name": self.name, "spec": spec, "components": self.components}
        return stored | {key: value for key, value in more.items() if value}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Desired:
        """Read the stored form."""
        return cls(
            document["name"],
            ClusterSpec.model_validate(document["spec"]),
            document["components"],
            document.get("environment", ""),
            document.get("class", ""),
            document.get("labels", {}),
            document.get("adopt", ""),
        )

    @property
    def digest(self) -> str:
        """A hash of the stored form: equal digests ask for the same cluster."""
        return digest_of(self.document())


def digest_of(document: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits of a SHA-256 over canonical JSON."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Tenant:
    """A System: a team's tenant, and the names of the clusters that its selector takes."""

    name: str
    spec: SystemSpec
    clusters: tuple[str, ...]


@dataclass(frozen=True)
class Resolved:
    """A cluster with the place of every value: ``node`` has spec and metadata, nulls included."""

    desired: Desired
    node: Node


def _no_origin(_name: str) -> Node | None:
    return None


@dataclass(frozen=True)
class DesiredFleet:
    """Everything a commit says; ``invalid`` holds the problems of the clusters that cannot be resolved.

    ``guards`` None: fleet.yaml cannot be used, so nobody knows what may be deleted, and nothing is.
    ``environments`` are in the order of fleet.yaml. ``origins`` resolves a cluster once more, to tell where
    its values come from; trees of all clusters would fill the memory.
    """

    clusters: Mapping[str, Desired] = field(default_factory=dict)
    invalid: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    guards: Guards | None = field(default_factory=Guards)
    environments: Mapping[str, Environment] = field(default_factory=dict)
    systems: Mapping[str, Tenant] = field(default_factory=dict)
    origins: Callable[[str], Node | None] = field(default=_no_origin, repr=False, compare=False)

    def explained(self, name: str) -> Resolved | None:
        """Return a cluster with the places of its values, None for one that is not resolved."""
        node = self.origins(name) if name in self.clusters else None
        return Resolved(self.clusters[name], node) if node else None

    def source(self, cluster: str, path: str) -> str:
        """Return the "file:line" that a field of a cluster comes from, "" when nobody knows.

        ``path`` is as in a plan's change; of a field that is not written it is the map around it.
        """
        node = self.origins(cluster)
        return source_of(node, path) if node else ""
