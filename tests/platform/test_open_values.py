"""A variable whose value nobody here knows may stand for anything, a whole list or object too."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.platform.inventories import manifest
from tests.platform.judged_objects import RBAC, policy, quota, workload_with
from tests.support.built_platforms import NAMESPACE, Platform

OPEN = "${unknown}"
INITIAL = {"name": "first", "image": "first:1", "livenessProbe": {"exec": {"command": ["true"]}}}
VERSION = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
TEMPLATE = {"metadata": {"labels": OPEN}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
ENFORCED = yaml.safe_load(NAMESPACE)
ENFORCED["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}


def definition(name: str, group: str, **version: Any) -> dict[str, Any]:
    names = {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [{**VERSION, **version}]}
    return manifest("CustomResourceDefinition", name, "apiextensions.k8s.io/v1", spec=spec)


def of_kube_system(**spec: Any) -> dict[str, Any]:
    api = "networking.k8s.io/v1"
    return manifest("NetworkPolicy", "kube-system/n", api, spec={"podSelector": {}, **spec})


def service(**spec: Any) -> dict[str, Any]:
    return manifest("Service", "platform/s", spec=spec)


def scaler(kind: str) -> dict[str, Any]:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": ref, "minReplicas": 0, "maxReplicas": 2, "metrics": [{"type": kind}]}
    return manifest("HorizontalPodAutoscaler", "platform/h", "autoscaling/v2", spec=spec)


@pytest.mark.parametrize(
    "objects",
    [
        [manifest("ClusterRole", "r", RBAC, rules=[{"apiGroups": OPEN, "resources": OPEN, "verbs": OPEN}])],
        [
            manifest(
                "ClusterRoleBinding",
                "b",
                RBAC,
                roleRef={"apiGroup": RBAC.partition("/")[0], "kind": OPEN, "name": "r"},
            )
        ],
        [definition(f"things.{OPEN}", "example.com")],
        [definition("things.example.com", OPEN)],
        [definition("things.example.com", "example.com", schema=OPEN)],
        [manifest("StatefulSet", "platform/s", "apps/v1", spec={"selector": OPEN, "template": TEMPLATE})],
        [
            manifest(
                "StatefulSet",
                "platform/s",
                "apps/v1",
                spec={"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE},
            )
        ],
        [service(ports=OPEN)],
        [service(type=OPEN, externalName="a.example")],
        [scaler(OPEN)],
        [manifest("PersistentVolumeClaim", "platform/c", spec={"accessModes": OPEN, "resources": OPEN})],
        [
            manifest(
                "HelmRepository",
                "platform/h",
                "source.toolkit.fluxcd.io/v1",
                spec={"url": "oci://registry.example/charts", "type": OPEN, "interval": "1h"},
            )
        ],
        [workload_with({"initContainers": [{**INITIAL, "restartPolicy": OPEN}]}, {})],
        [workload_with({"hostNetwork": True}, {"ports": [{"containerPort": OPEN, "hostPort": 80}]})],
        [quota(**{"requests.cpu": "2"}), workload_with({}, {"resources": OPEN})],
        [quota(**{"requests.cpu": "2"}), workload_with({}, {"resources": {"requests": OPEN}})],
        [ENFORCED, workload_with({}, {"securityContext": OPEN})],
        [of_kube_system(ingress=OPEN)],
        [of_kube_system(policyTypes=OPEN)],
        [of_kube_system(policyTypes=["Ingress"]), of_kube_system(ingress=OPEN)],
        [policy(ports=OPEN)],
    ],
)
def test_nothing_is_refused_for_what_a_variable_may_bring(objects: list[dict[str, Any]]) -> None:
    assert Platform(NAMESPACE, *map(yaml.safe_dump, objects)).problems == []


def test_a_port_whose_name_is_a_variable_may_be_the_one_that_a_service_names() -> None:
    named = workload_with({}, {"ports": [{"name": OPEN, "containerPort": 80}]})
    found = service(
        selector=named["spec"]["template"]["metadata"]["labels"], ports=[{"port": 80, "targetPort": "http"}]
    )
    assert Platform(NAMESPACE, *map(yaml.safe_dump, (named, found))).notes == []
