"""Fields of objects in a platform: what the API server would refuse is refused before the merge."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.support.built_platforms import CHARTS, NAMESPACE, Platform, deployment, release

pytestmark = pytest.mark.lives


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (
            "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget",
            "not served since Kubernetes 1.25; write policy/v1,",
        ),
        (
            "apiVersion: extensions/v1beta1\nkind: Ingress",
            "not served since Kubernetes 1.22; write networking.k8s",
        ),
        ("apiVersion: v1\nkind: Deployment", "there is no Deployment in v1; write apps/v1"),
        ("apiVersion: app/v1\nkind: Deployment", "there is no Deployment in app/v1; write apps/v1"),
        (
            "apiVersion: apps/v1\nkind: Deploymnt",
            "Kubernetes has no kind Deploymnt in apps/v1; did you mean Deployment?",
        ),
        (
            "apiVersion: helm.toolkit.fluxcd.io/v2beta1\nkind: HelmRelease",
            "is not served: its definition has no v2beta1; write helm.toolkit.fluxcd.io/v2",
        ),
        (
            "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy",
            "is served from Kubernetes 1.36 on, and not by 1.34",
        ),
        (
            "apiVersion: networking.k8s.io/v1beta1\nkind: IPAddress",
            "",
        ),
    ],
)
def test_a_kind_that_nothing_serves_is_refused(manifest: str, problem: str) -> None:
    found = Platform(f"{manifest}\nmetadata: {{name: a, namespace: b}}\nspec: {{}}\n").problems
    assert any(problem in text for text in found) if problem else not any("served" in text for text in found)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"replicas": "3"}, 'spec.replicas: must be an integer, got "3"'),
        ({"replica": 3}, "spec.replica: there is no such field; did you mean replicas?"),
        (
            {"strategy": {"type": "Recreat"}},
            "spec.strategy.type: must be Recreate or RollingUpdate, got Recreat",
        ),
        (
            {"template": {"metadata": {"labels": {"app": "other"}}, "spec": {"containers": []}}},
            "does not match",
        ),
        ({"template": None}, "spec.template.spec.containers: a pod needs at least one container"),
        ({"selector": None}, "spec.selector: a selector is needed"),
        ({"paused": "true"}, 'spec.paused: must be true or false, got "true"'),
        ({"replicas": 3, "revisionHistoryLimit": 2}, ""),
    ],
)
def test_fields_are_those_of_the_published_schema(spec: dict[str, Any], problem: str) -> None:
    found = Platform(deployment(**spec)).problems
    assert any(problem in text for text in found) if problem else found == []


def test_a_field_of_a_newer_kubernetes_is_refused_for_an_older_one() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec:\n  hostnameOverride: a\n"
    text += "  containers: [{name: a, image: b}]\n"
    assert Platform(text, kubernetes="1.36").problems == []
    assert Platform(text, kubernetes="1.31").problems == [
        "platform/all.yaml:5:3 spec.hostnameOverride: there is no such field in Kubernetes 1.31; it comes "
        "with 1.34"
    ]


@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [
        ("Namespace", "Apps_Bad", True),
        ("Namespace", "apps.bad", True),
        ("Namespace", "apps-good", False),
        ("Namespace", "a" * 64, True),
        ("ConfigMap", "apps.good", False),
        ("ConfigMap", "Apps", True),
        ("Service", "1st", True),
    ],
)
def test_names_are_those_that_the_api_server_takes(kind: str, name: str, wrong: bool) -> None:
    spec = "\nspec: {ports: [{port: 80}]}" if kind == "Service" else ""
    found = Platform(f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}{spec}\n").problems
    assert bool(found) == wrong
    assert all(text.startswith("platform/all.yaml:4:3 metadata.name: ") for text in found)


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ("labels: {app: ok}", ""),
        ("labels: {app: 'not ok'}", "the value of a label must be"),
        ("labels: {'/app': a}", "must have the name of a domain before the /"),
        ("labels: {app: true}", 'must be a string, got true; write it in quotes, as "true"'),
        ("annotations: {a.b/c: any thing}", ""),
        ("annotations: {a b: c}", "must be at most 63 letters"),
        ("finalizers: [mine]", "mine is no finalizer: it must be a domain, / and a name"),
        ("finalizers: [foregroundDeletion, example.com/mine]", ""),
        ("uid: 0d6f1c1e", "every apply is refused as a conflict"),
        ("resourceVersion: '7'", "every apply is refused as a conflict"),
        ("creationTimestamp: null", ""),
        ("labels: {pod-security.kubernetes.io/enforce: restricted}", ""),
        ("labels: {pod-security.kubernetes.io/enforce: restrictive}", "did you mean restricted?"),
        (
            "labels: {pod-security.kubernetes.io/warn-version: '1.36'}",
            "must be latest, or a version as v1.36",
        ),
        ("labels: {pod-security.kubernetes.io/warn-version: latest}", ""),
    ],
)
def test_labels_and_annotations_are_those_that_the_api_server_takes(metadata: str, problem: str) -> None:
    found = Platform(f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  {metadata}\n").problems
    assert [problem in text for text in found] == ([True] if problem else [])


def test_a_finalizer_in_git_is_a_note() -> None:
    """Report: fluxcd/flux2#2486: a namespace waits for what no controller takes away any more."""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: platform, %s}\n"
    found = Platform(NAMESPACE, text % "finalizers: [example.com/mine]")
    assert found.problems == []
    assert "until a controller takes away example.com/mine" in found.notes[0]
    assert Platform(NAMESPACE, text % "finalizers: []").notes == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("spec: {type: ClusterIP, ports: [{port: 80, nodePort: 30000}]}", "does not go with type ClusterIP"),
        (
            "spec: {ports: [{name: a, port: 80}, {port: 81}]}",
            "name is missing, and a Service with several ports needs it",
        ),
        ("spec: {ports: [{port: 70000}]}", "must be 65535 or less, got 70000"),
        ("spec: {type: NodePort, ports: [{port: 80, nodePort: 8080}]}", "must be 30000 to 32767, got 8080"),
        ("spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}]}", ""),
        ("spec: {type: LoadBalancer, ports: [{port: 80, nodePort: 0}]}", ""),
        ("spec: {selector: {a: b}}", "ports is missing"),
        ("spec: {clusterIP: None, selector: {a: b}}", ""),
        ("spec: {type: ExternalName, externalName: a.example.com}", ""),
        ("spec: {ports: [{port: 80, targetPort: http}]}", ""),
        ("spec: {ports: [{port: 80, targetPort: '8080'}]}", "write it without quotes"),
        ("spec: {ports: [{name: a, port: 80}, {name: b, port: 80}]}", "the port 80 is here twice"),
        ("spec: {ports: [{name: a, port: 53}, {name: b, port: 53, protocol: UDP}]}", ""),
    ],
)
def test_what_the_api_server_always_refuses_is_refused(text: str, problem: str) -> None:
    found = Platform(f"apiVersion: v1\nkind: Service\nmetadata: {{name: a, namespace: b}}\n{text}\n").problems
    assert [problem in text for text in found] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("container", "problem"),
    [
        ("ports: [{containerPort: 80, name: a-name-of-sixteen}]", "must be at most 15"),
        ("ports: [{containerPort: 80, name: http-metrics}]", ""),
        ("readinessProbe: {httpGet: {port: '80'}}", "write it without quotes"),
        ("readinessProbe: {httpGet: {port: 0}}", "must be 1 or more, got 0"),
        ("readinessProbe: {tcpSocket: {port: 65536}}", "must be 65535 or less, got 65536"),
        ("readinessProbe: {httpGet: {port: http}}", "no port of this container is called http"),
        ("{livenessProbe: {tcpSocket: {port: http}}, ports: [{containerPort: 80, name: http}]}", ""),
        ("{startupProbe: {httpGet: {port: http}}, ports: [{containerPort: 80, name: '${port_name}'}]}", ""),
        ("env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", "does not go with"),
        ("env: [{name: A, value: b}, {name: A, value: c}]", "the name A is here twice"),
        ("env: [{name: A, value: ''}, {name: B, value: ''}]", ""),
        (
            "volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /a}]",
            "the mountPath /a is here twice",
        ),
    ],
)
def test_a_container_is_one_that_the_api_server_takes(container: str, problem: str) -> None:
    given = {"name": "web", "image": "web:1", **yaml.safe_load(container)}
    spec = {"containers": [given], "volumes": [{"name": "v", "emptyDir": {}}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    found = Platform(NAMESPACE, deployment(template=template)).problems
    assert [problem in text for text in found] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("image", "right"),
    [
        ("registry.k8s.io/pause", True),
        ("localhost:5000/team/web__api:v1.2_3@sha256:" + "0" * 64, True),
        ("${registry}/web", True),
        ("Registry.k8s.io/pause: 3.10", False),
        ("web:1.2:3", False),
        ("registry.k8s.io/Pause", False),
    ],
)
def test_an_image_has_a_name_that_the_kubelet_takes(image: str, right: bool) -> None:
    spec = {"containers": [{"name": "web", "image": image}]}
    found = Platform(
        NAMESPACE, deployment(template={"metadata": {"labels": {"app": "web"}}, "spec": spec})
    ).problems
    assert ["is no name of an image" in text for text in found] == ([] if right else [True])


@pytest.mark.parametrize(
    ("label", "problem"),
    [("edge team", "the value of a label must be"), (1, "must be a string, got 1"), ("${team}", "")],
)
def test_a_label_of_a_template_is_refused_once(label: object, problem: str) -> None:
    labels = {"app": "web", "team": label}
    spec = {"containers": [{"name": "web", "image": "web:1"}]}
    found = Platform(NAMESPACE, deployment(template={"metadata": {"labels": labels}, "spec": spec})).problems
    assert [problem in text for text in found] == ([True] if problem else [])


IN_B = "metadata: {name: a, namespace: b}"
OF_CPU = "{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1}}}"
SCALED = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}"
GROUP = "subjects: [{kind: Group, name: g, apiGroup: rbac.authorization.k8s.io}]"


@pytest.mark.parametrize(
    ("api", "kind", "text", "problem"),
    [
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            f"spec: {{minReplicas: 2, maxReplicas: 1, {SCALED}}}",
            "at least",
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            f"spec: {{minReplicas: 2, maxReplicas: 2, {SCALED}}}",
            "",
        ),
        ("networking.k8s.io/v1", "Ingress", "spec: {rules: [{host: A_b.example.com}]}", "no name of a host"),
        ("networking.k8s.io/v1", "Ingress", "spec: {rules: [{host: '*.example.com'}]}", ""),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            f"spec: {{minReplicas: 0, maxReplicas: 1, {SCALED}, metrics: [{OF_CPU}]}}",
            "must be at least 1, except by a metric of type Object or External",
        ),
        ("v1", "Secret", "type: kubernetes.io/tls\ndata: {tls.key: ''}", "needs the key tls.crt"),
        ("v1", "Secret", "type: kubernetes.io/tls\ndata: {tls.key: '', tls.crt: ''}", ""),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "spec: {podSelector: {}, egress: [{to: [{ipBlock: {cidr: 10.0.0.0/33}}]}]}",
            "no block of addresses",
        ),
        (
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            f"roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}\n{GROUP}",
            "must be ClusterRole",
        ),
    ],
)
def test_objects_of_many_kinds_are_those_that_the_api_server_takes(
    api: str, kind: str, text: str, problem: str
) -> None:
    found = Platform(f"apiVersion: {api}\nkind: {kind}\n{IN_B}\n{text}\n").problems
    assert [problem in text for text in found] == ([True] if problem else [])


def test_a_secret_that_flux_merges_may_have_its_keys_from_something_else() -> None:
    secret = (
        "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\ndata: {}\nmetadata: {name: a, namespace: b"
    )
    mark = "annotations: {kustomize.toolkit.fluxcd.io/ssa: Merge}"
    assert any("needs the key tls.crt" in text for text in Platform(f"{secret}}}\n").problems)
    assert Platform(f"{secret}, {mark}}}\n").problems == []


@pytest.mark.parametrize(
    ("strategy", "problem"),
    [
        ({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}, "does not go with type Recreate"),
        ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}, "must not be 0"),
        ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, ""),
        ({"rollingUpdate": {"maxUnavailable": 0}}, ""),
    ],
)
def test_a_deployment_can_replace_its_pods(strategy: dict[str, Any], problem: str) -> None:
    found = Platform(NAMESPACE, deployment(strategy=strategy)).problems
    assert [problem in text for text in found] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("schedule", "right"),
    [
        ("0 3 * * 1", True),
        ("*/15 0-6,18 1,15 JAN-JUN MON-FRI", True),
        ("@daily", True),
        ("@every 1h30m", True),
        ("${schedule}", True),
        ("61 * * * *", False),
        ("0 3 * *", False),
        ("0 3 * * 7", False),
        ("0 6-3 * * *", False),
        ("*/0 * * * *", False),
        ("@dayly", False),
    ],
)
def test_a_schedule_is_one_that_the_api_server_reads(schedule: str, right: bool) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1"}]}
    spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    metadata = {"name": "a", "namespace": "b"}
    given = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}
    assert ["is no schedule" in text for text in Platform(yaml.safe_dump(given)).problems] == [True] * (
        not right
    )


@pytest.mark.parametrize(
    ("field", "size", "refused"),
    [
        ("data", 1024 * 1024, False),
        ("data", 1024 * 1024 + 1, True),
        ("annotations", 256 * 1024 - 1, False),
        ("annotations", 256 * 1024, True),
    ],
)
def test_an_object_over_a_limit_is_refused(field: str, size: int, refused: bool) -> None:
    metadata: dict[str, Any] = {"name": "a", "namespace": "b"}
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    (metadata if field == "annotations" else manifest)[field] = {"k": "x" * size}
    assert bool(Platform(json.dumps(manifest)).problems) == refused


@pytest.mark.parametrize(
    ("path", "marks", "problem"),
    [
        ("/", {}, ""),
        ("api", {}, "api is no absolute path; begin it with /"),
        ("/", {"kubernetes.io/ingress.class": "azure-x"}, ""),
        (
            "/",
            {"kubernetes.io/ingress.class": "nginx"},
            "must match spec.ingressClassName, azure-x; remove it",
        ),
    ],
)
def test_an_ingress_is_one_that_the_api_server_takes(path: str, marks: dict[str, str], problem: str) -> None:
    """Report: sourcegraph/deploy-sourcegraph-helm#165."""
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rule = {"http": {"paths": [{"path": path, "pathType": "Prefix", "backend": backend}]}}
    given = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "a", "namespace": "platform", "annotations": marks},
        "spec": {"ingressClassName": "azure-x", "rules": [rule]},
    }
    found = Platform(NAMESPACE, yaml.safe_dump(given)).problems
    assert [problem in text for text in found] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("patch", "is_right"),
    [
        ("- op: remove\n  path: /spec\n", True),
        ("spec:\n  replicas: 1\n", True),
        ("- op: a\n path: [\n", False),
    ],
)
def test_a_patch_of_a_release_is_yaml(patch: str, is_right: bool) -> None:
    renderer = {"kustomize": {"patches": [{"target": {"kind": "Deployment"}, "patch": patch}]}}
    found = Platform(CHARTS, release("web", "podinfo", postRenderers=[renderer])).problems
    assert any("helm-controller renders nothing of this release" in text for text in found) != is_right
