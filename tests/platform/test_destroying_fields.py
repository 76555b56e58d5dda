"""Fields that differ and destroy: what a change of one does on a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from shared.platform.changes.effects import Cause, Fate
from shared.platform.changes.guards import judge
from tests.platform.effects import change_of, effects, found
from tests.platform.inventories import (
    claim,
    definition,
    deployment,
    inventory,
    manifest,
    owner,
    release,
    stateful_set,
)


def job(image: str = "app:1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": image, **spec.pop("container", {})}
    pod = {"restartPolicy": "Never", "containers": [container], **spec.pop("pod", {})}
    return manifest("Job", "a/b", "batch/v1", spec={"template": {"spec": pod}, **spec})


def service(**spec: Any) -> dict[str, Any]:
    return manifest("Service", "a/b", spec=spec)


def of_claim(**spec: Any) -> dict[str, Any]:
    return manifest("PersistentVolumeClaim", "a/b", spec=spec)


def projected(**token: Any) -> dict[str, Any]:
    return {"name": "v", "projected": {"sources": [{"serviceAccountToken": token}]}}


HEADLESS, LOAD_BALANCER = {"clusterIP": "None"}, {"type": "LoadBalancer"}
QUOTA = manifest("ResourceQuota", "a/b", spec={"hard": {"pods": "10"}})
DRIVER = manifest("CSIDriver", "x.example.com", "storage.k8s.io/v1", spec={})
BOUND = {"kind": "ClusterRole", "name": "view"}


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
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
    ],
)
def test_a_field_that_never_changes_stops_the_path_or_with_force_makes_the_object_again(
    old: dict[str, Any], new: dict[str, Any], field: str
) -> None:
    stuck = change_of(old, new)
    assert (stuck.effect, stuck.cause, stuck.detail) == (Fate.STUCK, Cause.FIXED_FIELD, field)
    assert change_of(old, new, force=True).effect is Fate.RECREATED
    for which in (old, new):
        which["metadata"]["annotations"] = {"kustomize.toolkit.fluxcd.io/force": "Enabled"}
    assert change_of(old, new).effect is Fate.RECREATED


@pytest.mark.parametrize(
    ("old", "new"),
    [
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
        (
            job(container={"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}),
            job(
                container={"resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "1000m"}}}
            ),
        ),
        (job(), job(pod={"enableServiceLinks": True}, container={"tty": False, "stdin": False})),
        (
            job(container={"livenessProbe": {"httpGet": {"port": 80}}}),
            job(
                container={"livenessProbe": {"httpGet": {"port": 80, "path": "/"}, "initialDelaySeconds": 0}}
            ),
        ),
        (
            job(pod={"volumes": [projected(path="t")]}),
            job(pod={"volumes": [projected(path="t", expirationSeconds=3600)]}),
        ),
        (
            job(podFailurePolicy={"rules": [{"onPodConditions": [{"type": "DisruptionTarget"}]}]}),
            job(
                podFailurePolicy={
                    "rules": [{"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
                }
            ),
        ),
        # Two names of one field, and a list in another order.
        (job(pod={"serviceAccountName": "a"}), job(pod={"serviceAccount": "a", "serviceAccountName": "a"})),
        (job(pod={"serviceAccount": "a"}), job(pod={"serviceAccountName": "a"})),
        (
            of_claim(dataSource={"kind": "VolumeSnapshot", "name": "a"}),
            of_claim(dataSourceRef={"kind": "VolumeSnapshot", "name": "a"}),
        ),
        (
            {**QUOTA, "spec": {"scopes": ["BestEffort", "NotTerminating"]}},
            {**QUOTA, "spec": {"scopes": ["NotTerminating", "BestEffort"]}},
        ),
        # What the cluster has chosen may be what is written now.
        (of_claim(), of_claim(storageClassName="default")),
        (of_claim(), of_claim(volumeName="pvc-1")),
        (
            of_claim(dataSource={"kind": "VolumeSnapshot", "name": "a"}),
            of_claim(
                dataSource={"kind": "VolumeSnapshot", "name": "a"},
                dataSourceRef={"kind": "VolumeSnapshot", "name": "a"},
            ),
        ),
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
        (
            manifest("Service", "a/b", spec={"ipFamilies": ["IPv4"]}),
            manifest("Service", "a/b", spec={"ipFamilies": ["IPv4", "IPv6"]}),
        ),
        (
            manifest("Service", "a/b", spec={}),
            manifest("Service", "a/b", spec={"ipFamilies": ["IPv6"]}),
        ),
        (
            manifest("ConfigMap", "a/b", data={"a": "1"}),
            manifest("ConfigMap", "a/b", data={"a": "2"}, immutable=True),
        ),
        (manifest("Secret", "a/b"), manifest("Secret", "a/b", type="Opaque")),
        (definition("Backup", {"v1": "storage"}), definition("Backup", {"v1": "served", "v2": "storage"})),
        (deployment("a/b", "x:1"), deployment("a/b", "x:2")),
    ],
)
def test_what_the_api_server_accepts_is_a_plain_change_with_force_too(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert change_of(old, new, force=True).effect is Fate.CHANGED


@pytest.mark.parametrize(
    ("of_spec", "of_region", "counts"),
    [
        ("", "self == oldSelf", True),
        ("self.region == oldSelf.region", "", True),
        ("!has(oldSelf.region) || has(self.region) && self.region == oldSelf.region", "", True),
        ("!has(oldSelf.region) || (self.region == oldSelf.region)", "", True),
        ("self.mode == 'free' || self.region == oldSelf.region", "", False),
        ("!has(oldSelf.locked) || self.region == oldSelf.region", "", False),
        ("self.region >= oldSelf.region", "", False),
    ],
)
def test_a_definitions_own_rule_counts_for_the_objects_of_its_kind(
    of_spec: str, of_region: str, counts: bool
) -> None:
    rules = [[{"rule": rule}] if rule else [] for rule in (of_spec, of_region)]
    region = {"x-kubernetes-validations": rules[1], "type": "string"}
    spec = {"x-kubernetes-validations": rules[0], "properties": {"region": region}}
    schema = {"openAPIV3Schema": {"properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    known = definition("Backup", spec={"versions": [version]})
    old, new = (
        manifest("Backup", "a/b", "data.example.com/v1", spec={"region": region}) for region in ("a", "b")
    )
    before, after = inventory(owner("p", known, old)), inventory(owner("p", known, new))
    assert found(before, after)["Backup a/b"].detail == ("spec.region" if counts else "")


def replaced(kind: str, **strategy: Any) -> dict[str, Any]:
    """Return a workload with how its pods are replaced; the API server fills in what it lacks."""
    field = "strategy" if kind == "Deployment" else "updateStrategy"
    return manifest(kind, "a/b", "apps/v1", spec={field: strategy} if strategy else {})


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
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
        (
            {**replaced("StatefulSet"), "apiVersion": "apps.kruise.io/v1beta1"},
            {**replaced("StatefulSet", type="OnDelete"), "apiVersion": "apps.kruise.io/v1beta1"},
            "",
        ),
    ],
)
def test_what_kubernetes_has_filled_in_stays_when_it_has_no_place_any_more(
    old: dict[str, Any], new: dict[str, Any], field: str
) -> None:
    """Reports: kubernetes/kubernetes#24198, gimlet-io/onechart#35. A real API server refuses each."""
    known = change_of(old, new)
    expected = (Fate.STUCK, Cause.DEFAULTED) if field else (Fate.CHANGED, Cause.NONE)
    assert ((known.effect, known.cause), known.detail) == (expected, field)
    if field:
        assert change_of(old, new, force=True).effect is Fate.RECREATED
        written = change_of(old, replaced(old["kind"], rollingUpdate={"maxUnavailable": 1}))
        assert written.effect is Fate.CHANGED
        (guard,) = judge(inventory(owner("p", old)), inventory(owner("p", new)), 20).guards
        assert f"Kubernetes has filled in {field} of {old['kind']} a/b" in guard.cause
        assert guard.remedy.startswith(f"first commit {field} as the clusters have it")


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ({}, {"releaseName": "other"}, "spec.releaseName"),
        ({}, {"targetNamespace": "other"}, "spec.targetNamespace"),
        ({}, {"storageNamespace": "other"}, "spec.storageNamespace"),
        ({"targetNamespace": "b"}, {"targetNamespace": "c", "releaseName": "b-x"}, "spec.targetNamespace"),
        ({}, {"releaseName": "x"}, ""),
        ({}, {"targetNamespace": "a", "releaseName": "x", "storageNamespace": "a"}, ""),
        ({}, {"values": {"replicas": 2}}, ""),
    ],
)
def test_a_release_with_another_target_is_uninstalled(
    old: dict[str, Any], new: dict[str, Any], field: str
) -> None:
    change = change_of(release("a/x", **old), release("a/x", **new))
    assert change.effect is (Fate.UNINSTALLED if field else Fate.CHANGED)
    assert change.detail == field


def test_a_release_that_is_suspended_is_not_uninstalled() -> None:
    rest = deployment("a/c")
    before = inventory(owner("p", release("a/x", suspend=True), rest))
    assert effects(before, inventory(owner("p", rest)))["HelmRelease a/x"] == (
        Fate.KEPT,
        Cause.SUSPENDED,
    )


def test_fewer_replicas_delete_claims_where_the_policy_says_so() -> None:
    old, new = (stateful_set(claims="Delete", spec={"replicas": number}) for number in (3, 1))
    assert change_of(old, new).effect is Fate.SHRUNK
    assert change_of(new, old).effect is Fate.CHANGED


def test_a_version_that_is_not_served_any_more_is_named() -> None:
    change = change_of(
        definition("Backup", {"v1": "served", "v2": "storage"}),
        definition("Backup", {"v1": "unserved", "v2": "storage"}),
    )
    assert (change.effect, change.cause, change.detail) == (Fate.CHANGED, Cause.UNSERVED, "v1")
