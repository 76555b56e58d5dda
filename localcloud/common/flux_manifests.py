"""The objects with which the small Flux is installed: definitions without a schema, and Deployments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NAMESPACE = "flux-system"
SOURCES, APPLIED = "source.toolkit.fluxcd.io/v1", "kustomize.toolkit.fluxcd.io/v1"
KINDS = {
    "GitRepository": (SOURCES, "gitrepositories"),
    "OCIRepository": (SOURCES, "ocirepositories"),
    "Bucket": (SOURCES, "buckets"),
    "Kustomization": (APPLIED, "kustomizations"),
}
"""The kinds that the small Flux knows: the API of each, and its plural."""
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(kind: str) -> dict[str, Any]:
    """Return the definition of one of ``KINDS``."""
    api_version, plural = KINDS[kind]
    return definition_of(kind, plural, api_version)


def definition_of(kind: str, plural: str, api_version: str) -> dict[str, Any]:
    """Return the definition of a kind whose objects may have any spec."""
    group, _, name = api_version.partition("/")
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": _ANY,
        "status": _ANY,
    }
    version = {
        "name": name,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def deployment(name: str, image: str, args: Sequence[str] = ()) -> dict[str, Any]:
    """Return the Deployment of a controller in the namespace of Flux."""
    labels = {"app": name}
    container = {"name": "manager", "image": image} | ({"args": list(args)} if args else {})
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
