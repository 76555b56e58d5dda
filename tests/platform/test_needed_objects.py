"""What an object needs by name and nothing defines: a fault where that is certain, or else a note."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from shared.platform.rules.needed_objects import missing_objects
from tests.platform.inventories import release
from tests.support.built_platforms import CERTIFICATES, Platform, calls_of, deployment

THERE = """\
apiVersion: v1
kind: Namespace
metadata: {name: platform}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: deployer, namespace: platform}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: platform}
data: {mode: a}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: filled, namespace: platform}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: important}
value: 1000
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: platform}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8081}]}
---
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: anything, namespace: platform}
spec: {target: {name: from-vault}}
"""


def platform_with(pod: dict[str, Any], *more: dict[str, Any], **container: Any) -> Platform:
    """Return a platform with what is there, and a workload whose pod, or container, has more."""
    workload = yaml.safe_load(deployment())
    spec = workload["spec"]["template"]["spec"]
    spec["containers"][0] |= container
    spec |= pod
    objects = [yaml.safe_dump(given) for given in (workload, *more)]
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "externalsecrets.external-secrets.io"},
        "spec": {
            "group": "external-secrets.io",
            "names": {"kind": "ExternalSecret", "plural": "externalsecrets"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
            ],
        },
    }
    return Platform(THERE, yaml.safe_dump(definition), *objects)


def volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


@pytest.mark.parametrize(
    ("pod", "problem", "note"),
    [
        ({"serviceAccountName": "deployer"}, "", ""),
        ({"serviceAccountName": "default"}, "", ""),
        ({"serviceAccountName": "deplyer"}, "did you mean deployer?", ""),
        (
            {"serviceAccountName": "other"},
            "",
            "ServiceAccount platform/other, and without it no pod of it is created",
        ),
        ({"serviceAccountName": "${account}"}, "", ""),
        ({"priorityClassName": "imporant"}, "did you mean important?", ""),
        ({"priorityClassName": "system-node-critical"}, "", ""),
        (volume(configMap={"name": "setings"}), "did you mean settings?", ""),
        (volume(configMap={"name": "setings", "optional": True}), "", ""),
        (
            volume(configMap={"name": "settings", "items": [{"key": "mod", "path": "a"}]}),
            "has no key mod",
            "",
        ),
        (volume(configMap={"name": "filled", "items": [{"key": "any", "path": "a"}]}), "", ""),
        (volume(configMap={"name": "kube-root-ca.crt"}), "", ""),
        (volume(secret={"secretName": "from-vault"}), "", ""),
        (
            volume(secret={"secretName": "nowhere"}),
            "",
            "Secret platform/nowhere, and without it its pods do not start",
        ),
        (volume(persistentVolumeClaim={"claimName": "data"}), "", "PersistentVolumeClaim platform/data"),
        (volume(projected={"sources": [{"configMap": {"name": "setings"}}]}), "did you mean settings?", ""),
    ],
)
def test_what_a_pod_needs_is_there(pod: dict[str, Any], problem: str, note: str) -> None:
    platform = platform_with(pod)
    assert [bool(platform.problems), bool(platform.notes)] == [bool(problem), bool(note)]
    assert not problem or problem in platform.problems[0]
    assert not note or note in platform.notes[0]


def test_variables_of_a_container_have_their_keys() -> None:
    given = {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "Mode"}}}
    (problem,) = platform_with({}, env=[given]).problems
    assert "ConfigMap platform/settings has no key Mode, so its pods do not start" in problem
    (problem,) = platform_with({}, envFrom=[{"configMapRef": {"name": "setings"}}]).problems
    assert "envFrom[0].configMapRef.name" in problem


def secret(**more: Any) -> dict[str, Any]:
    return of("Secret", "v1", stringData={"one": "a"}, **more)


@pytest.mark.parametrize(
    ("name", "strategy", "problems"),
    [("it", "Override", 1), ("it", "IfNotPresent", 0), ("it", "Merge", 0), ("from-vault", "Override", 0)],
)
def test_a_key_that_something_else_may_add_is_not_missing(name: str, strategy: str, problems: int) -> None:
    given = secret()
    given["metadata"] |= {"name": name, "annotations": {"kustomize.toolkit.fluxcd.io/ssa": strategy}}
    wanted = {"name": "TWO", "valueFrom": {"secretKeyRef": {"name": name, "key": "two"}}}
    found = [text for text in platform_with({}, given, env=[wanted]).problems if "has no key" in text]
    assert len(found) == problems


def of(kind: str, api: str, spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    metadata = {"name": "it", "namespace": "platform"}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **({"spec": spec} if spec else {}), **more}


def ingress(name: str, port: int) -> dict[str, Any]:
    backend = {"service": {"name": name, "port": {"number": port}}}
    return of("Ingress", "networking.k8s.io/v1", {"defaultBackend": backend})


def scaler(name: str) -> dict[str, Any]:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return of("HorizontalPodAutoscaler", "autoscaling/v2", {"scaleTargetRef": ref, "maxReplicas": 3})


def binding(kind: str, name: str, *accounts: str) -> dict[str, Any]:
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": "platform"} for account in accounts]
    return of("RoleBinding", "rbac.authorization.k8s.io/v1", roleRef=ref, subjects=subjects)


def service(selector: dict[str, str], target: str | int) -> dict[str, Any]:
    return of("Service", "v1", {"selector": selector, "ports": [{"port": 80, "targetPort": target}]})


def budget(selector: dict[str, str]) -> dict[str, Any]:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": selector}}
    return of("PodDisruptionBudget", "policy/v1", spec)


def claim(storage: str) -> dict[str, Any]:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": resources, "storageClassName": storage}
    return of("PersistentVolumeClaim", "v1", spec)


@pytest.mark.parametrize(
    ("given", "problem", "note"),
    [
        (ingress("web", 80), "", ""),
        (ingress("web", 8080), "Service platform/web has no port 8080, so nothing answers there", ""),
        (ingress("web", 8081), "", ""),
        (ingress("other", 80), "", "Service platform/other, and without it nothing answers there"),
        (binding("ClusterRole", "edit"), "", ""),
        (binding("Role", "deploy"), "", "Role platform/deploy, and without it the binding gives no rights"),
        (binding("ClusterRole", "edit", "deployer"), "", ""),
        (binding("ClusterRole", "edit", "deplyer"), "did you mean deployer?", ""),
        (of("Ingress", "networking.k8s.io/v1", {"ingressClassName": "ngnix"}), "", "IngressClass ngnix"),
        (service({"app": "web"}, "http"), "", "no port of the pods that this selects is called http"),
        (service({"app": "web"}, 8080), "", ""),
        (service({"app": "wbe"}, 80), "", "no pod of platform here has app=wbe"),
        (budget({"app": "wbe"}), "", "so PodDisruptionBudget platform/it is for nothing"),
        (claim("managed-csi-premium"), "", ""),
        (claim("premium-zrs"), "", "StorageClass premium-zrs, and without it it stays Pending"),
        (scaler("weeb"), "", "Deployment platform/weeb, and without it it scales nothing"),
    ],
)
def test_what_other_objects_need_is_there(given: dict[str, Any], problem: str, note: str) -> None:
    platform = platform_with({}, given)
    notes = [text for text in platform.notes if "waits for PersistentVolumeClaim" not in text]
    assert [bool(platform.problems), bool(notes)] == [bool(problem), bool(note)]
    assert not problem or problem in platform.problems[0]
    assert not note or note in notes[0]


def test_where_charts_may_bring_it_only_a_slip_is_said_and_as_a_note() -> None:
    chart = {**release("platform/prom"), "spec": {**release("platform/prom")["spec"]}}
    for name, notes in (("other", 0), ("deplyer", 1)):
        platform = platform_with({"serviceAccountName": name}, chart)
        found = [note for note in platform.notes if "ServiceAccount" in note]
        assert (len(found), [text for text in platform.problems if "ServiceAccount" in text]) == (notes, [])


def certificate(kind: str | None, name: str) -> dict[str, Any]:
    ref = {"name": name, **({"kind": kind} if kind else {})}
    return of("Certificate", "cert-manager.io/v1", {"secretName": "other", "issuerRef": ref})


def marked(kind: str, api: str, key: str, value: str) -> dict[str, Any]:
    given = of(kind, api)
    return {**given, "metadata": {**given["metadata"], "annotations": {key: value}}}


def injected(value: str) -> dict[str, Any]:
    key = "cert-manager.io/inject-ca-from"
    return marked("ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1", key, value)


def issued(value: str) -> dict[str, Any]:
    return marked("Ingress", "networking.k8s.io/v1", "cert-manager.io/cluster-issuer", value)


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ({}, True),
        ({"cert-manager.io/issuer-kind": "ClusterIssuer"}, False),
        ({"kubernetes.azure.com/tls-cert-keyvault-uri": "https://a.example"}, False),
    ],
)
def test_the_certificate_of_an_ingress_is_there_or_something_makes_it(
    marks: dict[str, str], told: bool
) -> None:
    given = of("Ingress", "networking.k8s.io/v1", {"tls": [{"hosts": ["a.example"], "secretName": "a-tls"}]})
    given["metadata"]["annotations"] = marks
    found = [note for note in platform_with({}, given).notes if "Secret platform/a-tls, and without" in note]
    assert len(found) == told


def route(gateway: str, service: str, port: int = 80) -> dict[str, Any]:
    rules = [{"backendRefs": [{"name": service, "port": port}]}]
    return of(
        "HTTPRoute", "gateway.networking.k8s.io/v1", {"parentRefs": [{"name": gateway}], "rules": rules}
    )


def external_secret(store: str) -> dict[str, Any]:
    ref = {"kind": "ClusterSecretStore", "name": store}
    return of("ExternalSecret", "external-secrets.io/v1", {"secretStoreRef": ref})


def policy_binding(name: str) -> dict[str, Any]:
    return of("ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1", {"policyName": name})


def stateful(service: str) -> dict[str, Any]:
    return of("StatefulSet", "apps/v1", {"serviceName": service})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (certificate("ClusterIssuer", "letsencrypt"), ""),
        (certificate(None, "letsencrypt"), "Issuer platform/letsencrypt, and without it it gets no"),
        (certificate(None, "letsencrypt"), "; there is a ClusterIssuer of this name"),
        (certificate("ClusterIssuer", "lets-encrypt"), "did you mean letsencrypt?"),
        (issued("letsencrypt"), ""),
        (issued("lets-encrypt"), "did you mean letsencrypt?"),
        (injected("platform/serving"), ""),
        (injected("platform/srving"), "the API server trusts no answer of it; did you mean serving?"),
        (route("public", "web"), ""),
        (route("publc", "web"), "did you mean public?"),
        (route("public", "web", 8080), "Service platform/web has no port 8080"),
        (external_secret("vault"), ""),
        (external_secret("valt"), "it brings no Secret; did you mean vault?"),
        (policy_binding("no-latest"), ""),
        (policy_binding("no-latst"), "it refuses nothing; did you mean no-latest?"),
        (stateful("web"), ""),
        (stateful("wbe"), "its pods have no names in DNS"),
    ],
)
def test_what_the_objects_of_other_controllers_need_is_there(given: dict[str, Any], said: str) -> None:
    """Reports: cert-manager/cert-manager#3414 (the kind of an issuer), #280."""
    found = [
        finding.message for finding in missing_objects(platform_with({}, given).add(CERTIFICATES).platform)
    ]
    assert bool(found) == bool(said)
    assert not said or said in found[0]


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        (volume(csi={"volumeAttributes": {"secretProviderClass": "vault"}}), ""),
        (
            volume(csi={"volumeAttributes": {"secretProviderClass": "valt"}}),
            "SecretProviderClass platform/valt",
        ),
        ({"imagePullSecrets": [{"name": "registry"}]}, "no image of a private registry is pulled"),
    ],
)
def test_what_a_pod_needs_to_be_mounted_or_pulled_is_there(pod: dict[str, Any], said: str) -> None:
    found = [finding.message for finding in missing_objects(platform_with(pod).add(CERTIFICATES).platform)]
    assert (bool(found), said in "".join(found)) == (bool(said), True)


def test_values_have_their_key_and_an_alert_its_objects() -> None:
    """Report: fluxcd/flux2-kustomize-helm-example#53."""
    given = {**release("platform/prom")}
    given["spec"] = {**given["spec"], "valuesFrom": [{"kind": "ConfigMap", "name": "settings"}]}
    (problem,) = [text for text in platform_with({}, given).problems if "settings" in text]
    assert "has no key values.yaml, so HelmRelease platform/prom is never Ready" in problem
    sources = [{"kind": "Kustomization", "name": name} for name in ("flux-system", "infra", "*")]
    alert = of("Alert", "notification.toolkit.fluxcd.io/v1beta3", {"eventSources": sources})
    alert["metadata"]["namespace"] = "flux-system"
    (said,) = [text for text in platform_with({}, alert).notes if "nothing is sent" in text]
    assert "eventSources[1].name: nothing here defines Kustomization flux-system/infra" in said


def many_missing(count: int) -> Platform:
    """Return a platform with so many ConfigMaps, and a Deployment for each that misspells its name."""
    platform = Platform("apiVersion: v1\nkind: Namespace\nmetadata: {name: platform}\n")
    for number in range(count):
        name = f"settings-of-a-team-{number:04}"
        platform.add(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: platform}}\n")
        workload = yaml.safe_load(deployment(f"web-{number}"))
        workload["spec"]["template"]["spec"] |= volume(configMap={"name": f"setings-of-a-team-{number:04}"})
        platform.add(yaml.safe_dump(workload))
    return platform


def calls_for(platform: Platform, count: int) -> int:
    """Return how many functions of Python the rule calls, which finds so many names."""
    found, counted = calls_of(missing_objects, platform)
    assert len(found) == count
    assert all("did you mean settings-of-a-team-" in finding.message for finding in found)
    return counted


def test_the_work_grows_with_the_missing_names_and_not_with_their_square() -> None:
    assert calls_for(many_missing(160), 160) < 2.5 * calls_for(many_missing(80), 80)
