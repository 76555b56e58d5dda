"""An object has one owner, once; and what only one object can have, one asks for.

Two Kustomizations that apply one object write their versions in turns, and when one of the two goes, so does
the object: fluxcd/kustomize-controller#732, fluxcd/flux2#5611, argoproj/argo-cd#22607. So do two HelmReleases
of one release, which is known by its name and its storage namespace (helm-controller ``api/v2``).

What several ask for: ``pkg/registry/core/service/portallocator`` (a port of the nodes), cert-manager#4846 and
#6992 (two certificates write one Secret in turns), kubernetes/ingress-nginx#8216 (its webhook refuses the
second), kubernetes#108920 and kubernetes.io, "Deployments", Selector (controllers with one selector, whose
autoscalers and budgets count the others' pods).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shared.json_tree import Json
from shared.kubernetes.flux_objects import NAMESPACE
from shared.language.resolve.problems import Path
from shared.platform.changes.objects import (
    HELM,
    WORKLOADS,
    is_marked,
    is_open,
    mapping,
    mapping_at,
    objects_in,
    release_target,
    value_at,
)
from shared.platform.inventory import BuiltObject, ObjectId, Owner
from shared.platform.rules.finding import ClusterPlatform, Finding, OwnedObject, full_name, named
from shared.platform.schemas.kinds import KnownKinds

_SHARED = ("merge", "ifnotpresent")
_HAS_MORE = (
    *("Namespace", "CustomResourceDefinition", "PersistentVolumeClaim", "PersistentVolume", "StatefulSet"),
    *("HelmRelease", "Kustomization"),
)
"""Kinds that take other objects, or data, along when they are deleted."""


def two_owners(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield each object that several Kustomizations apply, at the place of the last one.

    It is a note where all write the same, and nothing is lost when it is deleted and created again.
    """
    having: dict[ObjectId, list[OwnedObject]] = {}
    for owned in platform.objects:
        placed = _placed(owned.id, owned.manifest, platform.kinds)
        if not (is_open(placed.name) or is_open(placed.namespace)):
            having.setdefault(placed, []).append(owned)
    for placed, all_of in having.items():
        if len(all_of) > 1:
            yield from _of_several(placed, all_of)


def _of_several(placed: ObjectId, all_of: Sequence[OwnedObject]) -> Iterator[Finding]:
    last, path = all_of[-1], ("metadata", "name")
    names = list(dict.fromkeys(_whose(owned) for owned in all_of))
    if len({owned.owner.id for owned in all_of}) == 1:
        message = (
            f"{placed} is defined twice in {names[0]}, because an object without a namespace gets the "
            "namespace default; remove one of them"
        )
        yield last.finding(path, message)
        return
    kept = all(is_marked(owned.manifest, "prune", "disabled") for owned in all_of)
    shared = all(any(is_marked(owned.manifest, "ssa", way) for way in _SHARED) for owned in all_of)
    alike = all(_content(owned.manifest) == _content(last.manifest) for owned in all_of)
    if kept and (shared or alike):
        return
    effect = "it is deleted when it leaves one of them"
    message = (
        f"{placed} has {'two' if len(names) == 2 else len(names)} owners: {named(names)}; keep it in one of "
        f"them: {effect if alike else f'they overwrite each other, and {effect}'}"
    )
    yield last.finding(path, message, is_note=alike and placed.kind not in _HAS_MORE)


def one_release_twice(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield each release of Helm that several HelmReleases are for: each upgrades it to its own chart."""
    having: dict[tuple[str, str], list[OwnedObject]] = {}
    for owned in platform.of_kind(HELM, "HelmRelease"):
        target = release_target(owned.id, owned.manifest)
        place = target["spec.storageNamespace"], target["spec.releaseName"]
        if not any(map(is_open, place)) and not owned.spec.get("kubeConfig"):
            having.setdefault(place, []).append(owned)
    for (namespace, release), all_of in having.items():
        if len({owned.id for owned in all_of}) > 1:
            names = named([f"{full_name(owned.id)} ({owned.built.file})" for owned in all_of])
            message = (
                f"the release {namespace}/{release} has {len(all_of)} HelmReleases: {names}; each upgrades "
                "it to its own chart in turns, and uninstalls it when it goes; rename one"
            )
            yield all_of[-1].finding(("metadata", "name"), message)


def owned_by_roadstead(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield each object that Roadstead applies too, as a manifest of the fleet asks.

    What ``flux bootstrap`` writes has some, the Namespace of Flux among them. The two keep each other's
    fields, so equal ones are a note; a Kustomization that the platform points elsewhere, and an object that
    takes others along, are faults.
    """
    for owned in platform.objects:
        if owned.id not in platform.provided:
            continue
        field = _pointed_elsewhere(platform.inventory.owners.get(owned.id), owned.built)
        is_kept = is_marked(owned.manifest, "prune", "disabled")
        deleted = owned.id.kind in _OF_SYSTEMS and owned.owner.prunes and not is_kept
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
        message = (
            f"{owned.id} has two owners: Roadstead applies it too, as the manifests of the fleet ask; {what}"
        )
        path = ("spec", field.partition(".")[2]) if field else ("metadata", "name")
        is_of_flux = owned.id.name == NAMESPACE and not field
        yield owned.finding(path, message, is_note=is_of_flux or not (field or deleted))


def flux_owns_itself(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the Namespaces that ``targetNamespace`` calls as that of Flux, which Flux deletes with them.

    kustomize gives a Namespace the name of the namespace that it sets (api/filters/namespace).
    """
    for owned in platform.of_kind("", *_OF_SYSTEMS):
        renamed = owned.owner.spec.get("targetNamespace") == owned.id.name == NAMESPACE
        if renamed and owned.owner.prunes and not is_marked(owned.manifest, "prune", "disabled"):
            message = (
                f"spec.targetNamespace of Kustomization {full_name(owned.owner.id)} calls this Namespace "
                f"{NAMESPACE}: when it leaves the platform, Flux deletes itself; move it to another "
                "Kustomization, or leave spec.targetNamespace out"
            )
            yield owned.finding(("metadata", "name"), message)


_OF_SYSTEMS = ("Namespace",)
"""What Roadstead applies and takes other objects along."""
_PLACES = ("targetNamespace", "prune", "suspend")
"""What a Kustomization does with its path: fields of its spec."""


def _pointed_elsewhere(asked: Owner | None, built: BuiltObject) -> str:
    """Return the field by which the platform points a Kustomization of a manifest elsewhere, "" for none."""
    if asked is None or asked.file:
        return ""
    own = Owner(asked.id, mapping_at(built.manifest, "spec"))
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


def _whose(owned: OwnedObject) -> str:
    file = f" ({owned.built.file})" if owned.built.file else ""
    return f"Kustomization {full_name(owned.owner.id)} with ./{owned.owner.path}{file}"


def _content(manifest: Json) -> Mapping[str, object]:
    metadata = {
        key: value
        for key, value in mapping_at(manifest, "metadata").items()
        if key not in ("labels", "annotations")
    }
    return {**manifest, "metadata": metadata}


# What only one object can have

_Keys = Iterator[tuple[Path, tuple[Any, ...]]]


class _Row(NamedTuple):
    """What objects of some kinds have, each with its field; ``message`` says what several of them do."""

    group: str
    kinds: tuple[str, ...]
    keys: Callable[[Json], _Keys]
    message: str
    is_of_cluster: bool = False
    is_note: bool = False


def taken_twice(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield what several objects have and only one can, at the last of them."""
    for rule in _ROWS:
        having: dict[tuple[str, ...], list[tuple[OwnedObject, Path]]] = {}
        for owned in platform.of_kind(rule.group, *rule.kinds):
            for path, key in rule.keys(owned.manifest):
                texts = tuple(map(str, key))  # a value may have any form
                if not any(map(is_open, texts)):
                    where = "" if rule.is_of_cluster else owned.id.namespace
                    having.setdefault((where, *texts), []).append((owned, path))
        for places in having.values():
            names = dict.fromkeys(str(owned.id) for owned, _ in places)
            if len(names) > 1:
                owned, path = places[-1]
                yield owned.finding(path, f"{named([*names])} {rule.message}", is_note=rule.is_note)


def _node_ports(service: Json) -> _Keys:
    for number, port in objects_in(value_at(service, "spec.ports")):
        if port.get("nodePort"):
            yield ("spec", "ports", number, "nodePort"), (port["nodePort"], port.get("protocol") or "TCP")


def _secret(certificate: Json) -> _Keys:
    if value_at(certificate, "spec.secretName"):
        yield ("spec", "secretName"), (value_at(certificate, "spec.secretName"),)


def _routes(ingress: Json) -> _Keys:
    marks = mapping_at(ingress, "metadata.annotations")
    if any(key.endswith("/canary") for key in map(str, marks)):
        return
    chosen = value_at(ingress, "spec.ingressClassName") or marks.get("kubernetes.io/ingress.class") or ""
    for number, rule in objects_in(value_at(ingress, "spec.rules")):
        for place, entry in objects_in(value_at(rule, "http.paths")):
            route = (rule.get("host") or "", entry.get("path") or "/", entry.get("pathType") or "")
            yield ("spec", "rules", number, "http", "paths", place, "path"), (chosen, *route)


def _selector(workload: Json) -> _Keys:
    if chosen := mapping_at(workload, "spec.selector"):
        yield ("spec", "selector"), (json.dumps(chosen, sort_keys=True, default=str),)


def _default(priority: Json) -> _Keys:
    if priority.get("globalDefault") is True:
        yield ("globalDefault",), ()


_ROWS = (
    _Row(
        "scheduling.k8s.io",
        ("PriorityClass",),
        _default,
        "are the default of all pods; the API server refuses the second",
        True,
    ),
    _Row(
        "", ("Service",), _node_ports, "want one port of the nodes; the API server refuses the second", True
    ),
    _Row(
        "cert-manager.io",
        ("Certificate",),
        _secret,
        "write one Secret, which has the certificate of one of them; give each its own",
    ),
    _Row(
        "networking.k8s.io",
        ("Ingress",),
        _routes,
        "have one host and path: ingress-nginx refuses the second, others choose one of them; keep one",
        True,
        True,
    ),
    _Row(
        "apps",
        WORKLOADS,
        _selector,
        "have one selector, so Services, budgets and autoscalers take the pods of one for those of another; "
        "give each a label of its own",
        is_note=True,
    ),
)
