"""What others do to a real cluster: an administrator's plain client, in the shape of the world in memory."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from localcloud.common.clock import system_clock
from localcloud.kubernetes.world.kinds import BUILT_IN, ResourceKind
from localcloud.kubernetes.world.object_store import At, Object, WriteMode

_PLAIN = WriteMode()
_APPLY = "application/apply-patch+yaml"
_ACCOUNT = next(kind for kind in BUILT_IN if kind.kind == "ServiceAccount")


class Refused(Exception):
    """The API server refused; the message is its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class RealWorld:
    """Reads and writes objects of any kind; every write names its field manager."""

    def __init__(self, url: str, ca: Path, certificate: Path, key: Path) -> None:
        trust = ssl.create_default_context(cafile=str(ca))
        trust.load_cert_chain(certificate, key)
        self.client = httpx.Client(base_url=url, verify=trust, trust_env=False, timeout=20)

    def clock(self) -> datetime:
        """Return the time."""
        return system_clock()

    def ready(self) -> bool:
        """Return whether the API server says that it is ready."""
        try:
            return self.client.get("/readyz").is_success
        except httpx.HTTPError:
            return False

    def has_default_account(self) -> bool:
        """Return whether the controllers gave the default namespace its service account."""
        return self.find(At(_ACCOUNT, "default", "default")) is not None

    def get(self, at: At) -> Object:
        """Return an object; raise Refused (404) when there is none."""
        return self.call("GET", _path(at))

    def find(self, at: At) -> Object | None:
        """Return an object, or None."""
        try:
            return self.get(at)
        except Refused as error:
            if error.status != 404:
                raise
            return None

    def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> tuple[Sequence[Object], int]:
        """Return the objects that match both selectors, and the version they were read at."""
        query = {"labelSelector": labels, "fieldSelector": fields}
        found = self.call("GET", _collection(kind, namespace), params=query)
        typed = {"apiVersion": kind.api_version, "kind": kind.kind}
        items = [{**typed, **item} for item in found.get("items") or ()]
        return items, int(found["metadata"]["resourceVersion"])

    def create(self, kind: ResourceKind, namespace: str, body: Any, write: WriteMode = _PLAIN) -> Object:
        """Create an object."""
        return self.call("POST", _collection(kind, namespace), _typed(kind, body), _query(write))

    def replace(self, at: At, body: Any, write: WriteMode = _PLAIN) -> Object:
        """Replace an object, or its status."""
        return self.call("PUT", _path(at, write.subresource), _typed(at.kind, body), _query(write))

    def apply(self, at: At, body: Any, write: WriteMode = _PLAIN) -> Object:
        """Apply a configuration server-side."""
        named = {**body, "metadata": {**(body.get("metadata") or {}), "name": at.name}}
        query = {**_query(write), "force": str(write.force).lower()}
        return self.call("PATCH", _path(at, write.subresource), _typed(at.kind, named), query, _APPLY)

    def delete(self, at: At, *, grace_seconds: int | None = None) -> Object:
        """Delete an object."""
        query = {} if grace_seconds is None else {"gracePeriodSeconds": str(grace_seconds)}
        return self.call("DELETE", _path(at), params=query)

    def delete_all(self, kind: ResourceKind, namespace: str) -> None:
        """Delete all objects of a kind in a namespace with one request."""
        self.call("DELETE", _collection(kind, namespace))

    def set_status(self, at: At, status: Mapping[str, Any], *, manager: str) -> None:
        """Write a status as a controller does, again when the object changed meanwhile; one that does not
        exist is success.
        """
        write = WriteMode(manager=manager, subresource="status")
        while (live := self.find(at)) is not None:
            try:
                self.replace(at, {**live, "status": dict(status)}, write)
            except Refused as error:
                if error.status not in (404, 409):
                    raise
            else:
                return

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        params: Mapping[str, str] | None = None,
        media_type: str = "application/json",
    ) -> dict[str, Any]:
        """Send a request; raise Refused for every answer that is no success."""
        content = None if body is None else json.dumps(body)
        query = {name: value for name, value in (params or {}).items() if value}
        headers = {"Content-Type": media_type}
        reply = self.client.request(method, path, content=content, params=query, headers=headers)
        answer: dict[str, Any] = reply.json() if reply.content else {}
        if not reply.is_success:
            raise Refused(reply.status_code, str(answer.get("message") or reply.text))
        return answer

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


def _typed(kind: ResourceKind, body: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "apiVersion": kind.api_version, "kind": kind.kind}


def _query(write: WriteMode) -> dict[str, str]:
    return {"fieldManager": write.manager, "dryRun": "All" if write.dry_run else ""}


def _collection(kind: ResourceKind, namespace: str) -> str:
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    where = f"/namespaces/{namespace}" if kind.namespaced and namespace else ""
    return f"{root}{where}/{kind.plural}"


def _path(at: At, subresource: str = "") -> str:
    return "/".join(filter(None, [_collection(at.kind, at.namespace), at.name, subresource]))
