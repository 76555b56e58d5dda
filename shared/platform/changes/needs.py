"""What objects need by name: accounts, configuration, claims, Services, roles, issuers, values. A table.

Sources: kubernetes.io, "Configure Service Accounts for Pods", "Pod Priority and Preemption", "ConfigMaps",
"Secrets", "Persistent Volumes", "Ingress", "Using RBAC Authorization", "Dynamic Admission Control";
kustomize-controller ``kustomization_controller.go`` (``checkHealth``, impersonation), helm-controller
``internal/controller/helmrelease_controller.go`` (values); cert-manager.io/docs/concepts/ca-injector;
external-secrets.io/latest/api; gateway-api.sigs.k8s.io/api-types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.resolve.problems import Path
from shared.platform.changes.objects import (
    DEFINITION,
    FLUX,
    HELM,
    KUSTOMIZE,
    NOTIFICATION,
    SOURCE,
    PodTemplate,
    items,
    mapping,
    mapping_at,
    objects_in,
    value_at,
)
from shared.platform.inventory import ObjectId

_RBAC, _STORAGE, _NETWORK = "rbac.authorization.k8s.io", "storage.k8s.io", "networking.k8s.io"
_ADMISSION, _CERTIFICATES, _SECRETS = "admissionregistration.k8s.io", "cert-manager.io", "external-secrets.io"
_GATEWAY = "gateway.networking.k8s.io"
_OF_CLUSTERS = (
    *("PriorityClass", "StorageClass", "PersistentVolume", "IngressClass"),
    "ValidatingAdmissionPolicy",
)
"""Kinds without a namespace, in addition to those whose names begin with Cluster."""


class _Row(NamedTuple):
    """A field that names an object; ``path`` leads to it, ``[]`` stands for each item of a list.

    ``kind`` is the kind of what it names; the fields ``kind``, ``group``, ``apiVersion`` and ``namespace``
    next to it take precedence. ``key`` is what it needs of it where no field says that. ``effect`` is what
    comes of it, where it is not that of the kind. One that ``is_quiet`` is missing without a word: most of
    these objects come from elsewhere.
    """

    path: str
    kind: str = ""
    group: str = ""
    key: str = ""
    effect: str = ""
    is_quiet: bool = False


_OF_PODS = (
    _Row("serviceAccountName", "ServiceAccount"),
    _Row("priorityClassName", "PriorityClass", "scheduling.k8s.io"),
    _Row("imagePullSecrets[].name", "Secret", effect="no image of a private registry is pulled"),
    _Row("volumes[].configMap.name", "ConfigMap"),
    _Row("volumes[].secret.secretName", "Secret"),
    _Row("volumes[].projected.sources[].configMap.name", "ConfigMap"),
    _Row("volumes[].projected.sources[].secret.name", "Secret"),
    _Row("volumes[].persistentVolumeClaim.claimName", "PersistentVolumeClaim"),
    _Row(
        "volumes[].csi.volumeAttributes.secretProviderClass",
        "SecretProviderClass",
        "secrets-store.csi.x-k8s.io",
    ),
    *(
        _Row(f"{containers}[].{field}Ref.name", kind)
        for containers in ("initContainers", "containers")
        for field, kind in (
            ("env[].valueFrom.configMapKey", "ConfigMap"),
            ("env[].valueFrom.secretKey", "Secret"),
            ("envFrom[].configMap", "ConfigMap"),
            ("envFrom[].secret", "Secret"),
        )
    ),
)
_BINDING = (
    _Row("roleRef.name", group=_RBAC, effect="the binding gives no rights"),
    _Row("subjects[].name", effect="the binding gives no rights"),
)
_WEBHOOK = (_Row("webhooks[].clientConfig.service.name", "Service"),)
_SCALER = (_Row("spec.scaleTargetRef.name", "Deployment", "apps", effect="it scales nothing"),)
_ACCOUNT = _Row("spec.serviceAccountName", "ServiceAccount")
_CLASS = "spec.storageClassName"
_ROWS: Mapping[tuple[str, str], tuple[_Row, ...]] = {
    ("apps", "StatefulSet"): (
        _Row(f"spec.volumeClaimTemplates[].{_CLASS}", "StorageClass", _STORAGE),
        _Row("spec.serviceName", "Service", effect="its pods have no names in DNS"),
    ),
    ("", "PersistentVolumeClaim"): (
        _Row(_CLASS, "StorageClass", _STORAGE),
        _Row("spec.volumeName", "PersistentVolume", effect="it stays Pending"),
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): _SCALER,
    ("keda.sh", "ScaledObject"): _SCALER,
    (_RBAC, "RoleBinding"): _BINDING,
    (_RBAC, "ClusterRoleBinding"): _BINDING,
    (_NETWORK, "Ingress"): (
        _Row("spec.ingressClassName", "IngressClass", _NETWORK),
        _Row("spec.defaultBackend.service.name", "Service"),
        _Row("spec.rules[].http.paths[].backend.service.name", "Service"),
        _Row("spec.tls[].secretName", "Secret", effect="its controller serves a certificate of its own"),
        _Row(f"metadata.annotations.{_CERTIFICATES}/issuer", "Issuer", _CERTIFICATES),
        _Row(f"metadata.annotations.{_CERTIFICATES}/cluster-issuer", "ClusterIssuer", _CERTIFICATES),
    ),
    (_GATEWAY, "HTTPRoute"): (
        _Row("spec.parentRefs[].name", "Gateway", _GATEWAY),
        _Row("spec.rules[].backendRefs[].name", "Service"),
    ),
    (_CERTIFICATES, "Certificate"): (_Row("spec.issuerRef.name", "Issuer", _CERTIFICATES),),
    (_SECRETS, "ExternalSecret"): (_Row("spec.secretStoreRef.name", "SecretStore", _SECRETS),),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): (
        _Row("spec.policyName", "ValidatingAdmissionPolicy", _ADMISSION, effect="it refuses nothing"),
    ),
    (_ADMISSION, "ValidatingWebhookConfiguration"): _WEBHOOK,
    (_ADMISSION, "MutatingWebhookConfiguration"): _WEBHOOK,
    ("apiextensions.k8s.io", DEFINITION): (
        _Row("spec.conversion.webhook.clientConfig.service.name", "Service"),
    ),
    ("apiregistration.k8s.io", "APIService"): (_Row("spec.service.name", "Service"),),
    (HELM, "HelmRelease"): (_ACCOUNT, _Row("spec.valuesFrom[].name", key="values.yaml")),
    (KUSTOMIZE, "Kustomization"): (
        _ACCOUNT,
        _Row("spec.postBuild.substituteFrom[].name"),
        _Row("spec.decryption.secretRef.name", "Secret"),
        _Row("spec.healthChecks[].name"),
    ),
    (NOTIFICATION, "Alert"): (_Row("spec.eventSources[].name", effect="nothing is sent"),),
}
_OF_ALL = (_Row(f"metadata.annotations.{_CERTIFICATES}/inject-ca-from", "Certificate", _CERTIFICATES),)
_OF_FLUX = (_Row("spec.secretRef.name", "Secret", is_quiet=True),)
_GROUPS = {"Kustomization": KUSTOMIZE, "HelmRelease": HELM, "GitRepository": SOURCE, "OCIRepository": SOURCE}
"""The groups of the kinds that an Alert names without one."""
_NO_OBJECTS = ("User", "Group")
_EFFECTS = {
    "ServiceAccount": "no pod of it is created",
    "PriorityClass": "no pod of it is created",
    "ConfigMap": "its pods do not start",
    "Secret": "its pods do not start",
    "SecretProviderClass": "its pods do not start",
    "PersistentVolumeClaim": "its pods do not start",
    "StorageClass": "it stays Pending",
    "Service": "nothing answers there",
    "IngressClass": "nothing answers there",
    "Gateway": "nothing comes in by it",
    "Issuer": "it gets no certificate",
    "ClusterIssuer": "it gets no certificate",
    "Certificate": "the API server trusts no answer of it",
    "SecretStore": "it brings no Secret",
    "ClusterSecretStore": "it brings no Secret",
}
ALWAYS_SAID = ((HELM, "HelmRelease"), (KUSTOMIZE, "Kustomization"))
_ASKING = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService", DEFINITION)


@dataclass(frozen=True)
class ObjectNeed:
    """An object that another one needs, with the field that says so, and what comes of it without.

    ``keys`` are what it needs of it: keys of its data, or the name or number of a port.
    """

    path: Path
    id: ObjectId
    effect: str
    keys: tuple[tuple[Path, Any], ...]
    is_quiet: bool


def needs_of(name: ObjectId, manifest: Json) -> Iterator[ObjectNeed]:
    """Yield what an object needs by name; what is optional is not needed."""
    pod = PodTemplate.of(name, manifest)
    of_pod = (pod.path, pod.spec, _OF_PODS) if pod else ((), manifest, ())
    own = (*_ROWS.get(name[:2], ()), *_OF_ALL, *(_OF_FLUX if name.group.endswith(FLUX) else ()))
    for above, part, rows in (of_pod, ((), manifest, own)):
        for row in rows:
            if row.path.startswith("spec.healthChecks") and value_at(manifest, "spec.wait"):
                continue
            if row.path.startswith("spec.tls") and _gets_certificates(manifest):
                continue
            for path, ref in _places(part, row.path, above):
                given = str(ref.get(str(path[-1])) or "")
                wanted = _wanted(row, ref, given, name.namespace)
                is_object = given not in ("", "*") and wanted.kind not in ("", *_NO_OBJECTS)
                if is_object and not ref.get("optional"):
                    effect = row.effect or _effect(name, manifest, path, wanted)
                    yield ObjectNeed(path, wanted, effect, _keys(row, ref, path), row.is_quiet)


def _gets_certificates(ingress: Json) -> bool:
    """Return whether cert-manager, or Azure's application routing, makes the Secrets of an Ingress."""
    marks = mapping_at(ingress, "metadata.annotations")
    return any(_CERTIFICATES in str(mark) or "/tls-" in str(mark) for mark in marks)


def _places(value: Any, rest: str, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the objects with the field that a path leads to, each with the place of that field."""
    prefix = "metadata.annotations."
    if rest.startswith(prefix):
        yield (
            (*path, "metadata", "annotations", rest.removeprefix(prefix)),
            mapping_at(value, prefix[:-1]),
        )
        return
    step, dot, below = rest.partition(".")
    field = step.removesuffix("[]")
    if not dot:
        yield (*path, field), mapping(value)
    elif field == step:
        yield from _places(mapping(value).get(field), below, (*path, field))
    else:
        for number, item in objects_in(mapping(value).get(field)):
            yield from _places(item, below, (*path, field, number))


def _wanted(row: _Row, ref: Mapping[str, Any], given: str, namespace: str) -> ObjectId:
    kind = str(ref.get("kind") or row.kind)
    api = str(ref.get("apiVersion") or "")
    group = str(ref["group"]) if ref.get("group") else api.rpartition("/")[0] if api else row.group
    where, _, name = given.rpartition("/")
    where = where or str(ref.get("namespace") or namespace)
    is_of_cluster = kind in _OF_CLUSTERS or kind.startswith("Cluster")
    return ObjectId(
        group or (_GROUPS.get(kind, "") if not row.kind else ""), kind, "" if is_of_cluster else where, name
    )


def _keys(row: _Row, ref: Mapping[str, Any], path: Path) -> tuple[tuple[Path, Any], ...]:
    """Return what is needed of an object, each with its place."""
    above = path[:-1]
    found: list[tuple[Path, Any]] = [((*above, field), ref.get(field)) for field in ("key", "valuesKey")]
    found += [
        ((*above, "items", number, "key"), item.get("key")) for number, item in objects_in(ref.get("items"))
    ]
    port = ref.get("port")
    if isinstance(port, Mapping):
        found += [((*above, "port", field), port.get(field)) for field in ("name", "number")]
    else:
        found.append(((*above, "port"), port))
    keys = tuple((where, key) for where, key in found if key)
    return keys or (((path, row.key),) if row.key else ())


def asks(name: ObjectId, wanted: ObjectId) -> bool:
    """Return whether the API server asks a Service for the sake of an object."""
    return wanted.kind == "Service" and name.kind in _ASKING


def _effect(name: ObjectId, manifest: Json, path: Path, wanted: ObjectId) -> str:
    if name[:2] in ALWAYS_SAID:
        return f"{name} is never Ready"
    if asks(name, wanted):
        webhooks, number = items(manifest.get("webhooks")), path[1]
        webhook = mapping(webhooks[number]) if webhooks and isinstance(number, int) else {}
        if webhook.get("failurePolicy", "Fail") == "Fail":
            return "what it is asked about is refused on the whole cluster"
        return "it is not asked"
    return _EFFECTS.get(wanted.kind, "it does not work")
