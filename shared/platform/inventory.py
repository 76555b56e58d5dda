"""What each Flux Kustomization of a cluster owns at a commit.

Flux prunes by inventory (fluxcd/pkg ``ssa``): an object that leaves the inventory of its Kustomization is
deleted, also where another Kustomization gets it. So a plan compares inventories, and not trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.language.resolve.problems import Problem


class ObjectId(NamedTuple):
    """An object as an inventory names it: without the version of its API. ``group`` is "" for the core."""

    group: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, manifest: Json) -> ObjectId:
        """Return the id of a manifest; parts that it lacks are ""."""
        group, _, version = str(manifest.get("apiVersion") or "").rpartition("/")
        metadata = manifest.get("metadata") or {}
        names = (str(metadata.get(part) or "") for part in ("namespace", "name"))
        return cls(group if version else "", str(manifest.get("kind") or ""), *names)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True)
class BuiltObject:
    """An object as Flux would apply it; ``file`` is the file that it comes from, "" where it is unknown."""

    manifest: Json
    file: str = ""

    @property
    def id(self) -> ObjectId:
        """Which object it is."""
        return ObjectId.of(self.manifest)


@dataclass(frozen=True)
class Owner:
    """A Flux Kustomization, and what it owns.

    ``spec`` is as Flux's API writes it, and ``file`` the file of the platform that asks for it, "" where the
    manifest of the cluster does. ``objects`` are what was built from its path; ``unbuilt`` says why that is
    not known, "" where it is, and ``problems`` are what in its files stands in the way, each at its place.
    ``variables`` are those that substitution replaced, each with its value; ``missing`` those that had none,
    each with the files that use it; and ``unknown`` those whose value only the cluster has: where manifests
    use them, they are as written. ``digest`` names the files that are built and how, "" where that is not
    known: with equal digests two of them are the same before substitution, also where none is built.
    """

    id: ObjectId
    spec: Json
    file: str = ""
    objects: Mapping[ObjectId, BuiltObject] = field(default_factory=dict)
    unbuilt: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    digest: str = ""

    @property
    def path(self) -> str:
        """Its folder in the repository, without "./"; "" for the root."""
        return str(self.spec.get("path") or "").removeprefix("./").strip("/")

    @property
    def prunes(self) -> bool:
        """Whether what leaves it is deleted."""
        return bool(self.spec.get("prune"))

    @property
    def is_suspended(self) -> bool:
        """Whether Flux does nothing with it."""
        return bool(self.spec.get("suspend"))


@dataclass(frozen=True)
class Inventory:
    """All Kustomizations of a cluster whose source is the fleet repository, those that others apply too.

    ``unfollowed`` is what of the tree cannot be read, each with its place: a remote base, for example. What
    it brings is not known. ``blobs`` are the files of the tree, each with its id.
    """

    owners: Mapping[ObjectId, Owner] = field(default_factory=dict)
    unfollowed: tuple[str, ...] = ()
    blobs: Mapping[str, str] = field(default_factory=dict)
