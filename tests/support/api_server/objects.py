"""The objects and paths of requests to an API server."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

JSON, YAML = "application/json", "application/yaml"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"

MAPS, SECRETS, PODS = (f"/api/v1/namespaces/ns/{plural}" for plural in ("configmaps", "secrets", "pods"))
WEBS = "/apis/apps/v1/namespaces/ns/deployments"
SETS = "/apis/apps/v1/namespaces/ns/statefulsets"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/ns/rolebindings"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/ns/roles"
BUDGETS = "/apis/policy/v1/namespaces/ns/poddisruptionbudgets"
SERVICES = "/api/v1/namespaces/ns/services"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.org/v1/namespaces/ns/widgets"


@dataclass(frozen=True)
class Call:
    """One request; ``wait``: send it again until it succeeds. ``text`` False: messages may differ."""

    name: str
    method: str
    path: str
    body: Any = None
    content: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    wait: bool = False
    text: bool = True

    def data(self) -> bytes | None:
        """Return the body as it is sent."""
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body).encode()


def a_map(name: str = "one", **rest: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **rest}


def a_web(name: str = "web", **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "web", "image": "web:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    whole = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


def templated(**container: Any) -> dict[str, Any]:
    one = {"name": "web", "image": "web:1", **container}
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [one]}}


def a_pod(name: str, **spec: Any) -> dict[str, Any]:
    whole = {"containers": [{"name": "web", "image": "web:1"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


SIZE = {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["url"],
            "properties": {
                "url": {"type": "string", "pattern": "^https://"},
                "size": SIZE,
                "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
                "port": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "tags": {"type": "array", "maxItems": 2, "items": {"type": "string", "minLength": 2}},
                "short": {"type": "string", "maxLength": 3},
                "gone": {"type": "string", "nullable": True},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
                    },
                },
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}


def a_crd(plural: str = "widgets", kind: str = "Widget", **version: Any) -> dict[str, Any]:
    first = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}},
        **version,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [first],
        },
    }


def a_widget(name: str = "one", **spec: Any) -> dict[str, Any]:
    whole = {"url": "https://example.org", **spec}
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": whole}


def apply_call(path: str, name: str, body: Any, query: str = "fieldManager=alice") -> dict[str, Any]:
    return {"method": "PATCH", "path": f"{path}/{name}?{query}", "body": body, "content": APPLY}


def a_secret(**rest: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, **rest}


def a_service(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}


def a_binding(role: dict[str, str]) -> dict[str, Any]:
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "b"}}
    return {**head, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", **role}}


def a_budget(**spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    return {**head, "spec": {"selector": {"matchLabels": {"app": "none"}}, **spec}}
