"""An object has one owner, once.

Two Kustomizations that apply one object write their versions in turns, and when one of the two goes, so does
the object: fluxcd/kustomize-controller#732, fluxcd/flux2#5611, argoproj/argo-cd#22607.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shared.json_tree import Json
from shared.kubernetes.flux_objects import NAMESPACE
from shared.platform.changes.objects import is_marked
from shared.platform.inventory import BuiltObject, ObjectId, Owner
from shared.platform.rules.finding import (
    ClusterPlatform,
    Finding,
    full_name,
    is_open,
    mapping,
    named,
)
from shared.platform.schemas.kinds import KnownKinds

_SHARED = ("merge", "ifnotpresent")
_HAS_MORE = (
    *("Namespace", "CustomResourceDefinition", "PersistentVolumeClaim", "PersistentVolume", "StatefulSet"),
    *("HelmRelease", "Kustomization"),
)
"""Kinds that take other objects, or data, along when they are deleted."""
Owned = tuple[Owner, ObjectId, BuiltObject]


def two_owners(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield each object that several Kustomizations apply, at the place of the last one.

    It is a note where all write the same, and nothing is lost when it is deleted and created again.
    """
    owned: dict[ObjectId, list[Owned]] = {}
    for owner, object_id, built in platform.objects:
        placed = _placed(object_id, built.manifest, platform.kinds)
        if not (is_open(placed.name) or is_open(placed.namespace)):
            owned.setdefault(placed, []).append((owner, object_id, built))
    for placed, all_of in owned.items():
        if len(all_of) > 1:
            yield from _of_several(placed, all_of)


def _of_several(placed: ObjectId, owned: Sequence[Owned]) -> Iterator[Finding]:
    owner, object_id, built = owned[-1]
    file, path = built.file or owner.file, ("metadata", "name")
    names = list(dict.fromkeys(_whose(other, found) for other, _, found in owned))
    if len({other.id for other, _, _ in owned}) == 1:
        yield Finding(
            file,
            object_id,
            path,
            f"{placed} is defined twice in {names[0]}, because an object without a namespace gets the "
            "namespace default; remove one of them",
        )
        return
    found = [other.manifest for _, _, other in owned]
    kept = all(is_marked(manifest, "prune", "disabled") for manifest in found)
    shared = all(any(is_marked(manifest, "ssa", way) for way in _SHARED) for manifest in found)
    alike = all(_content(manifest) == _content(built.manifest) for manifest in found)
    if kept and (shared or alike):
        return
    effect = (
        "it is deleted when it leaves one of them"
        if alike
        else "they overwrite each other, and " + ("it is deleted when it leaves one of them")
    )
    yield Finding(
        file,
        object_id,
        path,
        f"{placed} has {'two' if len(names) == 2 else len(names)} owners: {named(names)}; keep it in one of "
        f"them: {effect}",
        is_note=alike and placed.kind not in _HAS_MORE,
    )


def owned_by_roadstead(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield each object that Roadstead applies too, as a manifest of the fleet asks.

    What ``flux bootstrap`` writes has some. The two keep each other's fields, so equal ones are a note; a
    Kustomization that the platform points elsewhere, and an object that takes others along, are faults.
    """
    for owner, object_id, built in platform.objects:
        if object_id not in platform.provided:
            continue
        field = _pointed_elsewhere(platform.inventory.owners.get(object_id), built)
        is_kept = is_marked(built.manifest, "prune", "disabled")
        deleted = object_id.kind in _OF_SYSTEMS and owner.prunes and not is_kept
        if field:
            what = (
                f"{field} differs, and Flux would follow one and then the other; remove it from the platform"
            )
        elif deleted:
            what = (
                "when it leaves the platform, Flux deletes it with everything in it; remove it from the "
                "platform, or commit the annotation kustomize.toolkit.fluxcd.io/prune: disabled for it"
            )
        else:
            what = "remove it from the platform, or what differs changes in turns"
        yield Finding(
            built.file or owner.file,
            object_id,
            ("spec", field.partition(".")[2]) if field else ("metadata", "name"),
            f"{object_id.kind} {full_name(object_id)} has two owners: Roadstead applies it too, as the "
            f"manifests of the fleet ask; {what}",
            is_note=not (field or deleted),
        )


def flux_owns_itself(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the Namespaces that ``targetNamespace`` calls as that of Flux, which Flux deletes with them.

    kustomize gives a Namespace the name of the namespace that it sets (api/filters/namespace).
    """
    for owner, object_id, built in platform.objects:
        renamed = owner.spec.get("targetNamespace") == object_id.name == NAMESPACE
        if not (renamed and object_id.kind in _OF_SYSTEMS and owner.prunes):
            continue
        if not is_marked(built.manifest, "prune", "disabled"):
            yield Finding(
                built.file or owner.file,
                object_id,
                ("metadata", "name"),
                f"spec.targetNamespace of Kustomization {full_name(owner.id)} calls this Namespace "
                f"{NAMESPACE}: when it leaves the platform, Flux deletes itself; move it to another "
                "Kustomization, or leave spec.targetNamespace out",
            )


_OF_SYSTEMS = ("Namespace",)
"""What Roadstead applies and takes other objects along."""
_PLACES = ("targetNamespace", "prune", "suspend")
"""What a Kustomization does with its path: fields of its spec."""


def _pointed_elsewhere(asked: Owner | None, built: BuiltObject) -> str:
    """Return the field by which the platform points a Kustomization of a manifest elsewhere, "" for none."""
    if asked is None or asked.file:
        return ""
    own = Owner(asked.id, mapping(built.manifest.get("spec")))
    if "path" in own.spec and own.path != asked.path:
        return "spec.path"
    sources = [mapping(owner.spec.get("sourceRef")).get("name") for owner in (own, asked)]
    if sources[0] not in (None, sources[1]):
        return "spec.sourceRef"
    differing = (name for name in _PLACES if name in own.spec)
    found = next(
        (name for name in differing if (own.spec[name] or None) != (asked.spec.get(name) or None)), ""
    )
    return f"spec.{found}" if found else ""


def _placed(object_id: ObjectId, manifest: Json, kinds: KnownKinds) -> ObjectId:
    """Return an id with the namespace that an object without one gets."""
    if object_id.namespace or not kinds.is_namespaced(manifest):
        return object_id
    return object_id._replace(namespace="default")


def _whose(owner: Owner, built: BuiltObject) -> str:
    file = f" ({built.file})" if built.file else ""
    return f"Kustomization {full_name(owner.id)} with ./{owner.path}{file}"


def _content(manifest: Json) -> Mapping[str, object]:
    metadata = {
        key: value
        for key, value in mapping(manifest.get("metadata")).items()
        if key not in ("labels", "annotations")
    }
    return {**manifest, "metadata": metadata}
