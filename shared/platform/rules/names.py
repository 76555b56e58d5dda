"""Names, labels and annotations as the API server takes them.

Source: ``k8s.io/apimachinery/pkg/util/validation`` and ``pkg/api/validation/objectmeta.go``, and for each
kind its ``Validate...Name`` in ``pkg/apis/*/validation``. What was exported from a cluster has an identity
there, which no other one has: hmcts/sds-flux-config#4176, fluxcd/flux#2938.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.json_tree import Json
from shared.language.resolve.problems import Path, nearest
from shared.platform.changes.objects import HELM, is_open, items, mapping, mapping_at
from shared.platform.inventory import ObjectId
from shared.platform.rules.finding import ClusterPlatform, Finding, OwnedObject, full_name, is_kind, named

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LONGEST_LABEL, _LONGEST_SUBDOMAIN = 63, 253
_LABEL_TEXT = "lowercase letters, digits and hyphens, with a letter or digit at both ends"
_OF_LABEL = (_LABEL, _LONGEST_LABEL, _LABEL_TEXT)
_OF_SUBDOMAIN = (_SUBDOMAIN, _LONGEST_SUBDOMAIN, f"{_LABEL_TEXT}; dots may separate such parts")
_OF_SERVICE = (_DNS_1035, _LONGEST_LABEL, f"{_LABEL_TEXT}, and a letter first")
_FORMS: Mapping[tuple[str, str], tuple[re.Pattern[str], int, str]] = {
    ("", "Namespace"): _OF_LABEL,
    ("", "Service"): _OF_SERVICE,
    ("batch", "CronJob"): (_SUBDOMAIN, 52, _OF_SUBDOMAIN[2]),
    ("batch", "Job"): (_SUBDOMAIN, _LONGEST_SUBDOMAIN, _OF_SUBDOMAIN[2]),
    ("apps", "StatefulSet"): (_SUBDOMAIN, _LONGEST_SUBDOMAIN, _OF_SUBDOMAIN[2]),
}
"""The forms of names that are no subdomains: ``ValidateNamespaceName``, ``ValidateServiceName``,
``ValidateCronJobCreate``."""
_PATH_SEGMENT_GROUPS = ("rbac.authorization.k8s.io",)
_NO_SUBDOMAIN_KINDS = frozenset(
    (
        *(("apiregistration.k8s.io", "APIService"), ("apiextensions.k8s.io", "CustomResourceDefinition")),
        *(("certificates.k8s.io", "ClusterTrustBundle"), ("networking.k8s.io", "IPAddress")),
    )
)
"""Kinds whose names follow from what they have in them."""


def wrong_names(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the names and namespaces that the API server refuses."""
    for owned in platform.objects:
        for path, message in _name_faults(owned.id, owned.manifest):
            yield owned.finding(path, message)


def wrong_labels(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the labels and annotations that the API server refuses."""
    for owned in platform.objects:
        faults = [*_metadata_faults(owned.manifest)]
        if not faults and is_kind(owned.id, "", "Namespace"):
            faults += _pod_security_faults(mapping_at(owned.manifest, "metadata.labels"))
        for path, message in faults:
            yield owned.finding(path, message)


def missing_namespaces(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each object that gets the namespace ``default`` because it names none."""
    for owned in platform.objects:
        if owned.id.namespace or not platform.kinds.is_namespaced(owned.manifest):
            continue
        if not owned.owner.spec.get("targetNamespace"):
            message = (
                f"{owned.id} has no namespace, and so gets the namespace default; add metadata.namespace, "
                "or spec.targetNamespace to the Kustomization"
            )
            yield owned.finding(("metadata",), message, is_note=True)


def unknown_namespaces(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each namespace that objects are in and nothing here defines.

    Without it, the dry run of its objects fails, and Flux applies nothing of their Kustomization.
    """
    defined = {known.name for known in platform.known if is_kind(known, "", "Namespace")}
    releases = list(platform.of_kind(HELM, "HelmRelease"))
    defined |= {"", "default", *(known.namespace for known in platform.provided), *map(_created, releases)}
    having: dict[str, list[OwnedObject]] = {}
    for owned in platform.objects:
        name = owned.id.namespace
        if not (name in defined or is_open(name) or name.startswith(_OF_AKS)):
            having.setdefault(name, []).append(owned)
    for name, objects in having.items():
        owners = named(list(dict.fromkeys(full_name(owned.owner.id) for owned in objects)))
        near = nearest(name, sorted(defined - {""}))
        message = (
            f"nothing here defines the namespace {name}: until it is there, Flux applies nothing of "
            f"Kustomization {owners}"
        )
        hint = f"did you mean {near}?" if near else "add it, unless something else creates it"
        yield objects[0].finding(("metadata", "namespace"), f"{message}; {hint}", is_note=True)
    for release in releases:
        name = _target(release)
        if not (name in {*defined, *having} or is_open(name) or name.startswith(_OF_AKS)):
            message = f"nothing here defines the namespace {name}, and without it helm installs nothing"
            hint = "write install.createNamespace: true, or add it, unless something else creates it"
            yield release.finding(("spec", "targetNamespace"), f"{message}; {hint}", is_note=True)


_OF_AKS = ("kube-", "aks-", "gatekeeper-system", "app-routing-system", "dapr-system", "azure-")
"""Namespaces that Kubernetes, or an add-on of AKS, brings."""


def _created(release: OwnedObject) -> str:
    """Return the namespace that a HelmRelease creates for its release, "" for none."""
    return _target(release) if mapping_at(release.spec, "install").get("createNamespace") else ""


def _target(release: OwnedObject) -> str:
    """Return the namespace that a HelmRelease names for its release, "" for none, or of another cluster."""
    return "" if release.spec.get("kubeConfig") else str(release.spec.get("targetNamespace") or "")


def _name_faults(object_id: ObjectId, manifest: Json) -> Iterator[tuple[tuple[str, ...], str]]:
    name, namespace = object_id.name, object_id.namespace
    given = mapping_at(manifest, "metadata").get("name")
    if not name:
        yield ("metadata",), f"{object_id.kind} has no metadata.name; add it"
    elif given is not None and not isinstance(given, str):
        yield ("metadata", "name"), f'must be a string, got {name}; write it in quotes, as "{name}"'
    elif not is_open(name):
        wrong = _name_fault(object_id)
        if wrong:
            yield ("metadata", "name"), f"{object_id.kind} {name}: the name must be {wrong}"
    if namespace and not is_open(namespace) and not _fits(namespace, _LABEL, _LONGEST_LABEL):
        yield ("metadata", "namespace"), f"the namespace {namespace} must be {_described(_OF_LABEL)}"


def _name_fault(object_id: ObjectId) -> str:
    name = object_id.name
    if object_id.group in _PATH_SEGMENT_GROUPS:
        return "no . or .., without / and %" if name in (".", "..") or re.search("[/%]", name) else ""
    if (object_id.group, object_id.kind) in _NO_SUBDOMAIN_KINDS:
        return ""
    form = _FORMS.get((object_id.group, object_id.kind), _OF_SUBDOMAIN)
    return "" if _fits(name, form[0], form[1]) else _described(form)


def _fits(name: str, form: re.Pattern[str], longest: int) -> bool:
    return len(name) <= longest and form.fullmatch(name) is not None


def is_label(name: str) -> bool:
    """Return whether a text is a label as DNS has it."""
    return _fits(name, _LABEL, _LONGEST_LABEL)


def _described(form: tuple[re.Pattern[str], int, str]) -> str:
    return f"at most {form[1]} {form[2]}"


def _metadata_faults(manifest: Json) -> Iterator[tuple[Path, str]]:
    metadata = mapping_at(manifest, "metadata")
    for field in ("uid", "resourceVersion"):
        if metadata.get(field):
            message = (
                "belongs to one object of one cluster, so every apply is refused as a conflict; remove it"
            )
            yield ("metadata", field), message
    if metadata.get("ownerReferences"):
        message = (
            "names an object of one cluster by its uid; on every other one Kubernetes deletes this object, "
            "because its owner is not there; remove it"
        )
        yield ("metadata", "ownerReferences"), message
    group = str(manifest.get("apiVersion") or "").rpartition("/")[0]
    given = items(metadata.get("finalizers")) if group in _WITH_STRICT_FINALIZERS else ()
    for number, finalizer in enumerate(given):
        if isinstance(finalizer, str) and not (
            "/" in finalizer or finalizer in _FINALIZERS or is_open(finalizer)
        ):
            message = f"{finalizer} is no finalizer: it must be a domain, / and a name"
            yield ("metadata", "finalizers", number), message
    yield from label_faults(metadata, ("metadata",))


_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
"""Those without a domain: ``ValidateFinalizerName``, ``pkg/apis/core/validation`` of Kubernetes."""
_WITH_STRICT_FINALIZERS = ("", "apps", "batch", "networking.k8s.io")
"""Groups whose objects that validation is for; a definition and a custom object may have any name."""
_OF_ARGO = "resources-finalizer.argocd.argoproj.io"
"""What people write, so that Argo CD deletes what it applied: argo-cd.readthedocs.io, "App Deletion"."""


def lasting_finalizers(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each object in git with a finalizer: it, and its namespace, may never be gone.

    Reports: fluxcd/flux2#2486, fluxcd/kustomize-controller#90.
    """
    for owned in platform.objects:
        every = items(mapping_at(owned.manifest, "metadata").get("finalizers"))
        given = [str(text) for text in every if not str(text).startswith(_OF_ARGO)]
        if given and not is_kind(owned.id, "", "Namespace"):
            message = (
                f"once {owned.id} is deleted, it stays, and its namespace with it, until a controller takes "
                f"away {named(given)}; where none does, remove this: a controller adds its own"
            )
            yield owned.finding(("metadata", "finalizers"), message, is_note=True)


def label_faults(metadata: Json, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the labels and annotations that are refused of an object, or of the template of a pod."""
    for field in ("labels", "annotations"):
        if metadata.get(field) is not None and not isinstance(metadata[field], Mapping):
            yield (*place, field), "must be an object of names and strings"
        for key, value in mapping(metadata.get(field)).items():
            path = (*place, field, str(key))
            wrong = (
                "" if is_open(key) else _key_fault(str(key).lower() if field == "annotations" else str(key))
            )
            if wrong:
                yield path, f"the key {key} {wrong}"
            elif not isinstance(value, str) and value is not None:
                yield path, f'must be a string, got {_json(value)}; write it in quotes, as "{_json(value)}"'
            elif field == "labels" and not is_open(value) and not _fits(value or "", _VALUE, _LONGEST_LABEL):
                yield (
                    path,
                    "the value of a label must be at most 63 letters, digits, hyphens, dots and underscores, "
                    "with a letter or digit at both ends",
                )


_POD_SECURITY = "pod-security.kubernetes.io/"
_LEVELS = ("privileged", "baseline", "restricted")
_MODES = ("enforce", "audit", "warn")


def _pod_security_faults(labels: Json) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what Pod Security Admission refuses (``PolicyToEvaluate``, k8s.io/pod-security-admission/api)."""
    for mode in _MODES:
        for key, form, fitting in (
            (f"{_POD_SECURITY}{mode}", "|".join(_LEVELS), "privileged, baseline or restricted"),
            (
                f"{_POD_SECURITY}{mode}-version",
                r"latest|v1\.(0|[1-9][0-9]*)",
                "latest, or a version as v1.36",
            ),
        ):
            value = labels.get(key)
            if isinstance(value, str) and not (is_open(value) or re.fullmatch(form, value)):
                near = nearest(value, _LEVELS)
                hint = f"; did you mean {near}?" if near else ""
                yield ("metadata", "labels", key), f"must be {fitting}, got {value}{hint}"


def _key_fault(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and not _fits(prefix, _SUBDOMAIN, _LONGEST_SUBDOMAIN):
        return "must have the name of a domain before the /"
    if not _fits(name, _QUALIFIED, _LONGEST_LABEL):
        return (
            "must be at most 63 letters, digits, hyphens, dots and underscores, with a letter or digit at "
            "both ends; the name of a domain and / may come before it"
        )
    return ""


def _json(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# Objects that are too large to be stored.
#
# Sources: ``--max-request-bytes`` of etcd (etcd.io/docs/latest/dev-guide/limit), 1.5 MiB for a request;
# ``TotalAnnotationSizeLimitB`` in ``pkg/api/validation/objectmeta.go`` of k8s.io/apimachinery;
# ``MaxSecretSize`` in ``pkg/apis/core/types.go`` of Kubernetes, which ConfigMaps have too.

ETCD_BYTES = 3 * 512 * 1024
ANNOTATION_BYTES = 256 * 1024
DATA_BYTES = 1024 * 1024


def too_large(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the objects over one of the limits."""
    for owned in platform.objects:
        for path, what, size, limit in _sizes(owned.id, owned.manifest):
            if size > limit:
                message = f"{owned.id}: {what} {size:,} bytes, and Kubernetes takes at most {limit:,}"
                yield owned.finding(path, f"{message}; make it smaller, or split it")


def _sizes(
    object_id: ObjectId, manifest: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], str, int, int]]:
    annotations = mapping_at(manifest, "metadata.annotations")
    total = sum(_bytes(key) + _bytes(value) for key, value in annotations.items())
    yield ("metadata", "annotations"), "its annotations have", total, ANNOTATION_BYTES
    if (object_id.group, object_id.kind) in (("", "ConfigMap"), ("", "Secret")):
        yield ("data",), "its data have", _data_bytes(manifest), DATA_BYTES
    elif _least_bytes(manifest) > ETCD_BYTES:
        size = len(json.dumps(manifest, ensure_ascii=False, separators=(",", ":"), default=str).encode())
        yield (), "it has", size, ETCD_BYTES


def _data_bytes(manifest: Mapping[str, Any]) -> int:
    plain = sum(
        _bytes(value) for field in ("data", "stringData") for value in mapping(manifest.get(field)).values()
    )
    encoded = mapping(manifest.get("binaryData")).values()
    if manifest.get("kind") == "Secret":
        encoded = mapping(manifest.get("data")).values()
        plain = sum(_bytes(value) for value in mapping(manifest.get("stringData")).values())
    return plain + sum(_decoded_bytes(value) for value in encoded)


def _decoded_bytes(value: Any) -> int:
    text = "".join(str(value).split())
    return len(text) * 3 // 4 - text[-2:].count("=")


def _bytes(value: Any) -> int:
    return len(str(value).encode("utf-8", "surrogatepass"))


def _least_bytes(value: Any) -> int:
    """Return the bytes that a value has in any form of storing it: those of its strings."""
    if isinstance(value, str):
        return _bytes(value)
    if isinstance(value, Mapping):
        return sum(map(_least_bytes, value.values()))
    return sum(map(_least_bytes, value)) if isinstance(value, list) else 0
