"""Inventories as tests write them: a Kustomization, its spec, and the manifests that it owns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from shared.platform.inventory import BuiltObject, Inventory, ObjectId, Owner

API = "kustomize.toolkit.fluxcd.io/v1"


def owner_id(name: str) -> ObjectId:
    return ObjectId("kustomize.toolkit.fluxcd.io", "Kustomization", "flux-system", name)


def owner(name: str = "platform", *manifests: Mapping[str, Any], unbuilt: str = "", **spec: Any) -> Owner:
    """Return a Kustomization that prunes, with the path ``./platform/NAME``, and what it owns."""
    full = {"path": f"./platform/{name}", "prune": True, **spec}
    objects = {(built := BuiltObject(given, f"platform/{name}.yaml")).id: built for given in manifests}
    return Owner(owner_id(name), full, f"platform/{name}.yaml", objects, unbuilt)


def inventory(*owners: Owner, unfollowed: tuple[str, ...] = ()) -> Inventory:
    return Inventory({given.id: given for given in owners}, unfollowed)


def asked_for(given: Owner, **metadata: Any) -> Mapping[str, Any]:
    """Return the manifest of a Kustomization, for the inventory of the one that applies it."""
    named = {"namespace": given.id.namespace, "name": given.id.name, **metadata}
    return {"apiVersion": API, "kind": "Kustomization", "metadata": named, "spec": given.spec}


def manifest(kind: str, name: str, api: str = "v1", **rest: Any) -> dict[str, Any]:
    """Return a manifest; ``name`` may be ``namespace/name``, and ``marks`` become annotations of Flux."""
    namespace, _, own = name.rpartition("/")
    marks = rest.pop("marks", {})
    metadata: dict[str, Any] = {"name": own} | ({"namespace": namespace} if namespace else {})
    if marks:
        metadata["annotations"] = {f"kustomize.toolkit.fluxcd.io/{k}": value for k, value in marks.items()}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def parsed(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def deployment(name: str, image: str = "registry.example/app:1.0.0", **rest: Any) -> dict[str, Any]:
    app = name.rpartition("/")[2]
    template = {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": app, "image": image}]},
    }
    spec = {"selector": {"matchLabels": {"app": app}}, "template": template}
    return manifest("Deployment", name, "apps/v1", spec=spec, **rest)


def stateful_set(size: str = "10Gi", *, claims: str = "", **rest: Any) -> dict[str, Any]:
    template = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    }
    spec: dict[str, Any] = {"serviceName": "store", "volumeClaimTemplates": [template]}
    if claims:
        spec["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": claims, "whenScaled": claims}
    return manifest("StatefulSet", "platform/store", "apps/v1", spec=spec | rest.pop("spec", {}), **rest)


def claim(name: str, size: str = "10Gi", **rest: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return manifest("PersistentVolumeClaim", name, spec=spec, **rest)


def definition(kind: str, versions: Mapping[str, str] | None = None, **rest: Any) -> dict[str, Any]:
    """Return a definition of ``data.example.com``; a version is "storage", "served" or "unserved"."""
    plural = f"{kind.lower()}s"
    listed = [
        {"name": name, "served": how != "unserved", "storage": how == "storage"}
        for name, how in (versions or {"v1": "storage"}).items()
    ]
    spec = {
        "group": "data.example.com",
        "names": {"kind": kind, "plural": plural},
        "scope": "Namespaced",
        "versions": listed,
        **rest.pop("spec", {}),
    }
    name = f"{plural}.data.example.com"
    return manifest("CustomResourceDefinition", name, "apiextensions.k8s.io/v1", spec=spec, **rest)


def release(name: str, **spec: Any) -> dict[str, Any]:
    chart = {
        "spec": {
            "chart": "grafana",
            "version": "1.2.3",
            "sourceRef": {"kind": "HelmRepository", "name": "charts"},
        }
    }
    return manifest("HelmRelease", name, "helm.toolkit.fluxcd.io/v2", spec={"chart": chart, **spec})
