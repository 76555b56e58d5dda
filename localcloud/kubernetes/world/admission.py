"""What the API server checks and fills in before it stores an object; pure functions."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from localcloud.kubernetes.schema.definitions import invalid, required
from localcloud.kubernetes.schema.names import name_problem
from localcloud.kubernetes.world.api_errors import StatusError, bad_request, conflict, invalid_fields
from localcloud.kubernetes.world.kinds import POD, ResourceKind
from localcloud.kubernetes.world.object_store import Object

_SERVER_FIELDS = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")


def checked(kind: ResourceKind, namespace: str, name: str, body: Any) -> dict[str, Any]:
    """Return the body with its kind, name and namespace; raise ApiError when it contradicts the request."""
    if not isinstance(body, Mapping) or not isinstance(body.get("metadata") or {}, Mapping):
        raise bad_request("the object provided is unrecognized: it must be an object with metadata")
    api_version, kind_name = body.get("apiVersion", kind.api_version), body.get("kind", kind.kind)
    if (api_version, kind_name) != (kind.api_version, kind.kind):
        group_version = api_version if "/" in api_version else f"/{api_version}"
        raise bad_request(f"invalid object type: {group_version}, Kind={kind_name}")
    metadata = dict(body.get("metadata") or {})
    if namespace and metadata.get("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if metadata.get("name", name) != name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )
    wrong = name_problem(kind.group, kind.kind, name)
    if not name:
        wrong = required("metadata.name", "name or generateName is required")
    if wrong is not None:
        raise invalid_fields(kind, name, [wrong])
    metadata |= {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata.pop("managedFields", None)
    clean = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **_plain(kind, clean)}


def created(kind: ResourceKind, namespace: str, name: str, body: Any) -> dict[str, Any]:
    """Return the body of a create, checked; it may not have a version."""
    new = checked(kind, namespace, name, body)
    if new["metadata"].get("resourceVersion"):
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
    return new


def configuration(kind: ResourceKind, namespace: str, name: str, body: Any) -> dict[str, Any]:
    """Return the body of an apply, checked; it may not have managed fields."""
    if isinstance(body, Mapping) and (body.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    return checked(kind, namespace, name, body)


def replaced(kind: ResourceKind, namespace: str, body: Any, live: Object) -> dict[str, Any]:
    """Return the body of a replace, checked; a uid in it must be that of the object."""
    name, uid = live["metadata"]["name"], live["metadata"]["uid"]
    new = checked(kind, namespace, name, body)
    wanted = new["metadata"].get("uid")
    if wanted and wanted != uid:
        text = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
        raise conflict(kind, name, text)
    return new


def same_uid(kind: ResourceKind, new: dict[str, Any], live: Object) -> dict[str, Any]:
    """Return the result of a patch; it may not change the uid."""
    uid = new["metadata"].get("uid")
    if uid != live["metadata"]["uid"]:
        raise invalid_fields(
            kind, live["metadata"]["name"], [invalid("metadata.uid", uid, "field is immutable")]
        )
    return new


def _plain(kind: ResourceKind, rest: dict[str, Any]) -> dict[str, Any]:
    """Turn a Secret's write-only ``stringData`` into ``data``."""
    texts = rest.pop("stringData", None) if kind.kind == "Secret" else None
    if texts:
        coded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        rest["data"] = {**(rest.get("data") or {}), **coded}
    return rest


def with_status(
    kind: ResourceKind, live: Object | None, new: dict[str, Any], subresource: str
) -> dict[str, Any]:
    """Keep the status out of a write to the object, and the rest out of a write to its status."""
    if subresource == "status" and live is not None:
        return {**live, "status": new.get("status") or {}}
    if not kind.status:
        return new
    status = {} if live is None or "status" not in live else {"status": live["status"]}
    return {**{key: value for key, value in new.items() if key != "status"}, **status}


def finished(
    kind: ResourceKind, live: Object | None, new: Mapping[str, Any], born: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the object with the metadata that only the server sets; ``born`` is that of a new one."""
    old = born if live is None else live["metadata"]
    mine = {key: old[key] for key in _SERVER_FIELDS if key in old}
    theirs = {key: value for key, value in new["metadata"].items() if key not in _SERVER_FIELDS}
    whole = {**new, "metadata": {**theirs, **mine}}
    if live is not None:
        whole["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
    if live is None and kind == POD:
        whole["status"] = {"phase": "Pending"}
    if kind.generation:
        raised = live is not None and _spec(live) != _spec(whole)
        whole["metadata"]["generation"] = old.get("generation", 1) + (1 if raised else 0)
    return whole


def _spec(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: inner for key, inner in value.items() if key not in ("metadata", "status", "apiVersion")}
