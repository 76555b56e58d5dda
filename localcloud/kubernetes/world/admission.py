"""What the API server checks and fills in before it stores an object; pure functions."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from localcloud.kubernetes.world.api_errors import bad_request, invalid
from localcloud.kubernetes.world.kinds import DEPLOYMENT, Kind
from localcloud.kubernetes.world.object_store import Object

_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_SERVER_FIELDS = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")


def checked(kind: Kind, namespace: str, name: str, body: Any) -> dict[str, Any]:
    """Return the body with its kind, name and namespace; raise ApiError when it contradicts the request."""
    if not isinstance(body, Mapping) or not isinstance(body.get("metadata") or {}, Mapping):
        raise bad_request("the object provided is unrecognized: it must be an object with metadata")
    api_version, kind_name = body.get("apiVersion", kind.api_version), body.get("kind", kind.kind)
    if (api_version, kind_name) != (kind.api_version, kind.kind):
        wanted = f"{kind.api_version}, Kind={kind.kind}"
        raise bad_request(f"the object is {api_version}, Kind={kind_name}; the request is for {wanted}")
    metadata = dict(body.get("metadata") or {})
    if namespace and metadata.get("namespace", namespace) != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace of the request")
    if metadata.get("name", name) != name:
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the URL ({name})")
    if not _valid_name(kind, name):
        raise invalid(kind, name, "metadata.name", "a lowercase RFC 1123 subdomain must be used")
    metadata |= {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata.pop("managedFields", None)
    clean = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **_plain(kind, clean)}


def _valid_name(kind: Kind, name: str) -> bool:
    if kind.group == "rbac.authorization.k8s.io":
        return bool(name) and "/" not in name
    return len(name) <= 253 and bool(_NAME.match(name))


def _plain(kind: Kind, rest: dict[str, Any]) -> dict[str, Any]:
    """Turn a Secret's write-only ``stringData`` into ``data``."""
    texts = rest.pop("stringData", None) if kind.kind == "Secret" else None
    if texts:
        coded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        rest["data"] = {**(rest.get("data") or {}), **coded}
    return rest


def with_status(kind: Kind, live: Object | None, new: dict[str, Any], subresource: str) -> dict[str, Any]:
    """Keep the status out of a write to the object, and the rest out of a write to its status."""
    if subresource == "status" and live is not None:
        return {**live, "status": new.get("status") or {}}
    if not kind.status:
        return new
    status = {} if live is None or "status" not in live else {"status": live["status"]}
    return {**{key: value for key, value in new.items() if key != "status"}, **status}


def finished(
    kind: Kind, live: Object | None, new: Mapping[str, Any], born: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the object with the metadata that only the server sets; ``born`` is that of a new one."""
    old = born if live is None else live["metadata"]
    mine = {key: old[key] for key in _SERVER_FIELDS if key in old}
    theirs = {key: value for key, value in new["metadata"].items() if key not in _SERVER_FIELDS}
    whole = {**new, "metadata": {**theirs, **mine}}
    if live is not None:
        whole["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
    if kind.storage == DEPLOYMENT.storage:
        whole["spec"] = {"replicas": 1, **(whole.get("spec") or {})}
    if kind.generation:
        raised = live is not None and _spec(live) != _spec(whole)
        whole["metadata"]["generation"] = old.get("generation", 1) + (1 if raised else 0)
    return whole


def _spec(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: inner for key, inner in value.items() if key not in ("metadata", "status", "apiVersion")}


def check_fixed(kind: Kind, live: Object | None, new: Mapping[str, Any]) -> None:
    """Raise ApiError (422) when a write changes a field that cannot be changed."""
    if live is None or not kind.fixed:
        return
    if _at(live, kind.fixed) != _at(new, kind.fixed):
        field = ".".join(kind.fixed)
        raise invalid(kind, live["metadata"]["name"], field, "field is immutable")


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
