"""Objects of a platform, with what its rules say: a real API server is asked about each of them, too."""

from __future__ import annotations

from typing import Any

import yaml

from tests.platform.inventories import definition, manifest
from tests.support.built_platforms import deployment

ADMISSION, NETWORK, RBAC = (
    "admissionregistration.k8s.io/v1",
    "networking.k8s.io/v1",
    "rbac.authorization.k8s.io/v1",
)
POD = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1"}]}
RULE = {"rule": "self.a > 1"}


def quota(**hard: str) -> dict[str, Any]:
    return manifest("ResourceQuota", "platform/q", spec={"hard": hard})


def limits(**given: Any) -> dict[str, Any]:
    return manifest("LimitRange", "platform/l", spec={"limits": [{"type": "Container", **given}]})


def priority(value: int, name: str = "high", **rest: Any) -> dict[str, Any]:
    return manifest("PriorityClass", name, "scheduling.k8s.io/v1", value=value, **rest)


def webhook(**given: Any) -> dict[str, Any]:
    whole = {
        "name": "pods.platform.example",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://hooks.example"},
        **given,
    }
    return manifest("ValidatingWebhookConfiguration", "hooks", ADMISSION, webhooks=[whole])


def policy(**rule: Any) -> dict[str, Any]:
    spec = {"podSelector": {"matchLabels": {"app": "a"}}, "ingress": [rule]}
    return manifest("NetworkPolicy", "platform/n", NETWORK, spec=spec)


def cron(**spec: Any) -> dict[str, Any]:
    whole = {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": POD}}}, **spec}
    return manifest("CronJob", "platform/c", "batch/v1", spec=whole)


def things(*rules: dict[str, str]) -> dict[str, Any]:
    part = {"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [*rules]}
    whole = {"type": "object", "properties": {"spec": part}}
    found = definition("Thing")
    found["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": whole}
    return found


def scaler(**values: Any) -> dict[str, Any]:
    """Return a HorizontalPodAutoscaler of a Deployment."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "app", "namespace": "platform"},
        "spec": {"scaleTargetRef": target, **values},
    }


OBJECTS: list[tuple[dict[str, Any], str]] = [
    (quota(cpus="1"), "is nothing that a quota counts; did you mean cpu?"),
    (quota(**{"requests.cpu": "1", "count/jobs.batch": "1", "hugepages-2Mi": "1Gi"}), ""),
    (quota(**{"gold.storageclass.storage.k8s.io/requests.storage": "1Gi"}), ""),
    (limits(default={"cpu": "2"}, max={"cpu": "1"}), "default.cpu: must be at most max, 1, got 2"),
    (limits(defaultRequest={"cpu": "2"}, default={"cpu": "1"}), "must be at most default, 1, got 2"),
    (limits(min={"cpu": "100m"}, max={"cpu": "1"}, default={"cpu": "1"}), ""),
    (scaler(maxReplicas=0), "must be 1 or more, got 0"),
    (scaler(maxReplicas=1), ""),
    (priority(2_000_000_000), "must be at most 1,000,000,000, got 2,000,000,000"),
    (priority(-3_000_000_000), "must be at least -2,147,483,648, got -3,000,000,000"),
    (priority(1_000_000_000), ""),
    (priority(1, "system-mine"), "must not begin with system-"),
    (priority(2_000_001_000, "system-node-critical"), ""),
    (webhook(name="pods.platform"), "must be a domain with at least three parts, got pods.platform"),
    (webhook(sideEffects="Some"), "must be None or NoneOnDryRun, got Some"),
    (webhook(timeoutSeconds=31), "must be 1 to 30, got 31"),
    (webhook(timeoutSeconds=30), ""),
    (policy(ports=[{"port": 90, "endPort": 80}]), "must be at least port, 90, got 80"),
    (policy(ports=[{"port": 80, "endPort": 90}]), ""),
    (policy(**{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}), "make two entries"),
    (
        policy(**{"from": [{"ipBlock": {"cidr": "10.0.0.0/16", "except": ["10.1.0.0/24"]}}]}),
        "except[0]: 10.1.0.0/24 is no part of 10.0.0.0/16",
    ),
    (
        policy(**{"from": [{"ipBlock": {"cidr": "10.0.0.0/16", "except": ["10.0.0.0/16"]}}]}),
        "is no part of",
    ),
    (policy(**{"from": [{"ipBlock": {"cidr": "fd00::/8", "except": ["fd00:1::/32"]}}]}), ""),
    (cron(startingDeadlineSeconds=-1), "must be 0 or more, got -1"),
    (
        manifest("ConfigMap", "platform/c", data={"a": "b"}, binaryData={"a": "Yg=="}),
        "binaryData.a: is a key of data too",
    ),
    (
        manifest("Role", "platform/r", RBAC, rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": []}]),
        "verbs is missing; add at least one",
    ),
    (things(RULE, RULE), "the rule self.a > 1 is here twice"),
    (things(RULE, {"rule": "self.a < 9"}), ""),
]
"""Objects, with what is wrong; ``tests/authority/test_refused_objects.py`` asks a real API server."""


def workload(name: str = "web", container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(deployment(name, **spec))
    found["spec"]["template"]["spec"]["containers"][0] |= container or {}
    return found


def pod(**given: Any) -> dict[str, Any]:
    found = workload()
    found["spec"]["template"]["spec"] |= given
    return found


def ingress(path: str, kind: str) -> dict[str, Any]:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rules = [{"http": {"paths": [{"path": path, "pathType": kind, "backend": backend}]}}]
    return manifest("Ingress", "platform/web", "networking.k8s.io/v1", spec={"rules": rules})


def service(**spec: Any) -> dict[str, Any]:
    return manifest("Service", "platform/web", spec={"ports": [{"port": 80}], **spec})


AGGREGATES = {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}


def aggregated(**given: Any) -> dict[str, Any]:
    return manifest("ClusterRole", "all", RBAC, aggregationRule=AGGREGATES, **given)


TAKEN: list[tuple[dict[str, Any], str]] = [
    (pod(nodeName="aks-system-1"), "aks-system-1 is a node of one cluster"),
    (workload(container={"resources": {"requests": {"cpu": "100M"}}}), "100M is more than any node has"),
    (workload(container={"resources": {"requests": {"cpu": "100m"}}}), ""),
    (workload(container={"securityContext": {"runAsNonRoot": True, "runAsUser": 0}}), "runAsUser is 0"),
    (pod(securityContext={"runAsNonRoot": True, "runAsUser": 1000}), ""),
    (service(clusterIP="10.0.1.2"), "10.0.1.2 is"),
    (service(clusterIP="None"), ""),
    (aggregated(rules=[]), "Flux takes"),
    (aggregated(), ""),
]
"""Objects that the API server takes, with what is said of them."""


def preferred(weight: int) -> dict[str, Any]:
    """Return the affinity of a pod that prefers nodes with a label."""
    term = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    wanted = [{"weight": weight, "preference": term}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wanted}}


HTTP = {"httpGet": {"path": "/", "port": 80}}
INITIAL = {"name": "first", "image": "first:1"}
PODS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/a"}}]},
        {},
        "has emptyDir and hostPath; keep one",
    ),
    ({"volumes": [{"name": "a", "emptyDir": None, "hostPath": {"path": "/a"}}]}, {}, ""),
    ({}, {"livenessProbe": {**HTTP, "successThreshold": 2}}, "must be 1 but of a readinessProbe, got 2"),
    ({}, {"readinessProbe": {**HTTP, "successThreshold": 2}}, ""),
    ({}, {"livenessProbe": {**HTTP, "exec": {"command": ["a"]}}}, "and has exec and httpGet"),
    ({}, {"startupProbe": {"periodSeconds": 5}}, "and has none"),
    ({}, {"livenessProbe": {"tcpSocket": {"port": 70_000}}}, "must be 65535 or less, got 70000"),
    ({}, {"livenessProbe": {"grpc": {"port": 0}}}, "must be 1 or more, got 0"),
    ({}, {"livenessProbe": {"tcpSocket": {"port": 65_535}}}, ""),
    ({"affinity": preferred(101)}, {}, "must be 100 or less, got 101"),
    ({"affinity": preferred(0)}, {}, "must be 1 or more, got 0"),
    ({"affinity": preferred(100)}, {}, ""),
    ({"initContainers": [{**INITIAL, "livenessProbe": HTTP}]}, {}, "an init container has no probes"),
    ({"initContainers": [{**INITIAL, "restartPolicy": "Always", "livenessProbe": HTTP}]}, {}, ""),
    ({"hostNetwork": True}, {"ports": [{"containerPort": 80, "hostPort": 81}]}, "must be containerPort"),
    ({"hostNetwork": True}, {"ports": [{"containerPort": 80, "hostPort": 80}]}, ""),
    ({}, {"ports": [{"containerPort": 80, "hostPort": 81}]}, ""),
    (
        {},
        {"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
        "must not be false where privileged is true",
    ),
    ({}, {"securityContext": {"privileged": True}}, ""),
]
"""Parts of a pod, and of its container, with what the API server refuses."""


def workload_with(pod: dict[str, Any], container: dict[str, Any]) -> dict[str, Any]:
    """Return a Deployment with more in its pod and in its container."""
    workload: dict[str, Any] = yaml.safe_load(deployment())
    spec = workload["spec"]["template"]["spec"]
    spec["containers"][0] |= container
    spec |= pod
    return workload
