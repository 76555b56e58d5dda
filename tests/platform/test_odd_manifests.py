"""No form of a value in a manifest stops the rules, and with them the plan of everybody else."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shared.language.resolve.problems import Path
from shared.platform import rules
from shared.platform.rules import ClusterPlatform, Files, Finding, Rule, findings_of
from shared.platform.rules.placement import room_wanted
from tests.support.built_platforms import Platform
from tests.support.hypothesis_settings import GENERATED

LEVEL = "pod-security.kubernetes.io/enforce"
OBJECTS: list[Any] = [
    *yaml.safe_load_all(f"""\
apiVersion: v1
kind: Namespace
metadata: {{name: a, labels: {{{LEVEL}: restricted}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: a}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      serviceAccountName: web
      securityContext: {{runAsUser: 0, seLinuxOptions: {{type: b}}, sysctls: [{{name: a, value: b}}]}}
      tolerations: [{{operator: Exists, value: a, effect: NoSchedule}}]
      topologySpreadConstraints: [{{maxSkew: 0, whenUnsatisfiable: b, topologyKey: c}}]
      volumes:
        - {{name: c, configMap: {{name: c, items: [{{key: k, path: p}}]}}}}
        - {{name: p, projected: {{sources: [{{secret: {{name: s, items: [{{key: k, path: p}}]}}}}]}}}}
      containers:
        - name: web
          image: web:1
          securityContext: {{capabilities: {{add: [SYS_ADMIN], drop: [ALL]}}, procMount: Default}}
          ports: [{{name: http, containerPort: 80, hostPort: 80}}]
          env: [{{name: E, valueFrom: {{configMapKeyRef: {{name: c, key: k}}}}}}]
          resources: {{limits: {{memory: 1Gi}}, requests: {{memory: 1Mi}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: c, namespace: a, annotations: {{x: y}}}}
data: {{k: v}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: a}}
spec: {{selector: {{app: web}}, ports: [{{name: http, port: 80, targetPort: http}}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: web, namespace: a}}
spec: {{defaultBackend: {{service: {{name: web, port: {{number: 80}}}}}}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: n, namespace: a}}
spec: {{podSelector: {{}}, policyTypes: [Egress], egress: [{{ports: [{{port: 50, endPort: 60}}]}}]}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {{name: q, namespace: a}}
spec: {{hard: {{requests.cpu: 1}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: b}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: api, namespace: b}}
spec:
  replicas: 3
  strategy: {{rollingUpdate: {{maxUnavailable: 25%}}}}
  selector: {{matchLabels: {{app: api}}}}
  template:
    metadata: {{labels: {{app: api}}}}
    spec:
      nodeSelector: {{agentpool: x}}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector: {{matchExpressions: [{{key: app, operator: In, values: [api]}}]}}
      volumes:
        - {{name: d, hostPath: {{path: /var/run/docker.sock}}}}
        - {{name: e, persistentVolumeClaim: {{claimName: c}}}}
      containers: [{{name: api, image: 'api:1', resources: {{requests: {{cpu: 1}}}}}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: c, namespace: b}}
spec: {{accessModes: [ReadWriteOnce], storageClassName: managed}}
---
apiVersion: v1
kind: LimitRange
metadata: {{name: l, namespace: b}}
spec: {{limits: [{{type: Container, min: {{cpu: 2}}, max: {{cpu: 3}}, default: {{cpu: 3}}}}]}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: api, namespace: b}}
spec:
  minReplicas: 0
  maxReplicas: 3
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: api}}
  metrics: [{{type: Resource, resource: {{name: memory, target: {{type: Utilization}}}}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: api, namespace: b}}
spec: {{minAvailable: 3, selector: {{matchLabels: {{app: api}}}}}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {{name: api, namespace: b}}
spec: {{secretName: tls, issuerRef: {{kind: ClusterIssuer, name: i}}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: tls, namespace: b}}
type: kubernetes.io/tls
stringData: {{tls.crt: a}}
---
apiVersion: v1
kind: Service
metadata: {{name: api, namespace: b}}
spec: {{type: NodePort, selector: {{app: api}}, ports: [{{port: 80, nodePort: 30000, protocol: TCP}}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: api, namespace: b, annotations: {{kubernetes.io/ingress.class: n}}}}
spec:
  ingressClassName: n
  rules:
    - host: h
      http:
        paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: api, port: {{number: 80}}}}}}}}]
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: r, namespace: b}}
spec:
  valuesFrom: [{{kind: ConfigMap, name: v, valuesKey: k}}]
  postRenderers: [{{kustomize: {{patches: [{{patch: 'a: b'}}]}}}}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: p}}
value: 1
globalDefault: true
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: w, annotations: {{cert-manager.io/inject-ca-from: b/api}}}}
webhooks: [{{name: a.b.c, sideEffects: None, timeoutSeconds: 5, clientConfig: {{caBundle: Yg==}}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: ts.a.example}}
spec:
  group: a.example
  names: {{kind: T, plural: ts}}
  versions:
    - name: v1
      storage: true
      schema: {{openAPIV3Schema: {{properties: {{a: {{x-kubernetes-validations: [{{rule: 'true'}}]}}}}}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: r}}
aggregationRule: {{clusterRoleSelectors: [{{matchLabels: {{a: b}}}}]}}
rules: [{{apiGroups: [''], resources: [pods], verbs: [get]}}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: m, namespace: b}}
spec:
  podSelector: {{matchLabels: {{a: b}}}}
  ingress:
    - ports: [{{port: 1, endPort: 2}}]
      from: [{{ipBlock: {{cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}}}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {{name: j, namespace: b}}
spec:
  schedule: '@daily'
  startingDeadlineSeconds: 20
  jobTemplate:
    spec:
      template:
        spec:
          hostNetwork: true
          nodeName: n
          restartPolicy: Never
          containers:
            - name: a
              image: a:1
              ports: [{{containerPort: 80, hostPort: 80}}]
              livenessProbe: {{httpGet: {{path: /, port: 80}}, successThreshold: 1}}
              securityContext: {{privileged: true, runAsNonRoot: true, runAsUser: 1}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: t, namespace: b}}
spec: {{tls: [{{secretName: tls, hosts: [h]}}]}}
"""),
]
KUSTOMIZATION: Any = {
    "resources": ["all.yaml"],
    "patches": [{"patch": "[]", "target": {"kind": "Deployment", "name": "x"}}],
    "images": [{"name": "a", "newName": "b"}],
}
NAMED = {("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("metadata", "namespace")}
"""What an object is called by; without it there is none."""
ODD: list[Any] = [
    {"a": 1},
    [1],
    [{"a": []}],
    "x",
    "",
    3,
    True,
    None,
    f"{'9' * 5000}%",
    f"{'9' * 5000} * * * *",
    math.inf,
    math.nan,
]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each value in a document."""
    if path and path not in NAMED:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def look(number: int, path: Path, odd: Any) -> None:
    """Have the rules look at a platform with another value at a place of its object, or its kustomization."""
    documents = copy.deepcopy([*OBJECTS, KUSTOMIZATION])
    at = documents[number]
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = odd
    platform = Platform(yaml.safe_dump_all(documents[:-1]), nodes=1, pools=("y",))
    platform.files["platform/kustomization.yaml"] = yaml.safe_dump(documents[-1])
    room_wanted(platform.platform.inventory)
    found = findings_of(platform.platform, platform.read)
    assert [finding.message for finding in found if "the rule itself failed" in finding.message] == []


PLACES = [(n, path) for n, document in enumerate([*OBJECTS, KUSTOMIZATION]) for path in places(document)]
CONTAINER: Path = ("spec", "template", "spec", "containers", 0)
RULE: Path = ("spec", "egress", 0, "ports", 0)


def test_a_rule_that_fails_is_a_note_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    platform = Platform(yaml.safe_dump_all(OBJECTS))
    before = [finding.message for finding in findings_of(platform.platform, platform.read)]

    def fail(_platform: ClusterPlatform, _files: Files) -> Iterator[Finding]:
        raise RecursionError

    monkeypatch.setattr(rules, "RULES", (Rule(fail, "example.com/rule"), *rules.RULES))
    failed, *others = findings_of(platform.platform, platform.read)
    assert (failed.is_note, failed.file, [finding.message for finding in others]) == (
        True,
        "platform/all.yaml",
        before,
    )
    assert (
        "example.com/rule is not known: the rule itself failed (RecursionError in fail, line"
        in failed.message
    )


@given(st.sampled_from(PLACES), st.sampled_from(ODD))
@GENERATED
def test_no_form_of_a_value_stops_the_rules(place: tuple[int, Path], odd: Any) -> None:
    look(*place, odd)


@pytest.mark.parametrize(
    ("number", "path"),
    [
        (1, (*CONTAINER, "ports", 0, "name")),
        (1, (*CONTAINER, "ports", 0, "containerPort")),
        (1, (*CONTAINER, "env", 0, "valueFrom", "configMapKeyRef", "key")),
        (4, ("spec", "defaultBackend", "service", "port", "number")),
        (5, (*RULE, "port")),
        (8, ("spec", "strategy", "rollingUpdate", "maxUnavailable")),
        (8, ("spec", "selector", "matchLabels")),
        (11, ("spec", "metrics", 0, "type")),
        (13, ("spec", "secretName")),
        (15, ("spec", "ports", 0, "nodePort")),
        (16, ("spec", "rules", 0, "host")),
        (18, ("value",)),
        (19, ("webhooks", 0, "timeoutSeconds")),
        (23, ("spec", "schedule")),
    ],
)
def test_a_value_that_is_compared_may_have_any_form(number: int, path: Path) -> None:
    for odd in ODD:
        look(number, path, odd)
