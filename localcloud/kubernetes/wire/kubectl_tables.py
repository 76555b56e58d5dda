"""Objects as the tables that ``kubectl get`` prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from localcloud.kubernetes.world.kinds import ResourceKind
from localcloud.kubernetes.world.object_store import Object

_FILTER = re.compile(r'\[\?\(@\.([\w-]+)==["\']([^"\']*)["\']\)\]')
_STEP = re.compile(r'\.([\w/-]+(?:\\\.[\w/-]+)*)|\[\?\(@\.[\w-]+==["\'][^"\']*["\']\)\]|\[(\d+)\]')


@dataclass(frozen=True)
class _Column:
    name: str
    cell: Callable[[Object, datetime], Any]
    sort: str = "string"
    wide: bool = False


def table(
    kind: ResourceKind, objects: Sequence[Object], now: datetime, *, include: str = "Metadata"
) -> dict[str, Any]:
    """Return a ``Table``; ``include`` selects how much of each object is in it."""
    columns = _columns(kind)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [
            {
                "name": column.name,
                "type": column.sort,
                "format": "name" if column.name == "Name" else "",
                "description": column.name,
                "priority": 1 if column.wide else 0,
            }
            for column in columns
        ],
        "rows": [
            {"cells": [column.cell(value, now) for column in columns], "object": _included(value, include)}
            for value in objects
        ],
    }


def _included(value: Object, include: str) -> Mapping[str, Any] | None:
    if include == "Object":
        return value
    if include == "None":
        return None
    return partial(value)


def partial(value: Object) -> dict[str, Any]:
    """Return the metadata of an object."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": value["metadata"],
    }


def _columns(kind: ResourceKind) -> list[_Column]:
    name = _Column("Name", lambda value, _: value["metadata"]["name"])
    if kind.custom:
        own = [_declared(column) for column in kind.columns]
        return [name, *(own or [_AGE])]
    return [name, *_BUILT_IN.get(kind.kind, ()), _AGE, *_WIDE.get(kind.kind, ())]


def _declared(column: Mapping[str, Any]) -> _Column:
    path, is_date = column["jsonPath"], column["type"] == "date"

    def cell(value: Object, now: datetime) -> Any:
        found = json_path(value, path)
        return _ago(found, now) if is_date and isinstance(found, str) else found

    sort = "string" if is_date else column["type"]
    return _Column(column["name"], cell, sort, wide=column.get("priority", 0) > 0)


def json_path(value: Any, path: str) -> Any:
    """Return what a simple JSONPath names (fields, an index, a filter by one field), or None."""
    for step in _STEP.finditer(path):
        filtered = _FILTER.fullmatch(step[0])
        if filtered:
            items = value if isinstance(value, list) else []
            value = next((item for item in items if str(item.get(filtered[1])) == filtered[2]), None)
        elif step[2] is not None:
            index = int(step[2])
            value = value[index] if isinstance(value, list) and index < len(value) else None
        else:
            field = step[1].replace("\\.", ".")
            value = value.get(field) if isinstance(value, Mapping) else None
    return value


def _ago(text: str, now: datetime) -> str:
    """Return the age of a time as kubectl prints it: "5s", "3m10s", "2h5m", "4d"."""
    seconds = max(0, int((now - datetime.fromisoformat(text)).total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 48:
        return f"{hours}h{minutes % 60}m" if hours < 8 and minutes % 60 else f"{hours}h"
    return f"{days}d"


def _path(name: str, path: str, *, sort: str = "string", wide: bool = False) -> _Column:
    return _Column(name, lambda value, _: json_path(value, path), sort, wide)


def _condition(value: Object, sort: str) -> str:
    return str(json_path(value, f'.status.conditions[?(@.type=="{sort}")].status'))


def _roles(value: Object, _now: datetime) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = value["metadata"].get("labels") or {}
    roles = sorted(label.removeprefix(prefix) for label in labels if label.startswith(prefix))
    return ",".join(roles) or "<none>"


def _ready(value: Object, _now: datetime) -> str:
    wanted = (value.get("spec") or {}).get("replicas", 1)
    return f"{(value.get('status') or {}).get('readyReplicas', 0)}/{wanted}"


def _count(name: str, field: str) -> _Column:
    return _Column(name, lambda value, _: (value.get("status") or {}).get(field, 0), "integer")


def _data(value: Object, _now: datetime) -> int:
    return len(value.get("data") or {})


def _images(value: Object, _now: datetime) -> str:
    containers = json_path(value, ".spec.template.spec.containers") or []
    return ",".join(str(container.get("image", "")) for container in containers)


_AGE = _Column("Age", lambda value, now: _ago(value["metadata"]["creationTimestamp"], now))
_BUILT_IN: Mapping[str, Sequence[_Column]] = {
    "Namespace": [_path("Status", ".status.phase")],
    "Node": [
        _Column("Status", lambda value, _: "Ready" if _condition(value, "Ready") == "True" else "NotReady"),
        _Column("Roles", _roles),
    ],
    "Deployment": [
        _Column("Ready", _ready),
        _count("Up-to-date", "updatedReplicas"),
        _count("Available", "availableReplicas"),
    ],
    "StatefulSet": [_Column("Ready", _ready)],
    "Secret": [_path("Type", ".type"), _Column("Data", _data, "integer")],
    "ConfigMap": [_Column("Data", _data, "integer")],
    "Service": [_path("Type", ".spec.type"), _path("Cluster-IP", ".spec.clusterIP")],
    "ClusterRoleBinding": [_Column("Role", lambda v, _: f"{v['roleRef']['kind']}/{v['roleRef']['name']}")],
    "RoleBinding": [_Column("Role", lambda v, _: f"{v['roleRef']['kind']}/{v['roleRef']['name']}")],
    "Pod": [_path("Status", ".status.phase")],
}
_WIDE: Mapping[str, Sequence[_Column]] = {
    "Node": [
        _path("Version", ".status.nodeInfo.kubeletVersion"),
        _path("OS-Image", ".status.nodeInfo.osImage", wide=True),
    ],
    "Deployment": [_Column("Images", _images, wide=True)],
}
