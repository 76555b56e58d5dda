"""The REST API of a vault's secrets over TLS. The README has its rules and their sources.

``PUT /_local/secrets/NAME`` {"value"} adds a version without a token, as a person would in the portal;
``PATCH`` {"enabled"} disables the newest one, and ``DELETE`` deletes the secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any
from uuid import uuid4

from werkzeug.wrappers import Request, Response

from localcloud.common.certificates import Authority
from localcloud.common.http_server import json_response
from localcloud.common.local_service import LocalService
from localcloud.keyvault.vault_world import SecretVersion, VaultError, VaultWorld

VERSIONS = (*("2016-10-01", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "2025-07-01", "2026-04-01"),)
"""The API versions, as ``ApiVersion`` of azure-keyvault-secrets 4.12 lists them."""
_OF_SECRETS = "Microsoft.KeyVault/vaults/secrets"
GET, LIST = f"{_OF_SECRETS}/getSecret/action", f"{_OF_SECRETS}/readMetadata/action"
SET, DELETE = f"{_OF_SECRETS}/setSecret/action", f"{_OF_SECRETS}/delete"
SECRETS_USER = (GET, LIST)
"""The data actions of the role Key Vault Secrets User (learn.microsoft.com/azure/role-based-access-control,
"Azure built-in roles for Security")."""
_SECRET = re.compile(r"/secrets/(?P<name>[^/]+)(/(?P<version>[^/]*))?/?")
_LOCAL = re.compile(r"/_local/secrets/(?P<name>[^/]+)")


class VaultServer(LocalService):
    """Serves a vault at a loopback port until closed; a context manager.

    ``tenant`` is where tokens come from, ``accepts`` decides whether one is valid for an audience, and
    ``granted`` which data actions its holder has, None for all. ``resource`` is what the challenge names,
    that of the vault's own domain by default: the domain of 127.0.0.1 is "0.0.1", as that of
    NAME.vault.azure.net is vault.azure.net.
    """

    def __init__(
        self,
        world: VaultWorld,
        authority: Authority,
        *,
        tenant: str,
        accepts: Callable[[str, str], bool],
        granted: Callable[[str], Collection[str] | None] = lambda _token: None,
        port: int = 0,
        resource: str = "",
        log_file: Path | None = None,
    ) -> None:
        self._world, self._tenant, self._accepts, self._granted = world, tenant, accepts, granted
        super().__init__(self._application, "vault", authority=authority, port=port, log_file=log_file)
        self.resource = resource or f"https://0.0.1:{self.port}"

    def _application(self, request: Request) -> Response:
        try:
            if request.path.startswith("/_local/"):
                return self._control(request)
            self._check_version(request.args.get("api-version", ""))
            reply = self._route(request, self._admitted(request))
        except VaultError as error:
            reply = self._refusal(error)
        reply.headers["x-ms-request-id"] = str(uuid4())
        reply.headers["x-ms-keyvault-region"] = "westeurope"
        return reply

    def _admitted(self, request: Request) -> str:
        """Return the token of a request that may be routed."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise VaultError(401, "Unauthorized", "AKV10000: Request is missing a Bearer or PoP token.")
        if not self._accepts(token, self.resource):
            raise VaultError(401, "Unauthorized", "AKV10022: Invalid audience, or the token has expired.")
        return token

    def _route(self, request: Request, token: str) -> Response:
        match = _SECRET.fullmatch(request.path)
        if match is None:
            raise VaultError(404, "NotFound", "There is no such operation in the local vault.")
        name, version = match["name"], match["version"] or ""
        if request.method == "GET" and version == "versions":
            self._authorize(token, LIST, name)
            listed = [self._item(version) for version in self._world.versions(name)]
            return json_response(200, {"value": listed, "nextLink": None})
        if request.method == "GET":
            self._authorize(token, GET, name)
            return json_response(200, self._bundle(self._world.get(name, version)))
        if request.method == "PUT" and not version:
            self._authorize(token, SET, name)
            given = _body(request)
            enabled = (given.get("attributes") or {}).get("enabled", True)
            made = self._world.set(
                name,
                str(given["value"]),
                enabled=enabled,
                content_type=given.get("contentType") or "",
                tags=given.get("tags"),
            )
            return json_response(200, self._bundle(made))
        if request.method == "PATCH":
            self._authorize(token, SET, name)
            enabled = (_body(request).get("attributes") or {}).get("enabled", True)
            return json_response(200, self._item(self._world.enable(name, version, enabled=enabled)))
        if request.method == "DELETE" and not version:
            self._authorize(token, DELETE, name)
            gone = self._item(self._world.delete(name))
            return json_response(200, {**gone, "recoveryId": f"{self.url}/deletedsecrets/{name}"})
        raise VaultError(405, "MethodNotAllowed", "The local vault has no such operation.")

    def _authorize(self, token: str, action: str, name: str) -> None:
        granted = self._granted(token)
        if granted is None or action in granted:
            return
        message = (
            "Caller is not authorized to perform action on resource.\r\n"
            "If role assignments, deny assignments or role definitions were changed recently, please observe "
            f"propagation time.\r\nAction: '{action}'\r\n"
            f"Resource: '/subscriptions/.../vaults/{self._world.name}/secrets/{name}'\r\n"
            f"Assignment: (not found)\r\nVault: {self._world.name};location=westeurope\r\n"
        )
        raise VaultError(403, "Forbidden", message, "ForbiddenByRbac")

    def _check_version(self, version: str) -> None:
        if not version:
            raise VaultError(400, "BadParameter", "api-version must be specified")
        if version not in VERSIONS:
            message = (
                f"The specified version ({version}) is not recognized. Consider using the latest supported"
            )
            raise VaultError(400, "BadParameter", f"{message} version ({VERSIONS[-1]}).")

    def _bundle(self, version: SecretVersion) -> dict[str, Any]:
        return {"value": version.value, **self._item(version)}

    def _item(self, version: SecretVersion) -> dict[str, Any]:
        times = {"created": int(version.created.timestamp()), "updated": int(version.updated.timestamp())}
        recovery = {"recoveryLevel": "Recoverable+Purgeable", "recoverableDays": 90}
        shown: dict[str, Any] = {
            "id": f"{self.url}/secrets/{version.name}/{version.version}",
            "attributes": {"enabled": version.enabled, **times, **recovery},
            "tags": dict(version.tags),
        }
        return shown | ({"contentType": version.content_type} if version.content_type else {})

    def _refusal(self, error: VaultError) -> Response:
        inner = {"innererror": {"code": error.inner}} if error.inner else {}
        reply = json_response(
            error.status, {"error": {"code": error.code, "message": error.message, **inner}}
        )
        if error.status == 401:
            issuer = f"https://login.microsoftonline.com/{self._tenant}"
            challenge = f'Bearer authorization="{issuer}", resource="{self.resource}"'
            reply.headers["WWW-Authenticate"] = challenge
        return reply

    def _control(self, request: Request) -> Response:
        match = _LOCAL.fullmatch(request.path)
        if match is None:
            return json_response(404, {"message": "no such control of the local vault"})
        name = match["name"]
        try:
            if request.method == "PUT":
                self._world.set(name, str(_body(request)["value"]))
            elif request.method == "PATCH":
                self._world.enable(name, enabled=bool(_body(request)["enabled"]))
            elif request.method == "DELETE":
                self._world.delete(name)
            else:
                return json_response(405, {"message": "PUT, PATCH or DELETE"})
        except VaultError as error:
            return self._refusal(error)
        except KeyError as error:
            return json_response(400, {"message": f"{error} is missing"})
        return Response(status=204)


def _body(request: Request) -> dict[str, Any]:
    try:
        given = json.loads(request.get_data() or b"{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise VaultError(400, "BadParameter", "The request body is not a JSON object.")
    return given
