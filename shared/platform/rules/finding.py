"""What a rule finds, and what it looks at."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.resolve.problems import Path
from shared.platform.inventory import BuiltObject, Inventory, ObjectId, Owner
from shared.platform.schemas.kinds import KnownKinds

FLUX = "toolkit.fluxcd.io"
KUSTOMIZE, HELM, SOURCE = f"kustomize.{FLUX}", f"helm.{FLUX}", f"source.{FLUX}"
KUSTOMIZATION = "Kustomization"
DEFINITION = "CustomResourceDefinition"
DISABLED = "disabled"


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


@dataclass(frozen=True)
class ClusterPlatform:
    """What Flux applies on clusters that are alike, and what the rules have to know of these.

    ``kubernetes`` is their version, "" where it is unknown. ``provided`` are the objects that are there
    without the platform: sources, Kustomizations, facts, Secrets. ``definitions`` are those of the components
    of Flux, () where nobody knows them, as with Microsoft's extension. ``blocking`` are the controllers of
    Flux that refuse a reference to another namespace, and ``confining`` those that act as the account
    ``default`` where an object names none (``flux_lockdown.FLAGS``).
    """

    inventory: Inventory
    kubernetes: str = ""
    provided: Collection[ObjectId] = ()
    definitions: Sequence[Json] = ()
    blocking: Collection[str] = ()
    confining: Collection[str] = ()

    def objects(self) -> Iterator[tuple[Owner, ObjectId, BuiltObject]]:
        """Yield every object that Flux applies, with the Kustomization that does."""
        for owner in self.inventory.owners.values():
            for object_id, built in owner.objects.items():
                if is_applied(built.manifest):
                    yield owner, object_id, built

    @cached_property
    def known(self) -> Mapping[ObjectId, BuiltObject | None]:
        """Every object that will be on the clusters; None: it is not of the platform."""
        built = {object_id: built for _, object_id, built in self.objects()}
        return {**dict.fromkeys([*self.provided, *self.inventory.owners]), **built}

    @cached_property
    def kinds(self) -> KnownKinds:
        """The kinds that the clusters know."""
        own = (built.manifest for _, object_id, built in self.objects() if object_id.kind == DEFINITION)
        return KnownKinds.of(self.kubernetes, (*self.definitions, *own))

    @cached_property
    def is_whole(self) -> bool:
        """Whether all that Kustomizations bring is known; what charts bring never is."""
        owners = self.inventory.owners
        foreign = any(
            object_id.group == KUSTOMIZE and object_id.kind == KUSTOMIZATION and object_id not in owners
            for object_id in self.known
        )
        return not (foreign or self.inventory.unfollowed or any(owner.unbuilt for owner in owners.values()))

    @cached_property
    def has_charts(self) -> bool:
        """Whether a HelmRelease brings objects that nobody knows."""
        return any(object_id.group == HELM and object_id.kind == "HelmRelease" for object_id in self.known)


def is_applied(manifest: Json) -> bool:
    """Return whether Flux applies an object: it skips one with ``ssa: Ignore`` or ``reconcile: disabled``.

    Source: ``ExclusionSelector`` in ``kustomization_controller.go``; labels count as annotations do
    (``shouldSkipApply`` of fluxcd/pkg ``ssa``).
    """
    marks = marks_of(manifest)
    return marks.get("ssa", "").lower() != "ignore" and marks.get("reconcile", "").lower() != DISABLED


def marks_of(manifest: Json) -> Mapping[str, str]:
    """Return what the annotations and labels of an object tell kustomize-controller, by the last part."""
    metadata = mapping(manifest.get("metadata"))
    both = {**mapping(metadata.get("labels")), **mapping(metadata.get("annotations"))}
    prefix = f"{KUSTOMIZE}/"
    return {str(k).removeprefix(prefix): str(v) for k, v in both.items() if str(k).startswith(prefix)}


def mapping(value: Any) -> Mapping[str, Any]:
    """Return an object as it is, and {} for any other value."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:
    """Return a list as it is, and () for any other value."""
    return value if isinstance(value, list | tuple) else ()


def objects_in(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of a list, each with its number."""
    for number, item in enumerate(items(value)):
        if isinstance(item, Mapping):
            yield number, item


def is_open(value: Any) -> bool:
    """Return whether a value has a variable that nobody here knows the value of, as one of a Secret."""
    return isinstance(value, str) and "${" in value


def is_kind(object_id: ObjectId, group: str, *kinds: str) -> bool:
    """Return whether an object is of one of the kinds of a group."""
    return object_id.group == group and object_id.kind in kinds


def full_name(object_id: ObjectId) -> str:
    """Return the namespace and the name of an object."""
    return f"{object_id.namespace}/{object_id.name}" if object_id.namespace else object_id.name


def named(values: Sequence[str], most: int = 3) -> str:
    """Return names as a list that a sentence has: the first ones, and the number of the others."""
    shown, more = list(values[:most]), len(values) - most
    if more > 0:
        shown.append(f"{more:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
