"""What objects of Flux refer to is there, and may be referred to.

Sources: the API of Flux (fluxcd.io/flux/components: ``sourceRef``, ``chartRef``, ``valuesFrom`` ...), and for
references to another namespace ``NoCrossNamespaceRefs`` of each controller, which ``flux_lockdown`` sets.
"""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shared.frozen import dataclass
from shared.kubernetes.flux_objects import NAMESPACE
from shared.language.resolve.problems import Path, nearest
from shared.platform.inventory import ObjectId
from shared.platform.rules.finding import (
    FLUX,
    HELM,
    KUSTOMIZATION,
    KUSTOMIZE,
    MADE_ELSEWHERE,
    SOURCE,
    ClusterPlatform,
    Files,
    Finding,
    full_name,
    is_kind,
    is_open,
    items,
    mapping,
    named,
    objects_in,
)

IMAGE, NOTIFICATION = f"image.{FLUX}", f"notification.{FLUX}"


@dataclass(frozen=True)
class ReferenceField:
    """A field that refers to an object: of which kind, where, and to what.

    ``group`` is that of what it refers to; ``kind`` is its kind where the field has none. ``controller`` is
    who refuses another namespace under lock-down, "" where the field names none.
    """

    owner_group: str
    owner_kind: str
    path: tuple[str, ...]
    group: str = SOURCE
    kind: str = ""
    controller: str = ""


_KUSTOMIZE, _HELM = "kustomize-controller", "helm-controller"
_CONFINED = {KUSTOMIZE: _KUSTOMIZE, HELM: _HELM}
FIELDS: tuple[ReferenceField, ...] = (
    ReferenceField(KUSTOMIZE, "Kustomization", ("sourceRef",), controller=_KUSTOMIZE),
    ReferenceField(HELM, "HelmRelease", ("chart", "spec", "sourceRef"), controller=_HELM),
    ReferenceField(HELM, "HelmRelease", ("chartRef",), controller=_HELM),
    ReferenceField(SOURCE, "HelmChart", ("sourceRef",)),
    ReferenceField(
        IMAGE, "ImagePolicy", ("imageRepositoryRef",), IMAGE, "ImageRepository", "image-reflector-controller"
    ),
    ReferenceField(IMAGE, "ImageUpdateAutomation", ("sourceRef",), controller="image-automation-controller"),
    ReferenceField(NOTIFICATION, "Alert", ("providerRef",), NOTIFICATION, "Provider"),
)
_VALUES = {
    (HELM, "HelmRelease"): ("valuesFrom",),
    (KUSTOMIZE, "Kustomization"): ("postBuild", "substituteFrom"),
}
_LISTS = {
    (NOTIFICATION, "Alert"): "eventSources",
    (NOTIFICATION, "Receiver"): "resources",
}
_ALMOST = 0.85
"""How alike two names are of which one is a slip of the other."""


@dataclass(frozen=True)
class Referrer:
    """An object of Flux that may refer to others: of the platform, or of the manifest of the cluster."""

    id: ObjectId
    spec: Mapping[str, Any]
    file: str


def referrers(platform: ClusterPlatform) -> Iterator[Referrer]:
    """Yield the objects of Flux that the platform has."""
    for owner, object_id, built in platform.objects:
        if object_id.group.endswith(FLUX):
            yield Referrer(object_id, mapping(built.manifest.get("spec")), built.file or owner.file)


def missing_sources(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the objects of Flux that are referred to and are not there, each once.

    They are notes where not everything is known.
    """
    missing: dict[ObjectId, list[tuple[Referrer, Path]]] = {}
    for referrer in referrers(platform):
        for field, path, reference in _references(referrer):
            wanted = _wanted(referrer, field, reference)
            unknown = is_open(wanted.name) or is_open(wanted.namespace) or wanted.kind in MADE_ELSEWHERE
            if wanted.name and wanted.kind and not unknown and wanted not in platform.known:
                missing.setdefault(wanted, []).append((referrer, (*path, "name")))
    for wanted, places in missing.items():
        referrer, path = places[0]
        names = named([f"{found.id.kind} {full_name(found.id)}" for found, _ in places])
        never = "refers to, and so never becomes" if len(places) == 1 else "refer to, and so never become"
        yield Finding(
            referrer.file,
            referrer.id,
            path,
            f"there is no {wanted.kind} {full_name(wanted)}, which {names} {never} "
            f"Ready{_hint(wanted, platform)}",
            is_note=not platform.is_whole,
        )


def blocked_references(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the references to another namespace that a controller refuses, because Flux is locked down."""
    for referrer in referrers(platform):
        places = [
            (field.controller, (*path, "namespace"), _wanted(referrer, field, reference).namespace)
            for field, path, reference in _references(referrer)
        ]
        listed = _LISTS.get((referrer.id.group, referrer.id.kind), "")
        places += [
            ("notification-controller", ("spec", listed, number, "namespace"), str(entry["namespace"]))
            for number, entry in objects_in(referrer.spec.get(listed))
            if entry.get("namespace")
        ]
        for controller, path, namespace in places:
            if controller not in platform.blocking or namespace == referrer.id.namespace:
                continue
            if not (is_open(namespace) or is_open(referrer.id.namespace)):
                yield Finding(
                    referrer.file,
                    referrer.id,
                    path,
                    f"{referrer.id.kind} {full_name(referrer.id)} refers to the namespace {namespace}, which "
                    f"{controller} refuses, because Flux is locked down; move both into one namespace, or "
                    "write spec.flux.lockdown: false",
                )


def without_rights(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield what is applied without rights: it names no account, and Flux is locked down.

    It acts as the account ``default`` of its namespace then (``--default-service-account``), which has the
    rights that a binding gives it. Where a binding may be that nobody knows, all of it is one note.
    """
    granted = _granted(platform)
    found = [
        referrer
        for referrer in referrers(platform)
        if _CONFINED.get(referrer.id.group) in platform.confining
        and not (referrer.spec.get("serviceAccountName") or referrer.spec.get("kubeConfig"))
        and not (granted & {"*", referrer.id.namespace} or is_open(referrer.id.namespace))
    ]
    is_note = not platform.is_whole or platform.has_charts
    for referrer in found[: 1 if is_note else None]:
        concerned = found if is_note else [referrer]
        names = named([f"{given.id.kind} {full_name(given.id)}" for given in concerned])
        which = f"{referrer.id.namespace}, " if len(concerned) == 1 else "their namespaces, "
        account = f" (in {NAMESPACE}: {_CONFINED[referrer.id.group]})"
        yield Finding(
            referrer.file,
            referrer.id,
            ("spec",),
            f"without serviceAccountName: {names}. Flux is locked down, and acts as the account default of "
            f"{which}which nothing here gives rights; add spec.serviceAccountName{account}",
            is_note=is_note,
        )


def missing_accounts(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each account of the namespace of Flux that nothing here defines, and Flux acts as.

    Flux has the rights of that account, so without it nothing is applied. The installation has those of the
    controllers.
    """
    for referrer in referrers(platform):
        name = str(referrer.spec.get("serviceAccountName") or "")
        wanted = ObjectId("", "ServiceAccount", NAMESPACE, name)
        if referrer.id.group not in _CONFINED or referrer.id.namespace != NAMESPACE or is_open(name):
            continue
        if name and name != "default" and not name.endswith("-controller") and wanted not in platform.known:
            accounts = [found.name for found in platform.known if is_kind(found, "", "ServiceAccount")]
            near = nearest(name, [*accounts, *_CONFINED.values()])
            yield Finding(
                referrer.file,
                referrer.id,
                ("spec", "serviceAccountName"),
                f"nothing here defines ServiceAccount {full_name(wanted)}, as which {referrer.id.kind} "
                f"{full_name(referrer.id)} is applied: without it, nothing of it is; "
                + (f"did you mean {near}?" if near else "add it, with its rights"),
                is_note=True,
            )


def missing_values(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the ConfigMaps and Secrets with values, or keys of SOPS, that nothing here defines.

    A ConfigMap whose name is a slip of another is a fault; everything else may be on the cluster already,
    or come from a chart or from another controller, and is a note.
    """
    for referrer in (*referrers(platform), *_of_manifest(platform)):
        for place, entry in _values(referrer):
            name = str(entry.get("name") or "")
            wanted = ObjectId("", str(entry.get("kind") or "Secret"), referrer.id.namespace, name)
            if entry.get("optional") or not name or is_open(name) or wanted in platform.known:
                continue
            near, why = meant(wanted, platform)
            yield Finding(
                referrer.file,
                referrer.id,
                ("spec", *place, "name"),
                f"nothing here defines {wanted.kind} {full_name(wanted)}, which {referrer.id.kind} "
                f"{full_name(referrer.id)} needs{why or '; Flux waits until it is there'}",
                is_note=not near or wanted.kind != "ConfigMap",
            )


def _values(referrer: Referrer) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the references to values, and to the keys of SOPS, which are in a Secret."""
    path = _VALUES.get((referrer.id.group, referrer.id.kind))
    if path is None:
        return
    value: Any = referrer.spec
    for step in path:
        value = mapping(value).get(step)
    for number, entry in objects_in(value):
        yield (*path, number), entry
    keys = mapping(mapping(referrer.spec.get("decryption")).get("secretRef"))
    if referrer.id.group == KUSTOMIZE and keys:
        yield ("decryption", "secretRef"), keys


def missing_health_checks(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the objects whose health a Kustomization waits for, and that nothing defines.

    Source: ``checkHealth`` in ``kustomization_controller.go``, which waits for them until its timeout. Only
    git defines a HelmRelease or a Kustomization; what a chart may define is a note.
    """
    for referrer in (*referrers(platform), *_of_manifest(platform)):
        if (referrer.id.group, referrer.id.kind) != (KUSTOMIZE, KUSTOMIZATION) or referrer.spec.get("wait"):
            continue
        for number, check in objects_in(referrer.spec.get("healthChecks")):
            metadata = {name: check.get(name) for name in ("name", "namespace")}
            wanted = ObjectId.of({**check, "metadata": metadata})
            if is_open(wanted.name) or is_open(wanted.namespace) or wanted in platform.known:
                continue
            near = nearest(
                wanted.name,
                [found.name for found in platform.known if found[:3] == wanted[:3]],
            )
            of_flux = wanted.group in (HELM, KUSTOMIZE)
            yield Finding(
                referrer.file,
                referrer.id,
                ("spec", "healthChecks", number, "name"),
                f"nothing here defines {wanted}, which {referrer.id.kind} {full_name(referrer.id)} waits for"
                + (f"; did you mean {near}?" if near else "; correct the name, or remove it"),
                is_note=not (of_flux and platform.is_whole),
            )


def missing_charts(platform: ClusterPlatform, files: Files) -> Iterator[Finding]:
    """Yield the charts, and the files of values, that are to be in the repository and are not there.

    A chart whose source is the repository of a Kustomization is a path from its root
    (fluxcd.io/flux/components/helm/helmreleases, "Chart template").
    """
    fleet = {
        (str(ref.get("kind")), str(ref.get("namespace") or owner.id.namespace), str(ref.get("name")))
        for owner in platform.inventory.owners.values()
        for ref in [mapping(owner.spec.get("sourceRef"))]
    }
    for referrer in referrers(platform):
        chart = mapping(mapping(referrer.spec.get("chart")).get("spec"))
        ref = mapping(chart.get("sourceRef"))
        place = str(ref.get("kind")), str(ref.get("namespace") or referrer.id.namespace), str(ref.get("name"))
        if referrer.id.group != HELM or place not in fleet:
            continue
        path = str(chart.get("chart") or "")
        whole = posixpath.normpath(path.strip("/"))
        if not is_open(path) and files(f"{whole}/Chart.yaml") is None and files(whole) is None:
            yield _no_file(referrer, ("chart",), f"there is no chart ./{whole} in this repository")
        for number, values in enumerate(items(chart.get("valuesFiles"))):
            name = posixpath.normpath(str(values).strip("/"))
            ignored = chart.get("ignoreMissingValuesFiles") or is_open(values)
            if not ignored and files(name) is None:
                message = f"there is no file ./{name} in this repository"
                yield _no_file(referrer, ("valuesFiles", number), message)


def _no_file(referrer: Referrer, path: Path, message: str) -> Finding:
    return Finding(
        referrer.file,
        referrer.id,
        ("spec", "chart", "spec", *path),
        f"{message}, and so {referrer.id.kind} {full_name(referrer.id)} never becomes Ready",
    )


def _of_manifest(platform: ClusterPlatform) -> Sequence[Referrer]:
    built = {object_id for _, object_id, _ in platform.objects}
    owners = platform.inventory.owners.values()
    return [Referrer(owner.id, owner.spec, owner.file) for owner in owners if owner.id not in built]


def _references(referrer: Referrer) -> Iterator[tuple[ReferenceField, Path, Mapping[str, Any]]]:
    for field in FIELDS:
        if (field.owner_group, field.owner_kind) == (referrer.id.group, referrer.id.kind):
            value: Any = referrer.spec
            for step in field.path:
                value = mapping(value).get(step)
            if isinstance(value, Mapping):
                yield field, ("spec", *field.path), value


def _wanted(referrer: Referrer, field: ReferenceField, reference: Mapping[str, Any]) -> ObjectId:
    kind = field.kind or str(reference.get("kind") or "")
    namespace = str(reference.get("namespace") or referrer.id.namespace)
    return ObjectId(field.group, kind, namespace, str(reference.get("name") or ""))


def _hint(wanted: ObjectId, platform: ClusterPlatform) -> str:
    same = [found for found in platform.known if is_kind(found, wanted.group, wanted.kind)]
    elsewhere = [found.namespace for found in same if found.name == wanted.name]
    if elsewhere:
        return f"; it is in the namespace {named(sorted(elsewhere))}"
    near = nearest(wanted.name, [found.name for found in same if found.namespace == wanted.namespace])
    if near:
        return f"; did you mean {near}?"
    other = next(
        (found for found in platform.known if found.group == wanted.group and found[2:] == wanted[2:]), None
    )
    return f"; there is a {other.kind} of this name" if other else "; add it, or correct the name"


def meant(wanted: ObjectId, platform: ClusterPlatform) -> tuple[str, str]:
    """Return the name that was probably meant, "" where nothing is similar, and the hint that says so."""
    names = platform.names.get((wanted.group, wanted.kind, wanted.namespace), ())
    generated = next((name for name in names if _is_generated(name, wanted.name)), "")
    if generated:
        return generated, (
            f"; the generator calls it {generated}: write disableNameSuffixHash, or a nameReference for "
            "this field"
        )
    near = next(iter(difflib.get_close_matches(wanted.name, names, n=1, cutoff=_ALMOST)), "")
    return near, f"; did you mean {near}?" if near else ""


def _is_generated(name: str, wanted: str) -> bool:
    """Return whether a name is another one with the hash that kustomize adds."""
    rest = name.removeprefix(f"{wanted}-")
    return rest != name and len(rest) == 10 and rest.isalnum()


def _granted(platform: ClusterPlatform) -> frozenset[str]:
    """Return the namespaces whose account ``default`` has rights by a binding; "*" is all of them."""
    found: set[str] = set()
    for _, object_id, built in platform.objects:
        if object_id.kind not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        for _, subject in objects_in(built.manifest.get("subjects")):
            kind, name = subject.get("kind"), str(subject.get("name") or "")
            if kind == "ServiceAccount" and name == "default":
                found.add(str(subject.get("namespace") or object_id.namespace))
            if kind == "Group" and name.startswith(("system:serviceaccounts", "system:authenticated")):
                found.add(name.removeprefix("system:serviceaccounts:") if name.count(":") == 2 else "*")
    return frozenset(found)
