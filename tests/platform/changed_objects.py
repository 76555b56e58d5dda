"""Changes of objects, with what an API server says of them: a real one is asked about each, too."""

from __future__ import annotations

from typing import Any

from tests.platform.inventories import claim, definition, deployment, manifest, stateful_set

Change = tuple[dict[str, Any], dict[str, Any]]


def job(image: str = "app:1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": image, **spec.pop("container", {})}
    pod = {"restartPolicy": "Never", "containers": [container], **spec.pop("pod", {})}
    return manifest("Job", "a/b", "batch/v1", spec={"template": {"spec": pod}, **spec})


def service(**spec: Any) -> dict[str, Any]:
    return manifest("Service", "a/b", spec=spec)


def of_claim(**spec: Any) -> dict[str, Any]:
    return manifest("PersistentVolumeClaim", "a/b", spec=spec)


HEADLESS, LOAD_BALANCER = {"clusterIP": "None"}, {"type": "LoadBalancer"}
QUOTA = manifest("ResourceQuota", "a/b", spec={"hard": {"pods": "10"}})
SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "a"}
DRIVER = manifest("CSIDriver", "x.example.com", "storage.k8s.io/v1", spec={})
BOUND = {"kind": "ClusterRole", "name": "view"}


def replaced(kind: str, **strategy: Any) -> dict[str, Any]:
    """Return a workload with how its pods are replaced; the API server fills in what it lacks."""
    field = "strategy" if kind == "Deployment" else "updateStrategy"
    return manifest(kind, "a/b", "apps/v1", spec={field: strategy} if strategy else {})


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (service(**HEADLESS), service(**LOAD_BALANCER), "spec.clusterIP"),
    (service(**HEADLESS), service(type="NodePort", clusterIP=""), "spec.clusterIP"),
    (
        service(**LOAD_BALANCER),
        service(**LOAD_BALANCER, loadBalancerClass="a/b"),
        "spec.loadBalancerClass",
    ),
    (
        service(**LOAD_BALANCER, loadBalancerClass="a/b"),
        service(**LOAD_BALANCER),
        "spec.loadBalancerClass",
    ),
    (
        service(**LOAD_BALANCER, healthCheckNodePort=31000),
        service(**LOAD_BALANCER, healthCheckNodePort=31001),
        "spec.healthCheckNodePort",
    ),
    (job(completions=2), job(completions=3), "spec.completions"),
    (job(), job(completions=3), "spec.completions"),
    (job(suspend=True, completions=2), job(suspend=True, completions=3), "spec.completions"),
    (job("app:1"), job("app:2"), "spec.template.spec.containers[c].image"),
    (
        job(),
        job(container={"imagePullPolicy": "Always"}),
        "spec.template.spec.containers[c].imagePullPolicy",
    ),
    (of_claim(storageClassName="a"), of_claim(storageClassName="b"), "spec.storageClassName"),
    (of_claim(volumeName="a"), of_claim(), "spec.volumeName"),
    (of_claim(), of_claim(resources={"limits": {"storage": "1Gi"}}), "spec.resources.limits"),
    (QUOTA, {**QUOTA, "spec": {**QUOTA["spec"], "scopes": ["NotBestEffort"]}}, "spec.scopes"),
    (DRIVER, {**DRIVER, "spec": {"volumeLifecycleModes": ["Ephemeral"]}}, "spec.volumeLifecycleModes"),
    (
        manifest("ServiceCIDR", "more", "networking.k8s.io/v1", spec={"cidrs": ["10.9.0.0/24"]}),
        manifest("ServiceCIDR", "more", "networking.k8s.io/v1", spec={"cidrs": ["10.8.0.0/24"]}),
        "spec.cidrs",
    ),
    (
        stateful_set("10Gi"),
        stateful_set("20Gi"),
        "spec.volumeClaimTemplates[data].spec.resources.requests.storage",
    ),
    (stateful_set(), stateful_set(spec={"serviceName": "other"}), "spec.serviceName"),
    (
        stateful_set(),
        stateful_set(spec={"podManagementPolicy": "Parallel"}),
        "spec.podManagementPolicy",
    ),
    (claim("a/b", "10Gi"), claim("a/b", "5Gi"), "spec.resources.requests.storage"),
    (
        manifest("Secret", "a/b", type="Opaque"),
        manifest("Secret", "a/b", type="kubernetes.io/tls"),
        "type",
    ),
    (
        manifest("ConfigMap", "a/b", data={"a": "1"}, immutable=True),
        manifest("ConfigMap", "a/b", data={"a": "2"}, immutable=True),
        "data.a",
    ),
    (
        manifest("Service", "a/b", spec={}),
        manifest("Service", "a/b", spec={"clusterIP": "None"}),
        "spec.clusterIP",
    ),
    (
        manifest("Service", "a/b", spec={"ipFamilies": ["IPv4"]}),
        manifest("Service", "a/b", spec={"ipFamilies": ["IPv6", "IPv4"]}),
        "spec.ipFamilies",
    ),
    (service(), service(ipFamilies=["IPv6"]), "spec.ipFamilies"),
    (
        manifest("RoleBinding", "a/b", "rbac.authorization.k8s.io/v1", roleRef={"name": "view"}),
        manifest("RoleBinding", "a/b", "rbac.authorization.k8s.io/v1", roleRef={"name": "edit"}),
        "roleRef.name",
    ),
    (definition("Backup"), definition("Backup", spec={"scope": "Cluster"}), "spec.scope"),
    (
        definition("Backup", {"v1": "storage"}),
        definition("Backup", {"v2": "storage"}),
        "spec.versions",
    ),
    (
        manifest("StorageClass", "fast", "storage.k8s.io/v1", provisioner="disk.csi.azure.com"),
        manifest(
            "StorageClass",
            "fast",
            "storage.k8s.io/v1",
            provisioner="disk.csi.azure.com",
            reclaimPolicy="Retain",
        ),
        "reclaimPolicy",
    ),
]
"""Each with the field that never changes."""
TAKEN: list[Change] = [
    # A default that somebody writes, or leaves out.
    (job(), job(pod={"dnsPolicy": "ClusterFirst", "securityContext": {}})),
    (job(), job(container={"imagePullPolicy": "IfNotPresent", "resources": {}})),
    (job("app"), job("app", container={"imagePullPolicy": "Always", "ports": []})),
    (
        job(pod={"volumes": [{"name": "v", "configMap": {"name": "x"}}]}),
        job(pod={"volumes": [{"name": "v", "configMap": {"name": "x", "defaultMode": 420}}]}),
    ),
    (
        manifest("ClusterRoleBinding", "a", "rbac.authorization.k8s.io/v1", roleRef=BOUND),
        manifest(
            "ClusterRoleBinding",
            "a",
            "rbac.authorization.k8s.io/v1",
            roleRef={**BOUND, "apiGroup": "rbac.authorization.k8s.io"},
        ),
    ),
    (
        manifest("StorageClass", "a", "storage.k8s.io/v1", provisioner="x"),
        manifest("StorageClass", "a", "storage.k8s.io/v1", provisioner="x", parameters={}),
    ),
    # What the cluster has chosen may be what is written now.
    (of_claim(), of_claim(storageClassName="default")),
    (of_claim(), of_claim(volumeName="pvc-1")),
    (of_claim(dataSource=SNAPSHOT), of_claim(dataSource=SNAPSHOT, dataSourceRef=SNAPSHOT)),
    # A queue says where the pods of a Job run that is suspended.
    (job(suspend=True), job(suspend=False, pod={"nodeSelector": {"a": "b"}})),
    (
        job(completions=2, parallelism=2, completionMode="Indexed"),
        job(completions=3, parallelism=3, completionMode="Indexed"),
    ),
    (service(), service(**LOAD_BALANCER, loadBalancerClass="a/b")),
    (service(**LOAD_BALANCER, loadBalancerClass="a/b"), service(type="ClusterIP")),
    (stateful_set(), stateful_set(spec={"podManagementPolicy": "OrderedReady"})),
    (stateful_set(), stateful_set(spec={"replicas": 3})),
    (claim("a/b", "5Gi"), claim("a/b", "10Gi")),
    (
        manifest("Service", "a/b", spec={"clusterIP": "None"}),
        manifest("Service", "a/b", spec={"type": "ClusterIP"}),
    ),
    (service(ipFamilies=["IPv4"]), service(ipFamilies=["IPv4"], ipFamilyPolicy="PreferDualStack")),
    (service(), service(ipFamilies=["IPv4"])),
    (service(ipFamilies=["IPv4"]), service()),
    (
        manifest("ConfigMap", "a/b", data={"a": "1"}),
        manifest("ConfigMap", "a/b", data={"a": "2"}, immutable=True),
    ),
    (manifest("Secret", "a/b"), manifest("Secret", "a/b", type="Opaque")),
    (definition("Backup", {"v1": "storage"}), definition("Backup", {"v1": "served", "v2": "storage"})),
    (deployment("a/b", "x:1"), deployment("a/b", "x:2")),
]
DEFAULTED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (replaced("Deployment"), replaced("Deployment", type="Recreate"), "spec.strategy.rollingUpdate"),
    (
        replaced("Deployment", type="RollingUpdate"),
        replaced("Deployment", type="Recreate"),
        "spec.strategy.rollingUpdate",
    ),
    (
        replaced("StatefulSet"),
        replaced("StatefulSet", type="OnDelete"),
        "spec.updateStrategy.rollingUpdate",
    ),
    (replaced("Deployment", rollingUpdate={"maxSurge": 1}), replaced("Deployment", type="Recreate"), ""),
    (replaced("Deployment", type="Recreate"), replaced("Deployment"), ""),
    (replaced("DaemonSet"), replaced("DaemonSet", type="OnDelete"), ""),
]
"""Each with the field that Kubernetes has filled in and that has no place any more, "" for none."""
