"""Discovery: the version, groups and resources of a Kubernetes API server, and a minimal OpenAPI.

The OpenAPI documents name kinds and the query parameters of writes, and no fields: enough for kubectl to
leave validation to the server. There is no aggregated discovery: kubectl asks for it first, and takes the
older form from a server that has only that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from werkzeug.wrappers import Response

from localcloud.common.http_server import json_response
from localcloud.kubernetes.world.kinds import NODE, POD, ResourceKind
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld

_DEFAULT_VERSION = "1.36.0"
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_STATUS_VERBS = ["get", "patch", "update"]
_EVICTION = {"group": "policy", "version": "v1", "kind": "Eviction"}


def described(path: str, world: KubernetesWorld) -> Response | None:
    """Answer a question about the API itself; return None when the path is about objects."""
    kinds = world.kinds.all()
    if path == "/version":
        return json_response(200, version_info(_version(world)))
    if path in ("/api", "/apis"):
        return json_response(200, api_versions() if path == "/api" else group_list(kinds))
    if path == "/openapi/v3":
        return json_response(200, openapi_index(kinds))
    found: Mapping[str, Any] | None = None
    parts = path.strip("/").split("/")
    if path.startswith("/openapi/v3/"):
        found = openapi(path.removeprefix("/openapi/v3/"), kinds)
    elif parts[0] == "apis" and len(parts) == 2:
        found = group(parts[1], kinds)
    elif parts[0] in ("api", "apis") and len(parts) == (2 if parts[0] == "api" else 3):
        found = resource_list("/".join(parts[1:]), kinds)
    return None if found is None else json_response(200, found)


def _version(world: KubernetesWorld) -> str:
    """Return the newest version of the nodes."""
    nodes = world.list(NODE)[0]
    versions = [((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion") for node in nodes]
    numbers = [version.removeprefix("v") for version in versions if version]
    newest = max(numbers, key=lambda text: [int(part) for part in text.split(".")], default="")
    return newest or _DEFAULT_VERSION


def version_info(version: str) -> dict[str, str]:
    """Return ``/version`` for "1.36.2"."""
    major, minor, *_ = version.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{version}",
        "gitCommit": "local",
        "gitTreeState": "clean",
        "platform": "linux/amd64",
    }


def api_versions() -> dict[str, Any]:
    """Return ``/api``."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(kinds: Sequence[ResourceKind]) -> dict[str, Any]:
    """Return ``/apis``."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(g, kinds) for g in _groups(kinds)]}


def group(name: str, kinds: Sequence[ResourceKind]) -> dict[str, Any] | None:
    """Return ``/apis/NAME``, or None when there is no such group."""
    if name not in _groups(kinds):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, kinds)}


def resource_list(group_version: str, kinds: Sequence[ResourceKind]) -> dict[str, Any] | None:
    """Return ``/api/v1`` or ``/apis/GROUP/VERSION``, or None when there is no such version."""
    found = [kind for kind in kinds if kind.api_version == group_version]
    if not found:
        return None
    resources: list[dict[str, Any]] = []
    for kind in found:
        common = {"kind": kind.kind, "namespaced": kind.namespaced}
        names = {"name": kind.plural, "singularName": kind.kind.lower()}
        extra = {"shortNames": list(kind.short)} if kind.short else {}
        if kind.categories:
            extra["categories"] = list(kind.categories)
        resources.append({**names, **common, "verbs": _VERBS, **extra})
        if kind.status:
            name = f"{kind.plural}/status"
            resources.append({"name": name, "singularName": "", **common, "verbs": _STATUS_VERBS})
        if kind == POD:
            resources.append(
                {
                    "name": "pods/eviction",
                    "singularName": "",
                    "namespaced": True,
                    "verbs": ["create"],
                    **_EVICTION,
                }
            )
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }


def openapi_index(kinds: Sequence[ResourceKind]) -> dict[str, Any]:
    """Return ``/openapi/v3``."""
    paths = sorted({_prefix(kind) for kind in kinds})
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={len(kinds)}"} for path in paths}}


def openapi(path: str, kinds: Sequence[ResourceKind]) -> dict[str, Any] | None:
    """Return the OpenAPI document of one group version, or None when there is none."""
    found = [kind for kind in kinds if _prefix(kind) == path]
    if not found:
        return None
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for kind in found:
        names = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        parameters = [
            {"name": name, "in": "query", "schema": {"type": "string"}}
            for name in ("dryRun", "fieldManager", "fieldValidation", "force")
        ]
        write = {"parameters": parameters, "responses": {}, "x-kubernetes-group-version-kind": names}
        middle = "namespaces/{namespace}/" if kind.namespaced else ""
        place = f"/{path}/{middle}{kind.plural}"
        paths[place] = {"post": {**write, "x-kubernetes-action": "post"}}
        paths[f"{place}/{{name}}"] = {"patch": {**write, "x-kubernetes-action": "patch"}}
        schemas[f"{kind.version}.{kind.kind}"] = {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "x-kubernetes-group-version-kind": [names],
        }
    info = {"title": "Kubernetes", "version": "local"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _prefix(kind: ResourceKind) -> str:
    return f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"


def _groups(kinds: Sequence[ResourceKind]) -> list[str]:
    return list(dict.fromkeys(kind.group for kind in kinds if kind.group))


def _versions(group_name: str, kinds: Sequence[ResourceKind]) -> list[str]:
    """Return a group's versions, the most stable and newest first, as Kubernetes prefers them."""
    found = {kind.version for kind in kinds if kind.group == group_name}
    return sorted(found, key=_stability, reverse=True)


def _stability(version: str) -> tuple[int, int, int]:
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (-1, 0, 0)
    level = {None: 2, "beta": 1, "alpha": 0}[match[2]]
    return (level, int(match[1]), int(match[3] or 0))


def _group(name: str, kinds: Sequence[ResourceKind]) -> dict[str, Any]:
    versions = [{"groupVersion": f"{name}/{v}", "version": v} for v in _versions(name, kinds)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}
