"""The distribution API of a registry. The README has its rules and their source."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from werkzeug.wrappers import Request, Response

from localcloud.common.certificates import Authority
from localcloud.common.http_server import json_response
from localcloud.common.local_service import LocalService
from localcloud.registry.registry_store import RegistryRefusal, RegistryStore, digest_of_bytes

_NAME = r"/v2/(?P<name>[a-z0-9]+(?:[._/-][a-z0-9]+)*)"
_DIGEST = "Docker-Content-Digest"
_STORAGE = "/storage"
"""Where the account is whose containers have the blobs."""


class RegistryApp:
    """The distribution API of a registry, and its sign-in."""

    def __init__(self, store: RegistryStore) -> None:
        self._store = store
        self._uploads: dict[str, bytes] = {}
        self._routes: tuple[tuple[re.Pattern[str], Callable[..., Response]], ...] = (
            (re.compile(r"/v2/?"), lambda _: json_response(200, {})),
            (re.compile(r"/oauth2/exchange"), self._exchange),
            (re.compile(r"/oauth2/token"), self._token),
            (re.compile(rf"{_NAME}/manifests/(?P<reference>[^/]+)"), self._manifest),
            (re.compile(rf"{_NAME}/blobs/uploads/(?P<upload>[^/]*)"), self._upload),
            (re.compile(rf"{_NAME}/blobs/(?P<digest>sha256:[0-9a-f]{{64}})"), self._blob),
            (re.compile(rf"{_STORAGE}{_NAME}/(?P<digest>sha256:[0-9a-f]{{64}})"), self._stored_blob),
            (re.compile(rf"{_NAME}/tags/list"), self._tags),
        )

    def answer(self, request: Request) -> Response:
        """Answer one request."""
        try:
            self._admit(request)
            return self._routed(request)
        except RegistryRefusal as error:
            reply = json_response(error.status, {"errors": [{"code": error.code, "message": error.message}]})
            if error.status == 401:
                reply.headers["WWW-Authenticate"] = _challenge(request)
            return reply

    def _admit(self, request: Request) -> None:
        given = request.authorization
        user, password = (given.username or "", given.password or "") if given else ("", "")
        bearer = given.token if given and given.type == "bearer" else None
        if request.path.startswith(("/oauth2/", _STORAGE)) or bearer in self._store.tokens:
            return
        if not self._store.admits(user, password):
            raise RegistryRefusal(401, "UNAUTHORIZED", "authentication required")

    def _routed(self, request: Request) -> Response:
        for pattern, answer in self._routes:
            found = pattern.fullmatch(request.path)
            if found is not None:
                return answer(request, **found.groupdict())
        raise RegistryRefusal(404, "NAME_INVALID", "invalid repository name")

    def _exchange(self, request: Request) -> Response:
        """Give an identity's token a refresh token of the registry."""
        form = request.form
        if form.get("grant_type") != "access_token" or not form.get("service"):
            raise RegistryRefusal(400, "INVALID_GRANT", "grant_type and service are needed")
        if form.get("access_token") not in self._store.identities:
            raise RegistryRefusal(401, "UNAUTHORIZED", "authentication required")
        return json_response(200, {"refresh_token": self._issued()})

    def _token(self, request: Request) -> Response:
        """Give a token that may pull, for a refresh token, or to everybody where the registry is public."""
        if request.method == "GET" and self._store.public:
            return json_response(200, {"token": self._issued()})
        form = request.form
        known = form.get("grant_type") == "refresh_token" and form.get("refresh_token") in self._store.tokens
        if not known or not form.get("scope"):
            raise RegistryRefusal(401, "UNAUTHORIZED", "authentication required")
        return json_response(200, {"access_token": self._issued()})

    def _issued(self) -> str:
        token = uuid4().hex
        self._store.tokens.add(token)
        return token

    def _manifest(self, request: Request, name: str, reference: str) -> Response:
        if request.method == "PUT":
            kind = request.headers.get("Content-Type", "")
            digest = self._store.put_manifest(name, reference, kind, request.get_data())
            location = f"/v2/{name}/manifests/{digest}"
            return Response(status=201, headers={"Location": location, _DIGEST: digest})
        kind, content = self._store.manifest(name, reference)
        return _content(request, content, kind)

    def _blob(self, request: Request, name: str, digest: str) -> Response:
        """Redirect to where the content is, with a link that is a credential."""
        self._store.blob(name, digest)
        link = f"https://{request.host}{_STORAGE}/v2/{name}/{digest}?sig={self._issued()}"
        return Response(status=307, headers={"Location": link, _DIGEST: digest})

    def _stored_blob(self, request: Request, name: str, digest: str) -> Response:
        if request.authorization is not None:
            raise RegistryRefusal(400, "InvalidAuthenticationInfo", "one authentication mechanism is allowed")
        if request.args.get("sig") not in self._store.tokens:
            raise RegistryRefusal(403, "AuthenticationFailed", "the signature is not valid")
        return _content(request, self._store.blob(name, digest), "application/octet-stream")

    def _tags(self, request: Request, name: str) -> Response:
        last, most = request.args.get("last", ""), request.args.get("n", type=int)
        tags = [tag for tag in self._store.tags(name) if tag > last]
        return json_response(200, {"name": name, "tags": tags if most is None else tags[:most]})

    def _upload(self, request: Request, name: str, upload: str) -> Response:
        digest, body = request.args.get("digest"), request.get_data()
        if request.method == "POST" and not upload:
            if digest:
                return self._stored(name, body, digest)
            session = uuid4().hex
            self._uploads[session] = b""
            return Response(status=202, headers={"Location": f"/v2/{name}/blobs/uploads/{session}"})
        if upload not in self._uploads:
            raise RegistryRefusal(404, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry")
        self._uploads[upload] += body
        if request.method == "PUT" and digest:
            return self._stored(name, self._uploads.pop(upload), digest)
        headers = {
            "Location": f"/v2/{name}/blobs/uploads/{upload}",
            "Range": f"0-{len(self._uploads[upload]) - 1}",
        }
        return Response(status=202, headers=headers)

    def _stored(self, name: str, content: bytes, digest: str) -> Response:
        self._store.put_blob(name, content, digest)
        return Response(status=201, headers={"Location": f"/v2/{name}/blobs/{digest}", _DIGEST: digest})


def _challenge(request: Request) -> str:
    """Return what a client is asked for: here both ways, of which Flux takes the first."""
    found = re.fullmatch(rf"{_NAME}/(manifests|blobs)/.*", request.path)
    scope = f"repository:{found['name']}:pull" if found else "registry:catalog:*"
    realm = f"https://{request.host}/oauth2/token"
    return f'Bearer realm="{realm}",service="{request.host}",scope="{scope}"'


def _content(request: Request, content: bytes, kind: str) -> Response:
    if request.method not in ("GET", "HEAD"):
        raise RegistryRefusal(405, "UNSUPPORTED", "the operation is unsupported")
    return Response(content, content_type=kind, headers={_DIGEST: digest_of_bytes(content)})


class RegistryServer(LocalService):
    """Serves a registry over TLS at a loopback port until closed; a context manager."""

    def __init__(
        self, store: RegistryStore, authority: Authority, *, port: int = 0, log_file: Path | None = None
    ) -> None:
        super().__init__(
            RegistryApp(store).answer, "registry", authority=authority, port=port, log_file=log_file
        )
