"""What objects need by name is there: accounts, configuration, claims, Services, roles, issuers, values.

The API server takes a workload whose account or ConfigMap is missing; its pods never start. Sources:
kubernetes.io, "Configure Service Accounts for Pods", "Pod Priority and Preemption", "ConfigMaps", "Secrets",
"Persistent Volumes", "Ingress", "Using RBAC Authorization", "Dynamic Admission Control"; the classes that AKS
has: learn.microsoft.com/azure/aks/concepts-storage; kustomize-controller ``kustomization_controller.go``
(``checkHealth``, impersonation), helm-controller ``internal/controller/helmrelease_controller.go`` (values);
cert-manager.io/docs/concepts/ca-injector; external-secrets.io/latest/api; gateway-api.sigs.k8s.io/api-types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.kubernetes.flux_objects import NAMESPACE
from shared.language.resolve.problems import Path
from shared.platform.changes.objects import mapping_at, value_at
from shared.platform.inventory import ObjectId
from shared.platform.rules.finding import (
    DEFINITION,
    FLUX,
    HELM,
    KUSTOMIZE,
    SOURCE,
    ClusterPlatform,
    Finding,
    PodTemplate,
    is_open,
    items,
    mapping,
    objects_in,
    texts_in,
)
from shared.platform.rules.references import NOTIFICATION, meant

_RBAC, _STORAGE, _NETWORK = "rbac.authorization.k8s.io", "storage.k8s.io", "networking.k8s.io"
_ADMISSION, _CERTIFICATES, _SECRETS = "admissionregistration.k8s.io", "cert-manager.io", "external-secrets.io"
_GATEWAY = "gateway.networking.k8s.io"
_KNOWN_GROUPS = ("", "apps", "batch", "autoscaling", "policy", _NETWORK, _RBAC, _STORAGE, _GATEWAY)
_OF_CLUSTERS = (
    *("PriorityClass", "StorageClass", "PersistentVolume", "IngressClass"),
    "ValidatingAdmissionPolicy",
)
"""Kinds without a namespace, in addition to those whose names begin with Cluster."""


class _Row(NamedTuple):
    """A field that names an object; ``path`` leads to it, ``[]`` stands for each item of a list.

    ``kind`` is the kind of what it names; the fields ``kind``, ``group``, ``apiVersion`` and ``namespace``
    next to it take precedence. ``key`` is what it needs of it where no field says that. ``effect`` is what
    comes of it, where it is not that of the kind.
    """

    path: str
    kind: str = ""
    group: str = ""
    key: str = ""
    effect: str = ""


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
_FILLED = ("Merge", "IfNotPresent")
"""The values of Flux's annotation ``ssa`` of an object that others may write."""
_SURE = ("ServiceAccount", "PriorityClass", "ConfigMap", "PersistentVolumeClaim")
"""Kinds of which a name that is a slip of another one is a fault; many things create the others."""
_ALWAYS_SAID = ((HELM, "HelmRelease"), (KUSTOMIZE, "Kustomization"))
_ASKING = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService", DEFINITION)


@dataclass(frozen=True)
class _Need:
    """An object that another one needs, with the field that says so, and what comes of it without.

    ``keys`` are what it needs of it: keys of its data, or the name or number of a port.
    """

    path: Path
    id: ObjectId
    effect: str
    keys: tuple[tuple[Path, Any], ...]


def missing_objects(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield what objects need and nothing defines: faults where that is certain, notes otherwise.

    What a chart or another controller brings is not known. So nothing is said of a name where there are
    charts, unless it is nearly one that is there, or Flux itself or the API server needs it; nor of one that
    an object of another kind has, such as the Secret of an ExternalSecret.
    """
    is_certain = platform.is_sure
    own = {owned.id.name for owned in platform.of_kind("", "Namespace")}
    elsewhere = {
        text
        for owned in platform.objects
        if owned.id.group not in _KNOWN_GROUPS and not owned.id.group.endswith(FLUX)
        for text in texts_in(owned.manifest)
    }
    for name, manifest, file in _referring(platform):
        for need in _needs(name, manifest):
            wanted = need.id
            if any(map(is_open, (wanted.name, wanted.namespace))) or _is_always_there(wanted):
                continue
            is_elsewhere = wanted.name in elsewhere and wanted.group in _KNOWN_GROUPS
            if wanted in platform.known:
                found = platform.known[wanted]
                for path, key in () if is_elsewhere and wanted.kind != "Service" else need.keys:
                    if found is not None and not (is_open(key) or _has(found.manifest, key)):
                        what = "port" if wanted.kind == "Service" else "key"
                        message = f"{wanted} has no {what} {key}, so {need.effect}"
                        yield Finding(file, name, path, message)
                continue
            near, hint = meant(wanted, platform)
            is_fault = bool(near) and is_certain and wanted.kind in _SURE
            is_ours = wanted.namespace in own or wanted.group.endswith(FLUX)
            is_said = bool(near) or (is_certain and (is_ours or not wanted.namespace))
            if _asks(name, wanted):
                is_said, is_fault = True, is_certain and "it is not asked" not in need.effect
            elif name[:2] in _ALWAYS_SAID and (
                wanted.kind != "ServiceAccount" or wanted.namespace == NAMESPACE
            ):
                is_sure = wanted.group in (HELM, KUSTOMIZE) and platform.is_whole
                is_said, is_fault = True, is_sure or (bool(near) and wanted.kind == "ConfigMap")
            elif is_elsewhere:
                continue
            if is_said:
                message = f"nothing here defines {wanted}, and without it {need.effect}"
                hint = hint or "; add it, or correct the name, unless something else creates it"
                yield Finding(file, name, need.path, message + hint, is_note=not is_fault)


def _referring(platform: ClusterPlatform) -> Iterator[tuple[ObjectId, Json, str]]:
    """Yield all objects, and the Kustomizations of the manifest of the cluster, each with its file."""
    for owned in platform.objects:
        yield owned.id, owned.manifest, owned.file
    built_here = {owned.id for owned in platform.objects}
    for owner in platform.inventory.owners.values():
        if owner.id not in built_here:
            yield owner.id, {"spec": owner.spec}, owner.file


def _needs(name: ObjectId, manifest: Json) -> Iterator[_Need]:
    pod = PodTemplate.of(name, manifest)
    of_pod = (pod.path, pod.spec, _OF_PODS) if pod else ((), manifest, ())
    for above, part, rows in (of_pod, ((), manifest, (*_ROWS.get(name[:2], ()), *_OF_ALL))):
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
                    yield _Need(path, wanted, effect, _keys(row, ref, path))


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


def _asks(name: ObjectId, wanted: ObjectId) -> bool:
    """Return whether the API server asks a Service for the sake of an object."""
    return wanted.kind == "Service" and name.kind in _ASKING


def _effect(name: ObjectId, manifest: Json, path: Path, wanted: ObjectId) -> str:
    if name[:2] in _ALWAYS_SAID:
        return f"{name} is never Ready"
    if _asks(name, wanted):
        webhooks, number = items(manifest.get("webhooks")), path[1]
        webhook = mapping(webhooks[number]) if webhooks and isinstance(number, int) else {}
        if webhook.get("failurePolicy", "Fail") == "Fail":
            return "what it is asked about is refused on the whole cluster"
        return "it is not asked"
    return _EFFECTS.get(wanted.kind, "it does not work")


def _has(manifest: Json, key: Any) -> bool:
    """Return whether a ConfigMap, or a Secret, has a key, or a Service a port; True where others fill it.

    ingress-nginx takes the ``targetPort`` too (``internal/ingress/controller``, ``serviceEndpoints``).
    """
    if manifest.get("kind") == "Service":
        ports = [port for _, port in objects_in(value_at(manifest, "spec.ports"))]
        named = [[port.get(field) for field in ("name", "port", "targetPort")] for port in ports]
        return not ports or any(key in names or any(map(is_open, names)) for names in named)
    data = [mapping(manifest.get(field)) for field in ("data", "binaryData", "stringData")]
    marks = mapping_at(manifest, "metadata.annotations")
    filled = any(mark in _FILLED for mark in marks.values())
    if filled or manifest.get("type") == "kubernetes.io/service-account-token" or not any(data):
        return True
    return not isinstance(key, str) or any(key in part for part in data)


def _is_always_there(wanted: ObjectId) -> bool:
    """Return whether Kubernetes, AKS or Flux itself brings an object to each cluster."""
    name = wanted.name
    match wanted.kind:
        case "ServiceAccount":
            return name == "default" or (wanted.namespace == NAMESPACE and name.endswith("-controller"))
        case "PriorityClass":
            return name.startswith("system-")
        case "ConfigMap":
            return name == "kube-root-ca.crt"
        case "ClusterRole":
            return name in ("cluster-admin", "admin", "edit", "view") or name.startswith(("system:", "flux-"))
        case "IngressClass":
            return name.startswith(("webapprouting", "azure-"))
        case "StorageClass":
            return name in ("default", "managed") or name.startswith(("managed-", "azurefile", "azureblob-"))
    return False
