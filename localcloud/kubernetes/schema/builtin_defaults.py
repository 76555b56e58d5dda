"""The defaults of built-in kinds, by type.

Source: ``pkg/apis/*/v1/defaults.go`` of Kubernetes. The published OpenAPI documents leave most of them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from localcloud.common.json_copy import copied
from localcloud.kubernetes.schema.definitions import Type
from localcloud.kubernetes.schema.quantities import rounded_up

_CORE = "io.k8s.api.core.v1."
_APPS = "io.k8s.api.apps.v1."
_RBAC = "io.k8s.api.rbac.v1."
_MODE = 0o644
_JOB = {
    "completions": 1,
    "parallelism": 1,
    "backoffLimit": 6,
    "completionMode": "NonIndexed",
    "suspend": False,
    "manualSelector": False,
    "podReplacementPolicy": "TerminatingOrFailed",
}
_ROLLING = {"maxSurge": "25%", "maxUnavailable": "25%"}

CONSTANT: Mapping[str, Mapping[str, Any]] = {
    f"{_CORE}PodSpec": {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
    },
    f"{_CORE}Container": {
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
    f"{_CORE}ContainerPort": {"protocol": "TCP"},
    f"{_CORE}Probe": {
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    },
    f"{_CORE}GRPCAction": {"service": ""},
    f"{_CORE}HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    f"{_CORE}ObjectFieldSelector": {"apiVersion": "v1"},
    f"{_CORE}SecretVolumeSource": {"defaultMode": _MODE},
    f"{_CORE}ConfigMapVolumeSource": {"defaultMode": _MODE},
    f"{_CORE}DownwardAPIVolumeSource": {"defaultMode": _MODE},
    f"{_CORE}ProjectedVolumeSource": {"defaultMode": _MODE},
    f"{_CORE}ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    f"{_CORE}HostPathVolumeSource": {"type": ""},
    f"{_CORE}ServiceSpec": {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
    },
    f"{_CORE}ServicePort": {"protocol": "TCP"},
    f"{_CORE}Secret": {"type": "Opaque"},
    f"{_CORE}PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    f"{_CORE}PersistentVolumeSpec": {"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"},
    f"{_APPS}DeploymentSpec": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "strategy": {"type": "RollingUpdate"},
    },
    f"{_APPS}StatefulSetSpec": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    f"{_APPS}DaemonSetSpec": {
        "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    },
    f"{_APPS}ReplicaSetSpec": {"replicas": 1},
    f"{_RBAC}RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
    f"{_CORE}PodTemplateSpec": {"metadata": {}},
    "io.k8s.api.batch.v1.JobTemplateSpec": {"metadata": {}},
    "io.k8s.api.batch.v1.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    "io.k8s.api.networking.v1.NetworkPolicyPort": {"protocol": "TCP"},
    "io.k8s.api.storage.v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "io.k8s.api.scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec": {
        "conversion": {"strategy": "None"}
    },
}


def _deployment(spec: dict[str, Any]) -> None:
    strategy = spec["strategy"] = {"type": "RollingUpdate", **spec["strategy"]}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {**_ROLLING, **(strategy.get("rollingUpdate") or {})}


def _container(container: dict[str, Any]) -> None:
    image = str(container.get("image") or "")
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    latest = "@" not in image and tag in ("", "latest")
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")


def _pod(spec: dict[str, Any]) -> None:
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])


def _whole_pod(pod: dict[str, Any]) -> None:
    """What a pod has, and the template of one has not: a container asks for as much as it may use."""
    if not isinstance(pod.get("spec"), Mapping):
        return
    spec = pod["spec"] = {"enableServiceLinks": True, **pod["spec"]}
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [_with_requests(container) for container in spec[field]]


def _with_requests(container: Mapping[str, Any]) -> Mapping[str, Any]:
    resources = container.get("resources") or {}
    if not resources.get("limits"):
        return container
    requests = {**resources["limits"], **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}}


def _job(job: dict[str, Any]) -> None:
    """What a job has, and the template of one has not."""
    if isinstance(job.get("spec"), Mapping):
        job["spec"] = {**_JOB, **job["spec"]}


def _port(port: dict[str, Any]) -> None:
    if "port" in port:
        port.setdefault("targetPort", port["port"])


def _subject(subject: dict[str, Any]) -> None:
    if subject.get("kind") in ("User", "Group"):
        subject.setdefault("apiGroup", "rbac.authorization.k8s.io")


def _policy(spec: dict[str, Any]) -> None:
    spec.setdefault("policyTypes", ["Ingress", *(["Egress"] if spec.get("egress") else [])])


def _names(names: dict[str, Any]) -> None:
    if "kind" in names:
        names.setdefault("listKind", f"{names['kind']}List")
        names.setdefault("singular", str(names["kind"]).lower())


DEPENDENT: Mapping[str, Callable[[dict[str, Any]], None]] = {
    f"{_APPS}DeploymentSpec": _deployment,
    f"{_CORE}Container": _container,
    f"{_CORE}Pod": _whole_pod,
    f"{_CORE}PodSpec": _pod,
    "io.k8s.api.batch.v1.Job": _job,
    f"{_CORE}ServicePort": _port,
    f"{_RBAC}Subject": _subject,
    "io.k8s.api.networking.v1.NetworkPolicySpec": _policy,
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames": _names,
}


def with_defaults(kind: Type, value: Any) -> Any:
    """Return a value of a built-in kind with its defaults."""
    if kind.sort == "list" and isinstance(value, list):
        return [with_defaults(kind.item, inner) for inner in value]
    if kind.sort not in ("object", "map") or not isinstance(value, dict):
        return value
    if kind.sort == "map" and kind.item.sort == "quantity":
        return {name: rounded_up(str(inner)) for name, inner in value.items()}
    whole = dict(value)
    for name, default in CONSTANT.get(kind.name, {}).items():
        if whole.get(name) is None:
            whole[name] = copied(default)
    dependent = DEPENDENT.get(kind.name)
    if dependent is not None:
        dependent(whole)
    for name, inner in whole.items():
        below = kind.child(name)
        if below is not None and isinstance(inner, dict | list):
            whole[name] = with_defaults(below, inner)
    return whole
