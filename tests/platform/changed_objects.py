"""Changes of objects, with what an API server says of them: a real one is asked about each, too."""

from __future__ import annotations

from typing import Any

from tests.platform.inventories import claim, definition, deployment, manifest, stateful_set

Change = tuple[dict[str, Any], dict[str, Any]]


def job(image: str = "app:1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": image, **spec.pop("container", {})}
    pod = {"restartPolicy": "Never", "containers": [container], **spec.pop("pod", {})}
    template = {"metadata": {"labels": spec.pop("labels", {})}, "spec": pod}
    return manifest("Job", "a/b", "batch/v1", spec={"template": template, **spec})


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


STORAGE = "storage.k8s.io/v1"
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "app:1"}]},
}
DISK: dict[str, Any] = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "csi": {"driver": "disk.csi.azure.com", "volumeHandle": "a"},
}
IGNORED = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}}]}
DEVICES = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "a"}}]}}
OTHER_DEVICES = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "b"}}]}}


CLASS = "devices.requests[gpu].exactly.deviceClassName"


def projected(**token: Any) -> dict[str, Any]:
    return {"name": "v", "projected": {"sources": [{"serviceAccountToken": token}]}}


def probed(path: str = "", **probe: Any) -> dict[str, Any]:
    return {"livenessProbe": {"httpGet": {"port": 80} | ({"path": path} if path else {}), **probe}}


def disrupted(**condition: str) -> dict[str, Any]:
    return {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", **condition}]}]}


def scoped(*scopes: str) -> dict[str, Any]:
    return manifest("ResourceQuota", "a/b", spec={"scopes": [*scopes]})


def selecting(kind: str, **labels: str) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": "a", **labels}}, "template": labelled(**labels)}
    return manifest(kind, "a/b", "apps/v1", spec=spec)


def labelled(**labels: str) -> dict[str, Any]:
    return {**TEMPLATE, "metadata": {"labels": {"app": "a", **labels}}}


def storage(kind: str, name: str = "x.example.com", **rest: Any) -> dict[str, Any]:
    return manifest(kind, name, STORAGE, **rest)


def indexed(**spec: Any) -> dict[str, Any]:
    return job(completions=2, parallelism=2, completionMode="Indexed", **spec)


def volume(zone: str = "", **spec: Any) -> dict[str, Any]:
    term = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    required = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
    return manifest(
        "PersistentVolume", "x", spec={**DISK, **({"nodeAffinity": required} if zone else {}), **spec}
    )


def bound(role: str) -> dict[str, Any]:
    reference = {"apiGroup": "rbac.authorization.k8s.io", **BOUND, "name": role}
    return manifest("ClusterRoleBinding", "x", "rbac.authorization.k8s.io/v1", roleRef=reference)


def scheduling(**rest: Any) -> dict[str, Any]:
    return manifest("PriorityClass", "x", "scheduling.k8s.io/v1", **{"value": 10, **rest})


def devices(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return manifest(kind, "a/b", "resource.k8s.io/v1", spec=spec)


def named(**names: str) -> dict[str, Any]:
    return definition("Backup", spec={"names": {"kind": "Backup", "plural": "backups", **names}})


EVERY_ENTRY: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    *(
        (selecting(kind), selecting(kind, tier="x"), "spec.selector.matchLabels.tier")
        for kind in ("Deployment", "DaemonSet", "ReplicaSet")
    ),
    (
        job(manualSelector=True, selector={"matchLabels": {"app": "a"}}, labels={"app": "a", "tier": "x"}),
        job(manualSelector=True, selector={"matchLabels": {"tier": "x"}}, labels={"app": "a", "tier": "x"}),
        "spec.selector.matchLabels.app",
    ),
    (job(completions=2, parallelism=2), indexed(), "spec.completionMode"),
    (job(), job(podFailurePolicy=IGNORED), "spec.podFailurePolicy"),
    (indexed(), indexed(successPolicy={"rules": [{"succeededCount": 1}]}), "spec.successPolicy"),
    (indexed(), indexed(backoffLimitPerIndex=1), "spec.backoffLimitPerIndex"),
    (job(), job(managedBy="example.com/a"), "spec.managedBy"),
    (volume(), volume(csi={**DISK["csi"], "volumeHandle": "b"}), "spec.csi.volumeHandle"),
    (volume("1"), volume("2"), "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values"),
    (
        manifest("ConfigMap", "a/b", binaryData={"a": "YQ=="}, immutable=True),
        manifest("ConfigMap", "a/b", binaryData={"a": "Yg=="}, immutable=True),
        "binaryData.a",
    ),
    (
        manifest("ConfigMap", "a/b", data={"a": "1"}, immutable=True),
        manifest("ConfigMap", "a/b", data={"a": "1"}),
        "immutable",
    ),
    (
        manifest("Secret", "a/b", data={"a": "YQ=="}, immutable=True),
        manifest("Secret", "a/b", data={"a": "Yg=="}, immutable=True),
        "data.a",
    ),
    (
        manifest("Secret", "a/b", stringData={"a": "1"}, immutable=True),
        manifest("Secret", "a/b", stringData={"a": "2"}, immutable=True),
        "stringData.a",
    ),
    (
        manifest("Secret", "a/b", stringData={"a": "1"}, immutable=True),
        manifest("Secret", "a/b", stringData={"a": "1"}, immutable=False),
        "immutable",
    ),
    (
        manifest("Pod", "a/b", spec=TEMPLATE["spec"]),
        manifest("Pod", "a/b", spec={**TEMPLATE["spec"], "nodeSelector": {"a": "b"}}),
        "spec",
    ),
    *(
        (
            storage("StorageClass", "x", **{"provisioner": "a.example.com", **old}),
            storage("StorageClass", "x", **{"provisioner": "a.example.com", **new}),
            field,
        )
        for old, new, field in (
            ({}, {"provisioner": "b.example.com"}, "provisioner"),
            ({"parameters": {"sku": "a"}}, {"parameters": {"sku": "b"}}, "parameters.sku"),
            ({}, {"volumeBindingMode": "WaitForFirstConsumer"}, "volumeBindingMode"),
        )
    ),
    (
        storage("CSIDriver", spec={"attachRequired": True}),
        storage("CSIDriver", spec={"attachRequired": False}),
        "spec.attachRequired",
    ),
    (
        storage("VolumeAttributesClass", "x", driverName="a.example.com", parameters={"a": "1"}),
        storage("VolumeAttributesClass", "x", driverName="b.example.com", parameters={"a": "1"}),
        "driverName",
    ),
    (
        storage("VolumeAttributesClass", "x", driverName="a.example.com", parameters={"a": "1"}),
        storage("VolumeAttributesClass", "x", driverName="a.example.com", parameters={"a": "2"}),
        "parameters.a",
    ),
    (bound("view"), bound("edit"), "roleRef.name"),
    (scheduling(), scheduling(value=20), "value"),
    (scheduling(), scheduling(preemptionPolicy="Never"), "preemptionPolicy"),
    (
        manifest("IngressClass", "x", "networking.k8s.io/v1", spec={"controller": "example.com/a"}),
        manifest("IngressClass", "x", "networking.k8s.io/v1", spec={"controller": "example.com/b"}),
        "spec.controller",
    ),
    (
        manifest("RuntimeClass", "x", "node.k8s.io/v1", handler="a"),
        manifest("RuntimeClass", "x", "node.k8s.io/v1", handler="b"),
        "handler",
    ),
    (
        manifest("EndpointSlice", "a/b", "discovery.k8s.io/v1", addressType="IPv4", endpoints=[]),
        manifest("EndpointSlice", "a/b", "discovery.k8s.io/v1", addressType="IPv6", endpoints=[]),
        "addressType",
    ),
    (devices("ResourceClaim", DEVICES), devices("ResourceClaim", OTHER_DEVICES), f"spec.{CLASS}"),
    (
        devices("ResourceClaimTemplate", {"spec": DEVICES}),
        devices("ResourceClaimTemplate", {"spec": OTHER_DEVICES}),
        f"spec.spec.{CLASS}",
    ),
    (definition("Backup"), definition("Backup", spec={"group": "other.example.com"}), "spec.group"),
    (named(), named(kind="Other"), "spec.names.kind"),
    (named(), named(plural="others"), "spec.names.plural"),
]
"""A change of each entry of the table that the list after it lacks."""
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
    # A default of pods, and none of their templates (SetDefaults_Pod).
    (job(), job(pod={"enableServiceLinks": True}), "spec.template.spec.enableServiceLinks"),
    (
        job(container={"resources": {"limits": {"cpu": 1}}}),
        job(container={"resources": {"limits": {"cpu": 1}, "requests": {"cpu": "1000m"}}}),
        "spec.template.spec.containers[c].resources.requests",
    ),
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
    (job(), job(container={"tty": False, "stdin": False})),
    (job(container=probed()), job(container=probed("/", initialDelaySeconds=0))),
    (
        job(pod={"volumes": [projected(path="t")]}),
        job(pod={"volumes": [projected(path="t", expirationSeconds=3600)]}),
    ),
    (job(podFailurePolicy=disrupted()), job(podFailurePolicy=disrupted(status="True"))),
    # Two names of one field, and a list in another order.
    (job(pod={"serviceAccountName": "a"}), job(pod={"serviceAccount": "a", "serviceAccountName": "a"})),
    (job(pod={"serviceAccount": "a"}), job(pod={"serviceAccountName": "a"})),
    (of_claim(dataSource=SNAPSHOT), of_claim(dataSourceRef=SNAPSHOT)),
    (scoped("BestEffort", "NotTerminating"), scoped("NotTerminating", "BestEffort")),
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
