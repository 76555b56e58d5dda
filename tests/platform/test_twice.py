"""What only one object can have, and several ask for."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.built_platforms import CERTIFICATES, NAMESPACE, Platform, deployment


def made(kind: str, name: str, api: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "platform"}, **fields}


def service(name: str, port: int, protocol: str = "TCP") -> dict[str, Any]:
    ports = [{"port": 80, "nodePort": port, "protocol": protocol}]
    return made("Service", name, "v1", spec={"type": "NodePort", "selector": {"app": "web"}, "ports": ports})


def certificate(name: str, secret: str) -> dict[str, Any]:
    ref = {"kind": "ClusterIssuer", "name": "letsencrypt"}
    return made("Certificate", name, "cert-manager.io/v1", spec={"secretName": secret, "issuerRef": ref})


def ingress(
    name: str, path: str, chosen: str = "webapprouting.kubernetes.azure.com", **marks: str
) -> dict[str, Any]:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": path, "pathType": "Prefix", "backend": backend}]
    rules = [{"host": "shop.example.com", "http": {"paths": paths}}]
    whole = made("Ingress", name, "networking.k8s.io/v1", spec={"ingressClassName": chosen, "rules": rules})
    annotations = {f"nginx.ingress.kubernetes.io/{key}": value for key, value in marks.items()}
    return {**whole, "metadata": {**whole["metadata"], "annotations": annotations}}


def workload(name: str, app: str) -> dict[str, Any]:
    given: dict[str, Any] = yaml.safe_load(deployment(app))
    given["metadata"]["name"] = name
    return given


def budget(name: str, app: str) -> dict[str, Any]:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}}
    return made("PodDisruptionBudget", name, "policy/v1", spec=spec)


@pytest.mark.parametrize(
    ("first", "second", "problem", "note"),
    [
        (service("a", 30080), service("b", 30080), "want one port of the nodes", ""),
        (service("a", 30080), service("b", 30080, "UDP"), "", ""),
        (service("a", 30080), service("b", 30081), "", ""),
        (
            certificate("a", "web"),
            certificate("b", "web"),
            "Certificate platform/a and Certificate platform/b write",
            "",
        ),
        (certificate("a", "web"), certificate("b", "other"), "", ""),
        (ingress("a", "/"), ingress("b", "/"), "", "have one host and path"),
        (ingress("a", "/"), ingress("b", "/", "azure-internal"), "", ""),
        (ingress("a", "/"), ingress("b", "/", canary="true"), "", ""),
        (ingress("a", "/"), ingress("b", "/admin"), "", ""),
        (workload("a", "web"), workload("b", "web"), "", "have one selector"),
        (workload("a", "web"), workload("b", "other"), "", ""),
        (budget("a", "web"), budget("b", "web"), "", "a pod with two budgets is not evicted"),
    ],
)
def test_what_only_one_can_have_is_not_asked_for_twice(
    first: dict[str, Any], second: dict[str, Any], problem: str, note: str
) -> None:
    """Reports: cert-manager#6992, ingress-nginx#8216, kubernetes#108920, #75957."""
    web = made("Service", "web", "v1", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})
    others = [] if first["kind"] == "Deployment" else [workload("web", "web")]
    texts = [yaml.safe_dump(given) for given in (web, *others, first, second)]
    platform = Platform(NAMESPACE, CERTIFICATES, *texts)
    found = [text for text in platform.problems if "serving" not in text]
    said = [text for text in platform.notes if problem_of(text)]
    assert [bool(found), bool(said)] == [bool(problem), bool(note)]
    assert problem in "".join(found)
    assert note in "".join(said)


def problem_of(note: str) -> bool:
    """Return whether a note is of what is twice, and not of a kind that nothing here defines."""
    return "nothing here defines" not in note
