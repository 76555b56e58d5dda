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
from shared.platform.changes.objects import (
    FLUX,
    HELM,
    IMAGE,
    KUSTOMIZE,
    NOTIFICATION,
    SOURCE,
    is_open,
    items,
    mapping,
    mapping_at,
    objects_in,
)
from shared.platform.inventory import ObjectId
from shared.platform.rules.finding import (
    MADE_ELSEWHERE,
    ClusterPlatform,
    Files,
    Finding,
    OwnedObject,
    full_name,
    is_kind,
    named,
)
from shared.platform.schemas.kinds import KindState


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
_LISTS = {
    (NOTIFICATION, "Alert"): "eventSources",
    (NOTIFICATION, "Receiver"): "resources",
}
_RBAC = "rbac.authorization.k8s.io"
_ALMOST = 0.85
"""How alike two names are of which one is a slip of the other."""
_LETTERS, _LONGEST_GUESSED = "abcdefghijklmnopqrstuvwxyz0123456789-.", 100


def _of_flux(platform: ClusterPlatform) -> Iterator[OwnedObject]:
    """Yield the objects of Flux that the platform has, which may refer to others."""
    return (owned for owned in platform.objects if owned.id.group.endswith(FLUX))


def missing_sources(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the objects of Flux that are referred to and are not there, each once.

    They are notes where not everything is known.
    """
    missing: dict[ObjectId, list[tuple[OwnedObject, Path]]] = {}
    for referrer in _of_flux(platform):
        for field, path, reference in _references(referrer):
            wanted = _wanted(referrer, field, reference)
            unknown = is_open(wanted.name) or is_open(wanted.namespace) or wanted.kind in MADE_ELSEWHERE
            if wanted.name and wanted.kind and not unknown and wanted not in platform.known:
                missing.setdefault(wanted, []).append((referrer, (*path, "name")))
    for wanted, places in missing.items():
        referrer, path = places[0]
        names = named([str(found.id) for found, _ in places])
        never = "refers to, and so never becomes" if len(places) == 1 else "refer to, and so never become"
        message = f"there is no {wanted}, which {names} {never} Ready{hint_for(wanted, platform)}"
        yield referrer.finding(path, message, is_note=not platform.is_whole)


def blocked_references(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the references to another namespace that a controller refuses, because Flux is locked down."""
    for referrer in _of_flux(platform):
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
                message = (
                    f"{referrer.id} refers to the namespace {namespace}, which {controller} refuses, because "
                    "Flux is locked down; move both into one namespace, or write spec.flux.lockdown: false"
                )
                yield referrer.finding(path, message)


def without_rights(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield what is applied without rights: it names no account, and Flux is locked down.

    It acts as the account ``default`` of its namespace then (``--default-service-account``), which has the
    rights that a binding gives it. Where a binding may be that nobody knows, all of it is one note.
    """
    granted = _granted(platform)
    found = [
        referrer
        for referrer in _of_flux(platform)
        if _CONFINED.get(referrer.id.group) in platform.confining
        and not (referrer.spec.get("serviceAccountName") or referrer.spec.get("kubeConfig"))
        and not (granted & {"*", referrer.id.namespace} or is_open(referrer.id.namespace))
    ]
    is_note = not platform.is_sure
    for referrer in found[: 1 if is_note else None]:
        concerned = found if is_note else [referrer]
        names = named([str(given.id) for given in concerned])
        which = f"{referrer.id.namespace}, " if len(concerned) == 1 else "their namespaces, "
        account = f" (in {NAMESPACE}: {_CONFINED[referrer.id.group]})"
        message = (
            f"without serviceAccountName: {names}. Flux is locked down, and acts as the account default of "
            f"{which}which nothing here gives rights; add spec.serviceAccountName{account}"
        )
        yield referrer.finding(("spec",), message, is_note=is_note)


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
    for referrer in _of_flux(platform):
        chart = mapping_at(referrer.spec, "chart.spec")
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


def _no_file(release: OwnedObject, path: Path, message: str) -> Finding:
    return release.finding(
        ("spec", "chart", "spec", *path), f"{message}, and so {release.id} never becomes Ready"
    )


def _references(referrer: OwnedObject) -> Iterator[tuple[ReferenceField, Path, Mapping[str, Any]]]:
    for field in FIELDS:
        reference = mapping_at(referrer.spec, field.path)
        if reference and (field.owner_group, field.owner_kind) == referrer.id[:2]:
            yield field, ("spec", *field.path), reference


def _wanted(referrer: OwnedObject, field: ReferenceField, reference: Mapping[str, Any]) -> ObjectId:
    kind = field.kind or str(reference.get("kind") or "")
    namespace = str(reference.get("namespace") or referrer.id.namespace)
    return ObjectId(field.group, kind, namespace, str(reference.get("name") or ""))


def hint_for(wanted: ObjectId, platform: ClusterPlatform) -> str:
    """Return what was probably meant by a name that is not there: in another namespace, or a similar one."""
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
    names = platform.names.get((wanted.group, wanted.kind, wanted.namespace), {})
    generated = names.get(wanted.name, "")
    if generated:
        return generated, (
            f"; the generator calls it {generated}: write disableNameSuffixHash, or a nameReference for "
            "this field"
        )
    near = next(iter(difflib.get_close_matches(wanted.name, _slips(wanted.name, names), 1, _ALMOST)), "")
    if near:
        return near, f"; did you mean {near}?"
    for (group, kind, _), others in platform.names.items() if wanted.group else ():
        if group == wanted.group and kind != wanted.kind and wanted.name in others:
            return kind, f"; there is a {kind} of this name"
    return "", ""


def _slips(name: str, names: Mapping[str, str]) -> Sequence[str]:
    """Return the names that are one letter away: it is more, less or another, or two are swapped.

    Looking each of these up costs the same however many names there are (norvig.com/spell-correct.html).
    """
    if not names or len(name) > _LONGEST_GUESSED:
        return ()
    parts = [(name[:at], name[at:]) for at in range(len(name) + 1)]
    found = {left + right[1:] for left, right in parts if right}
    found |= {left + right[1] + right[0] + right[2:] for left, right in parts if len(right) > 1}
    found |= {
        left + letter + right[skipped:] for left, right in parts for letter in _LETTERS for skipped in (0, 1)
    }
    return sorted(found & names.keys())


def beyond_rights(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield what a Kustomization applies by an account that has no rights there, once for each Kustomization.

    It is looked at where the platform has the account, and no binding of the whole cluster. Reports:
    fluxcd/flux2-multi-tenancy#69, #131, projectcapsule/capsule#516.
    """
    bindings = list(platform.of_kind(_RBAC, "RoleBinding", "ClusterRoleBinding"))
    having: dict[ObjectId, list[OwnedObject]] = {}
    for owned in platform.objects:
        name = str(owned.owner.spec.get("serviceAccountName") or "")
        account = ObjectId("", "ServiceAccount", owned.owner.id.namespace, name)
        if platform.known.get(account) is not None:
            having.setdefault(owned.owner.id, []).append(owned)
    for owner, objects in having.items():
        account = ObjectId("", "ServiceAccount", owner.namespace, objects[0].owner.spec["serviceAccountName"])
        places = {binding.id.namespace for binding in bindings if _is_for(binding, account)}
        beyond = (owned for owned in objects if "" not in places and _place(owned, platform) not in places)
        for owned in beyond:
            place = _place(owned, platform)
            if place is None or is_open(place):
                continue
            where = f"in the namespace {place}" if place else "without a namespace"
            message = (
                f"{account}, by which Kustomization {full_name(owner)} applies, has no rights {where}, so "
                "the API server forbids this, and Flux applies nothing of it; bind a role, or move this"
            )
            yield owned.finding(("metadata",), message, is_note=not platform.is_sure)
            break


def _place(owned: OwnedObject, platform: ClusterPlatform) -> str | None:
    """Return the namespace that rights for an object are of, "" for the cluster, None where nobody knows.

    A RoleBinding gives rights on the Namespace that it is in (apiserver
    ``pkg/endpoints/request/requestinfo.go``: a request for a namespace is in it).
    """
    if is_kind(owned.id, "", "Namespace"):
        return owned.id.name
    if platform.kinds.is_namespaced(owned.manifest):
        return owned.id.namespace or "default"
    return "" if platform.kinds.standing(owned.manifest)[0] is KindState.DEFINED else None


def _is_for(binding: OwnedObject, account: ObjectId) -> bool:
    """Return whether a binding gives rights to an account, or may do so."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", "system:authenticated")
    user = f"system:serviceaccount:{account.namespace}:{account.name}"
    for _, subject in objects_in(binding.manifest.get("subjects")):
        name, kind = str(subject.get("name") or ""), subject.get("kind")
        place = str(subject.get("namespace") or binding.id.namespace)
        if is_open(name) or is_open(place) or (kind == "Group" and name in groups):
            return True
        if kind == "User" and name == user:
            return True
        if kind == "ServiceAccount" and (place, name) == (account.namespace, account.name):
            return True
    return False


def _granted(platform: ClusterPlatform) -> frozenset[str]:
    """Return the namespaces whose account ``default`` has rights by a binding; "*" is all of them."""
    found: set[str] = set()
    for owned in platform.of_kind(_RBAC, "RoleBinding", "ClusterRoleBinding"):
        for _, subject in objects_in(owned.manifest.get("subjects")):
            kind, name = subject.get("kind"), str(subject.get("name") or "")
            if kind == "ServiceAccount" and name == "default":
                found.add(str(subject.get("namespace") or owned.id.namespace))
            if kind == "Group" and name.startswith(("system:serviceaccounts", "system:authenticated")):
                found.add(name.removeprefix("system:serviceaccounts:") if name.count(":") == 2 else "*")
    return frozenset(found)
