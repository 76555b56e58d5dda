"""What a rule finds, and what it looks at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.kubernetes.flux_objects import NAMESPACE
from shared.language.resolve.problems import Path
from shared.platform.changes.objects import (
    DEFINITION,
    FLUX,
    HELM,
    KUSTOMIZE,
    SOURCE,
    PodTemplate,
    is_open,
    is_skipped,
    items,
    mapping,
    mapping_at,
    objects_in,
    stem,
    value_at,
)
from shared.platform.inventory import BuiltObject, Inventory, ObjectId, Owner
from shared.platform.schemas.kinds import KnownKinds
from shared.sentences import some_of

KUSTOMIZATION = "Kustomization"
MOST_NAMES = 3
MADE_ELSEWHERE = ("ExternalArtifact",)
"""Sources that a controller makes from other objects."""

Files = Callable[[str], bytes | None]
"""Returns the content of a file of the commit, None for one that is not there."""


@dataclass(frozen=True)
class Finding:
    """A fault of the platform, or a note, before it has a line.

    The place is a field (``path``) of an object in its file, or the first ``text`` in it. ``of`` is None for
    a file as a whole.
    """

    file: str
    of: ObjectId | None
    path: Path
    message: str
    is_note: bool = False
    text: str = ""


class OwnedObject(NamedTuple):
    """An object that Flux applies, and the Kustomization that does."""

    owner: Owner
    id: ObjectId
    built: BuiltObject

    @property
    def manifest(self) -> Json:
        """The object as Flux would apply it."""
        return self.built.manifest

    @property
    def spec(self) -> Json:
        """What it asks for."""
        return mapping(self.built.manifest.get("spec"))

    @property
    def file(self) -> str:
        """The file that it comes from, or else that of its Kustomization."""
        return self.built.file or self.owner.file

    def finding(self, path: Path, message: str, *, is_note: bool = False) -> Finding:
        """Return a finding at one of its fields."""
        return Finding(self.file, self.id, path, message, is_note)


@dataclass(frozen=True)
class ClusterPlatform:
    """What Flux applies on clusters that are alike, and what the rules have to know of these.

    ``kubernetes`` is their version, "" where it is unknown. ``provided`` are the objects that are there
    without the platform: sources, Kustomizations, facts, Secrets. ``definitions`` are those of the components
    of Flux, () where nobody knows them, as with Microsoft's extension. ``blocking`` are the controllers of
    Flux that refuse a reference to another namespace, and ``confining`` those that act as the account
    ``default`` where an object names none (``flux_lockdown.FLAGS``). ``nodes`` is how many nodes the clusters
    have at most, and ``pools`` are their node pools, None where nobody knows, or the platform fits anyway.
    ``is_attached``: they are no AKS, so nobody knows their classes of storage.
    """

    inventory: Inventory
    kubernetes: str = ""
    provided: Collection[ObjectId] = ()
    definitions: Sequence[Json] = ()
    blocking: Collection[str] = ()
    confining: Collection[str] = ()
    nodes: int | None = None
    pools: Collection[str] | None = None
    is_attached: bool = False

    @cached_property
    def objects(self) -> Sequence[OwnedObject]:
        """Every object that Flux applies, with the Kustomization that does."""
        return [
            OwnedObject(owner, object_id, built)
            for owner in self.inventory.owners.values()
            for object_id, built in owner.objects.items()
            if not is_skipped(built.manifest)
        ]

    @cached_property
    def pods(self) -> Sequence[tuple[OwnedObject, PodTemplate]]:
        """Every object that asks for pods, with the pod."""
        found = ((owned, PodTemplate.of(owned.id, owned.manifest)) for owned in self.objects)
        return [(owned, pod) for owned, pod in found if pod is not None]

    def of_kind(self, group: str, *kinds: str) -> Iterator[OwnedObject]:
        """Yield the objects of some kinds of a group."""
        return (owned for owned in self.objects if is_kind(owned.id, group, *kinds))

    @cached_property
    def is_sure(self) -> bool:
        """Whether nothing else may bring objects, or change those that are here."""
        return self.is_whole and not self.has_charts

    @cached_property
    def known(self) -> Mapping[ObjectId, BuiltObject | None]:
        """Every object that will be on the clusters; None: it is not of the platform."""
        built = {object_id: built for _, object_id, built in self.objects}
        return {**dict.fromkeys([*self.provided, *self.inventory.owners]), **built}

    @cached_property
    def names(self) -> Mapping[tuple[str, str, str], Mapping[str, str]]:
        """The names of the known objects by their group, kind and namespace.

        A generated name is under the name that its generator has, too.
        """
        found: dict[tuple[str, str, str], dict[str, str]] = {}
        for own in self.known:
            found.setdefault((own.group, own.kind, own.namespace), {})[own.name] = own.name
        for own in self.known:
            if stem(own):
                found[own.group, own.kind, own.namespace].setdefault(stem(own), own.name)
        return found

    @cached_property
    def kinds(self) -> KnownKinds:
        """The kinds that the clusters know."""
        own = (owned.manifest for owned in self.objects if owned.id.kind == DEFINITION)
        return KnownKinds.of(self.kubernetes, (*self.definitions, *own))

    @cached_property
    def is_whole(self) -> bool:
        """Whether all that Kustomizations bring is known; what charts bring never is.

        What a team's Kustomization brings stays in the namespaces of its system.
        """
        owners = self.inventory.owners
        foreign = any(
            self._brings_more(object_id, built)
            for object_id, built in self.known.items()
            if is_kind(object_id, KUSTOMIZE, KUSTOMIZATION) and object_id not in owners
        )
        return not (foreign or self.inventory.unfollowed or any(owner.unbuilt for owner in owners.values()))

    def _brings_more(self, object_id: ObjectId, built: BuiltObject | None) -> bool:
        """Return whether a Kustomization of another source brings objects; without that source it cannot."""
        if built is None:
            return object_id.namespace == NAMESPACE
        ref = mapping_at(built.manifest, "spec.sourceRef")
        namespace, name = str(ref.get("namespace") or object_id.namespace), str(ref.get("name") or "")
        source = ObjectId(SOURCE, str(ref.get("kind") or ""), namespace, name)
        return source in self.known or source.kind in MADE_ELSEWHERE or is_open(name) or is_open(namespace)

    @cached_property
    def has_charts(self) -> bool:
        """Whether a HelmRelease brings objects that nobody knows."""
        return any(object_id.group == HELM and object_id.kind == "HelmRelease" for object_id in self.known)


def names_in(value: Any) -> frozenset[str]:
    """Return the names of the objects of a list; a variable for the list, or for one of them, is one too."""
    named = {str(item.get("name")) for _, item in objects_in(value)}
    return frozenset((*named, *filter(is_open, (value, *items(value)))))


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(inner)


def lacks(document: Any, path: str | tuple[str, ...]) -> bool:
    """Return whether nothing is at a path, nor may be."""
    return not (value_at(document, path) or is_unknown(document, path))


def is_unknown(document: Any, path: str | tuple[str, ...]) -> bool:
    """Return whether a variable is at a path, or on the way there, which may be anything."""
    steps = tuple(path.split(".")) if isinstance(path, str) else path
    return any(is_open(value_at(document, steps[:count])) for count in range(len(steps) + 1))


def is_kind(object_id: ObjectId, group: str, *kinds: str) -> bool:
    """Return whether an object is of one of the kinds of a group."""
    return object_id.group == group and object_id.kind in kinds


def full_name(object_id: ObjectId) -> str:
    """Return the namespace and the name of an object."""
    return f"{object_id.namespace}/{object_id.name}" if object_id.namespace else object_id.name


def named(names: Sequence[str]) -> str:
    """Return names as a sentence has them: ``a``, ``a and b``, ``a, b, c and 3 more``."""
    return some_of(names, MOST_NAMES, between=" and " if len(names) == 2 else ", ")


def is_custom(group: str) -> bool:
    """Return whether objects of a group have a controller that may create pods for them."""
    return "." in group and not group.endswith((".k8s.io", FLUX))
