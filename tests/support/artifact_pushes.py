"""Pushes to a registry by the distribution specification, over the wire."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import ssl
import tarfile
from collections.abc import Mapping

import urllib3

from localcloud.registry.registry_store import OCI_MANIFEST

NAME = "fleet"
"""The repository."""


class Pusher:
    """Pushes as the distribution specification says, and not through the store."""

    def __init__(self, url: str, authority: bytes, login: str = "") -> None:
        context = ssl.create_default_context(cadata=authority.decode())
        self._pool = urllib3.PoolManager(ssl_context=context)
        self._url = url
        given = base64.b64encode(login.encode()).decode()
        self._headers = {"Authorization": f"Basic {given}"} if login else {}

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> urllib3.BaseHTTPResponse:
        return self._pool.request(
            method, f"{self._url}{path}", body=body, headers={**self._headers, **(headers or {})}
        )

    def blob(self, content: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        begun = self.ask("POST", f"/v2/{NAME}/blobs/uploads/")
        assert begun.status == 202
        place = begun.headers["Location"]
        half = len(content) // 2
        patched = self.ask("PATCH", place, content[:half])
        assert (patched.status, patched.headers["Range"]) == (202, f"0-{half - 1}")
        ended = self.ask("PUT", f"{place}?digest={digest}", content[half:])
        assert (ended.status, ended.headers["Docker-Content-Digest"]) == (201, digest)
        return digest

    def manifest(self, tag: str, *, config: str, layer: str) -> urllib3.BaseHTTPResponse:
        parts = {"config": {"mediaType": "a/b", "digest": config, "size": 2}}
        body = {**parts, "schemaVersion": 2, "layers": [{"mediaType": "c/d", "digest": layer, "size": 3}]}
        path, kind = f"/v2/{NAME}/manifests/{tag}", {"Content-Type": OCI_MANIFEST}
        return self.ask("PUT", path, json.dumps(body).encode(), kind)


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return files as the layer of an artifact."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for path, body in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return content.getvalue()
