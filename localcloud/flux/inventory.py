"""The objects of a Kustomization: dry-run, applied in order, listed in the inventory, checked, pruned.

Source of the order and of the messages: ``fluxcd/pkg/ssa`` (``manager_apply.go``, ``sort.go``, ``errors``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from localcloud.flux.flux_conditions import ObjectNotReady, condition, is_ready
from localcloud.kubernetes.world.api_errors import StatusError, no_match, no_such_path
from localcloud.kubernetes.world.kinds import ResourceKind
from localcloud.kubernetes.world.object_store import At, Deletion, Object, WriteMode

_WRITE = WriteMode(manager="kustomize-controller", force=True)
_DRY_RUN = replace(_WRITE, dry_run=True)
_DEFINITIONS = ("CustomResourceDefinition", "Namespace", "ClusterRole")
_FIRST = (
    *(
        "CustomResourceDefinition",
        "Namespace",
        "ClusterRole",
        "ClusterClass",
        "RuntimeClass",
        "PriorityClass",
    ),
    *("StorageClass", "VolumeSnapshotClass", "IngressClass", "GatewayClass", "ClusterRoleBinding"),
    *("ResourceQuota", "ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Secret", "Service"),
    *("LimitRange", "Deployment", "StatefulSet", "CronJob", "PodDisruptionBudget"),
)
_OWNER = "kustomize.toolkit.fluxcd.io"
_KEEP = (f"{_OWNER}/prune", f"{_OWNER}/reconcile")


_AT_ONCE = Deletion()


class ClusterClient(Protocol):
    """What the controller does in a cluster, with its own rights or with those of a service account."""

    def kind(self, api_version: str, kind: str) -> ResourceKind | None:
        """Return a kind that is served now, or None."""
        ...

    def find(self, at: At) -> Object | None:
        """Return an object, or None."""
        ...

    def apply(self, at: At, body: Any, write: WriteMode) -> Object:
        """Apply a configuration server-side."""
        ...

    def delete(self, at: At, options: Deletion = _AT_ONCE) -> Object:
        """Delete an object."""
        ...


def apply_all(
    client: ClusterClient, objects: Sequence[Mapping[str, Any]], changes: list[str] | None = None
) -> list[At]:
    """Apply the objects in two stages, definitions first; raise NotReady when the API refuses one.

    All objects of a stage are dry-run before the first of them is applied, so a stage is applied whole or not
    at all. ``changes`` takes a line for each object that is another one afterwards.
    """
    changes = [] if changes is None else changes
    ordered = sorted(objects, key=_order)
    first = [value for value in ordered if value["kind"] in _DEFINITIONS]
    rest = [value for value in ordered if value["kind"] not in _DEFINITIONS]
    done = _stage(client, first, changes)
    waiting = unhealthy(client, done)
    if waiting:
        raise ObjectNotReady(
            "Progressing", f"waiting for {', '.join(waiting[:5])}", status="Unknown", retry=1
        )
    return done + _stage(client, rest, changes)


def _order(value: Mapping[str, Any]) -> tuple[int, str, str, str]:
    kind, metadata = value["kind"], value["metadata"]
    place = _FIRST.index(kind) if kind in _FIRST else len(_FIRST)
    return (place, kind, str(metadata.get("namespace", "")), metadata["name"])


def _stage(client: ClusterClient, objects: Sequence[Mapping[str, Any]], changes: list[str]) -> list[At]:
    places = [_dry_run(client, value) for value in objects]
    for at, value in zip(places, objects, strict=True):
        try:
            before = client.find(at)
            after = client.apply(at, value, _WRITE)
            if before is None or _version(before) != _version(after):
                done = "created" if before is None else "configured"
                changes.append(f"{_subject(value)} {done}")
        except StatusError as error:
            text = f"{_subject(value)} apply failed: {error.message}\n"
            raise ObjectNotReady("ReconciliationFailed", text) from error
    return places


def _version(value: Object) -> str:
    return str(value["metadata"]["resourceVersion"])


def _dry_run(client: ClusterClient, value: Mapping[str, Any]) -> At:
    metadata = value["metadata"]
    kind = client.kind(value["apiVersion"], value["kind"])
    try:
        if kind is None:
            raise no_match(value["apiVersion"], value["kind"])
        namespace = metadata.get("namespace", "") if kind.namespaced else ""
        if kind.namespaced and not namespace:
            raise no_such_path()
        at = At(kind, metadata["name"], namespace)
        client.find(at)
        client.apply(at, value, _DRY_RUN)
    except StatusError as error:
        raise ObjectNotReady("ReconciliationFailed", f"{_refused(value, error)}\n") from error
    return at


def _refused(value: Mapping[str, Any], error: StatusError) -> str:
    if error.code == 404 and not value["metadata"].get("namespace"):
        return f"{_subject(value)} namespace not specified: {error.message}"
    if error.code == 404:
        return f"{_subject(value)} not found: {error.message}"
    reason = f" ({error.reason})" if error.reason else ""
    return f"{_subject(value)} dry-run failed{reason}: {error.message}"


def _subject(value: Mapping[str, Any]) -> str:
    metadata = value["metadata"]
    return "/".join(filter(None, (value["kind"], metadata.get("namespace", ""), metadata["name"])))


def entry(at: At) -> dict[str, str]:
    """Return an object's entry in ``status.inventory``."""
    return {"id": f"{at.namespace}_{at.name}_{at.kind.group}_{at.kind.kind}", "v": at.kind.version}


def owner_labels(name: str, namespace: str) -> dict[str, str]:
    """Return the labels of the objects of a Kustomization."""
    return {f"{_OWNER}/name": name, f"{_OWNER}/namespace": namespace}


def prune(
    client: ClusterClient,
    before: Sequence[Mapping[str, str]],
    now: Sequence[Mapping[str, str]],
    owner: Mapping[str, str],
) -> None:
    """Delete what the inventory no longer has, unless the object disables it or has another owner by now."""
    current = {item["id"] for item in now}
    for item in reversed(before):
        at = None if item["id"] in current else _located(client, item)
        found = None if at is None else _found(client, at)
        if at is None or found is None:
            continue
        metadata = found["metadata"]
        labels = metadata.get("labels") or {}
        marks = {**labels, **(metadata.get("annotations") or {})}
        is_ours = all(labels.get(name) == text for name, text in owner.items())
        if is_ours and not any(marks.get(name) == "disabled" for name in _KEEP):
            _delete(client, at)


def _found(client: ClusterClient, at: At) -> Object | None:
    try:
        return client.find(at)
    except StatusError as error:
        raise _not_pruned(at, error) from error


def _delete(client: ClusterClient, at: At) -> None:
    try:
        client.delete(at)
    except StatusError as error:
        raise _not_pruned(at, error) from error


def _not_pruned(at: At, error: StatusError) -> ObjectNotReady:
    subject = "/".join(filter(None, (at.kind.kind, at.namespace, at.name)))
    return ObjectNotReady("PruneFailed", f"{subject} delete failed: {error.message}")


def _located(client: ClusterClient, item: Mapping[str, str]) -> At | None:
    namespace, _, rest = item["id"].partition("_")
    name, group, kind_name = rest.rsplit("_", 2)
    api_version = f"{group}/{item['v']}" if group else item["v"]
    kind = client.kind(api_version, kind_name)
    return None if kind is None else At(kind, name, namespace)


def unhealthy(client: ClusterClient, refs: Sequence[At]) -> list[str]:
    """Return those of the objects that are not ready yet, as Flux names them."""
    return [
        "/".join(filter(None, (at.kind.kind, at.namespace, at.name)))
        for at in refs
        if not _healthy(client, at)
    ]


def _healthy(client: ClusterClient, at: At) -> bool:
    value = client.find(at)
    if value is None:
        return False
    if at.kind.kind == "Deployment":
        status, generation = value.get("status") or {}, value["metadata"]["generation"]
        wanted = (value.get("spec") or {}).get("replicas", 1)
        rolled_out = status.get("observedGeneration") == generation
        return bool(rolled_out and status.get("availableReplicas", 0) >= wanted)
    if at.kind.kind == "CustomResourceDefinition":
        return bool(condition(value, "Established").get("status") == "True")
    if at.kind.group.endswith("toolkit.fluxcd.io"):
        return is_ready(value)
    return True
