"""A cluster as a commit asks for it, with its spec fully resolved, and its stored form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import ValidationError

from shared.fleet.manifests import ClusterSpec
from shared.fleet.resource_ids import ClusterId


class Taken(NamedTuple):
    """What a cluster takes in Azure that no other may have."""

    subscription_id: str
    resource_group: str
    dns_prefix: str | None
    node_resource_group: str | None


@dataclass(frozen=True, eq=False)
class Desired:
    """A cluster as a commit asks for it; ``components`` is the blob id of its Flux components file.

    ``environment`` and ``cluster_class`` are "" where it has none; ``labels`` are those of its metadata.
    ``adopt`` is its annotation of that name: "", "when-equal" or "with-differences". ``removed_keys``
    are to be removed from each node pool, see there; they are not part of the stored form. Two clusters that
    have the same stored form are equal.
    """

    name: str
    spec: ClusterSpec
    components: str
    environment: str = ""
    cluster_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    adopt: str = ""
    removed_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def id(self) -> ClusterId:
        """Where the cluster lives in Azure."""
        return ClusterId(self.taken.subscription_id, self.taken.resource_group, self.name)

    @property
    def taken(self) -> Taken:
        """What it takes in Azure."""
        spec = self.spec
        return Taken(spec.subscription_id, spec.resource_group, spec.dns_prefix, spec.node_resource_group)

    @property
    def components_path(self) -> str:
        """Where its Flux components are in the repository."""
        return self.spec.flux.components.removeprefix("./")

    def document(self) -> dict[str, Any]:
        """Return the stored form: JSON, with every default filled in, and without what is empty."""
        more = {
            "environment": self.environment,
            "class": self.cluster_class,
            "labels": dict(self.labels),
            "adopt": self.adopt,
        }
        stored = {"name": self.name, "spec": _dumped(self.spec), "components": self.components}
        return stored | {key: value for key, value in more.items() if value}

    @classmethod
    def from_document(
        cls, document: Mapping[str, Any], removed_keys: Mapping[str, tuple[str, ...]] | None = None
    ) -> Desired:
        """Read the stored form; ``spec`` is checked by the rules of today only when it is asked for."""
        return Stored(document, removed_keys=removed_keys)

    @property
    def digest(self) -> str:
        """A hash of the stored form: equal digests ask for the same cluster."""
        return digest_of(self.document())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Desired) and self.document() == other.document()

    def __hash__(self) -> int:
        return hash(self.digest)


class Stored(Desired):
    """A cluster from its stored form, which is also what it is written as again.

    Thousands of these cost little. Where the cluster lives is known even if the rules of today would refuse
    the spec, so that it can be deleted; ``spec`` raises pydantic's ValidationError then.
    """

    def __init__(
        self,
        document: Mapping[str, Any],
        digest: str = "",
        removed_keys: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        # Not through the fields of the class: it is frozen, and the spec is made later.
        self.__dict__.update(
            name=document["name"],
            components=document["components"],
            environment=document.get("environment", ""),
            cluster_class=document.get("class", ""),
            labels=document.get("labels", {}),
            adopt=document.get("adopt", ""),
            removed_keys=removed_keys or {},
            _document=document,
            _digest=digest,
        )

    @cached_property
    def spec(self) -> ClusterSpec:
        """The spec as today's model reads it, with the defaults that came since."""
        return ClusterSpec.model_validate(self._spec)

    @property
    def taken(self) -> Taken:
        """What it takes in Azure."""
        place = self._spec["subscriptionId"], self._spec["resourceGroup"]
        return Taken(*place, self._spec.get("dnsPrefix"), self._spec.get("nodeResourceGroup"))

    @property
    def components_path(self) -> str:
        """Where its Flux components are in the repository."""
        return str(self._spec["flux"]["components"]).removeprefix("./")

    @property
    def _spec(self) -> Mapping[str, Any]:
        written: Mapping[str, Any] = self.__dict__["_document"]["spec"]
        return written

    def document(self) -> dict[str, Any]:
        """Return the stored form."""
        return dict(self.__dict__["_document"])

    @property
    def digest(self) -> str:
        """The digest it was stored with."""
        return str(self.__dict__["_digest"]) or digest_of(self.document())


def normalised(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored form as it would be written today: a default that came since is no change.

    One that the rules of today refuse stays as it is.
    """
    try:
        return {**document, "spec": _dumped(Stored(document).spec)}
    except ValidationError:
        return document


def _dumped(spec: ClusterSpec) -> dict[str, Any]:
    return spec.model_dump(by_alias=True, mode="json", exclude_none=True)


def digest_of(document: Any) -> str:
    """Return 16 hexadecimal digits of a SHA-256 over canonical JSON."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
