"""What a Kustomization has put into the cluster: applied in order, listed, checked, and pruned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from localcloud.flux.flux_conditions import NotReady, condition, is_ready
from localcloud.kubernetes.world.api_errors import ApiError
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_requests import At, Write

_WRITE = Write(manager="kustomize-controller", force=True)
_FIRST = ("Namespace", "CustomResourceDefinition")
_KEEP = "kustomize.toolkit.fluxcd.io/prune"


def apply_all(world: KubernetesWorld, objects: Sequence[Mapping[str, Any]]) -> list[At]:
    """Apply the objects, definitions first; raise NotReady at the first that the API refuses."""
    first = [value for value in objects if value["kind"] in _FIRST]
    rest = [value for value in objects if value["kind"] not in _FIRST]
    done = [_apply(world, value) for value in first]
    waiting = unhealthy(world, done)
    if waiting:
        raise NotReady("Progressing", f"waiting for {', '.join(waiting[:5])}", status="Unknown")
    return done + [_apply(world, value) for value in rest]


def _apply(world: KubernetesWorld, value: Mapping[str, Any]) -> At:
    metadata = value["metadata"]
    subject = "/".join(filter(None, (value["kind"], metadata.get("namespace", ""), metadata["name"])))
    kind = world.kind(value["apiVersion"], value["kind"])
    if kind is None:
        message = f'no matches for kind "{value["kind"]}" in version "{value["apiVersion"]}"'
        raise NotReady("ReconciliationFailed", f"{subject} dry-run failed: {message}")
    namespace = metadata.get("namespace", "") if kind.namespaced else ""
    if kind.namespaced and not namespace:
        raise NotReady("ReconciliationFailed", f"{subject} namespace not specified")
    at = At(kind, metadata["name"], namespace)
    try:
        world.apply(at, value, _WRITE)
    except ApiError as error:
        text = error.reason if kind.kind == "Secret" else error.message
        raise NotReady("ReconciliationFailed", f"{subject} dry-run failed: {text}") from error
    return at


def entry(at: At) -> dict[str, str]:
    """Return an object's entry in ``status.inventory``."""
    return {"id": f"{at.namespace}_{at.name}_{at.kind.group}_{at.kind.kind}", "v": at.kind.version}


def prune(
    world: KubernetesWorld, before: Sequence[Mapping[str, str]], now: Sequence[Mapping[str, str]]
) -> None:
    """Delete what was in the inventory and is no longer, unless the object says otherwise."""
    kept = {item["id"] for item in now}
    for item in reversed(before):
        at = None if item["id"] in kept else _located(world, item)
        found = None if at is None else world.find(at)
        if at is None or found is None:
            continue
        metadata = found["metadata"]
        marks = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
        if marks.get(_KEEP) != "disabled":
            world.delete(at)


def _located(world: KubernetesWorld, item: Mapping[str, str]) -> At | None:
    namespace, _, rest = item["id"].partition("_")
    name, group, kind_name = rest.rsplit("_", 2)
    api_version = f"{group}/{item['v']}" if group else item["v"]
    kind = world.kind(api_version, kind_name)
    return None if kind is None else At(kind, name, namespace)


def unhealthy(world: KubernetesWorld, refs: Sequence[At]) -> list[str]:
    """Return those of the objects that are not ready yet, by name."""
    return [f"{at.kind.kind}/{at.name}" for at in refs if not _healthy(world, at)]


def _healthy(world: KubernetesWorld, at: At) -> bool:
    value = world.find(at)
    if value is None:
        return False
    if at.kind.kind == "Deployment":
        status = value.get("status") or {}
        return bool(status.get("observedGeneration") == value["metadata"]["generation"])
    if at.kind.kind == "CustomResourceDefinition":
        return bool(condition(value, "Established").get("status") == "True")
    if at.kind.group.endswith("toolkit.fluxcd.io"):
        return is_ready(value)
    return True
