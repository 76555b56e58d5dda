"""A variable whose value nobody here knows may stand for anything, a whole list or object too."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from shared.language.resolve.problems import Path
from tests.platform.inventories import claim, manifest
from tests.platform.judged_objects import NETWORK, OBJECTS, PODS, RBAC, TAKEN, quota, service, workload_with
from tests.support.built_platforms import NAMESPACE, Platform

OPEN = "${unknown}"
VARIABLES = {"postBuild": {"substituteFrom": [{"kind": "Secret", "name": "values", "optional": True}]}}
ENFORCED = yaml.safe_load(NAMESPACE)
ENFORCED["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}
WORKLOAD = yaml.safe_load("""\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: platform}
spec:
  selector: {matchLabels: {app: db}}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  template:
    metadata: {labels: {app: db}}
    spec:
      hostNetwork: true
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      initContainers:
        - {name: first, image: first:1, restartPolicy: Always, livenessProbe: {exec: {command: [a]}}}
      volumes: [{name: free, emptyDir: {}}]
      tolerations: [{key: a, operator: Equal, value: b, effect: NoSchedule}]
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
      containers:
        - name: db
          image: db:1
          ports: [{name: http, containerPort: 80, hostPort: 80}]
          env: [{name: A, value: b}]
          volumeMounts: [{name: free, mountPath: /free}, {name: data, mountPath: /data}]
          livenessProbe: {httpGet: {path: /, port: http}}
          resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: 500m, memory: 1Gi}}
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
""")
REF = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
BOUND = {"apiGroup": RBAC.partition("/")[0], "kind": "ClusterRole", "name": "r"}
SCALES = {"scaleTargetRef": REF, "minReplicas": 0, "maxReplicas": 2, "metrics": [{"type": "External"}]}
CHARTS = {"url": "oci://registry.example/charts", "type": "oci", "interval": "1h"}
VALID: list[dict[str, Any]] = [
    *(given for given, wrong in OBJECTS if not wrong),
    *(workload_with(pod, container) for pod, container, wrong in PODS if not wrong),
    *(given for given, told in TAKEN if not told),
    WORKLOAD,
    claim("platform/c"),
    service(type="NodePort", ports=[{"port": 80, "nodePort": 30080}]),
    service(type="ExternalName", externalName="a.example", ports=None),
    manifest("HorizontalPodAutoscaler", "platform/h", "autoscaling/v2", spec=SCALES),
    manifest("PodDisruptionBudget", "platform/p", "policy/v1", spec={"minAvailable": 1}),
    manifest("HelmRepository", "platform/h", "source.toolkit.fluxcd.io/v1", spec=CHARTS),
    manifest("ClusterRole", "r", RBAC, rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
    manifest("ClusterRoleBinding", "b", RBAC, roleRef=BOUND),
    manifest("NetworkPolicy", "kube-system/n", NETWORK, spec={"podSelector": {}, "ingress": [{}]}),
]
"""Objects that nothing is wrong with."""


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each value, but of what names the object."""
    if path and path[0] not in ("apiVersion", "kind", "metadata"):
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def opened(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield an object with a variable in each place of it."""
    for path in places(whole):
        found: Any = copy.deepcopy(whole)
        at = found
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = OPEN
        yield found


def problems(*objects: dict[str, Any]) -> list[str]:
    return Platform(*map(yaml.safe_dump, objects), spec=VARIABLES).problems


@pytest.mark.parametrize("whole", VALID)
def test_nothing_is_refused_for_what_a_variable_may_bring(whole: dict[str, Any]) -> None:
    for given in (whole, *opened(whole)):
        assert problems(yaml.safe_load(NAMESPACE), given) == [], given


def test_a_restricted_namespace_refuses_nothing_for_what_a_variable_may_bring() -> None:
    fitting = copy.deepcopy(WORKLOAD)
    fitting["spec"]["template"]["spec"] |= {"hostNetwork": False}
    del fitting["spec"]["template"]["spec"]["containers"][0]["ports"][0]["hostPort"]
    del fitting["spec"]["template"]["spec"]["initContainers"]
    for given in (fitting, *opened(fitting)):
        assert problems(ENFORCED, given) == [], given


@pytest.mark.parametrize("resources", [OPEN, {"requests": OPEN}, {"requests": {"cpu": OPEN}}])
def test_a_quota_counts_what_a_variable_may_bring(resources: Any) -> None:
    workload = workload_with({}, {"resources": resources})
    assert problems(yaml.safe_load(NAMESPACE), quota(**{"requests.cpu": "2"}), workload) == []


def test_a_definition_may_have_any_name_that_a_variable_brings() -> None:
    (found,) = (
        given for given, wrong in OBJECTS if given["kind"] == "CustomResourceDefinition" and not wrong
    )
    named = {**found, "metadata": {"name": f"things.{OPEN}"}}
    assert problems(named) == []


def test_a_port_whose_name_is_a_variable_may_be_the_one_that_a_service_names() -> None:
    named = workload_with({}, {"ports": [{"name": OPEN, "containerPort": 80}]})
    labels = named["spec"]["template"]["metadata"]["labels"]
    found = service(selector=labels, ports=[{"port": 80, "targetPort": "http"}])
    assert Platform(NAMESPACE, *map(yaml.safe_dump, (named, found)), spec=VARIABLES).notes == []
