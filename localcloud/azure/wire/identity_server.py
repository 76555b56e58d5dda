"""The managed identity endpoint of App Service and Functions: a token for every caller that knows the header.

A function app finds it through ``IDENTITY_ENDPOINT`` and ``IDENTITY_HEADER``; so does
``DefaultAzureCredential``, and ``az login --identity``, which reads the tenant in the token. Tokens are
signed JWTs (HS256, a key per server) and are checked without state.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from werkzeug.wrappers import Request, Response

from localcloud.azure.world.catalog import TENANT
from localcloud.common.clock import system_clock
from localcloud.common.front_door import FrontDoor
from localcloud.common.http_server import HttpServer, json_response

API_VERSION = "2019-08-01"
_PRINCIPAL = "00000000-0000-0000-0000-0000000000aa"


class IdentityServer:
    """Serves ``/msi/token`` at a loopback port until closed; a context manager.

    ``header`` is the value that ``X-IDENTITY-HEADER`` must have. The clock must be the machine's time when
    real clients ask: they compare the expiry with their own.
    """

    def __init__(
        self,
        *,
        header: str,
        port: int = 0,
        lifetime: timedelta = timedelta(hours=24),
        clock: Callable[[], datetime] = system_clock,
    ) -> None:
        self._header, self._lifetime, self._clock = header, lifetime, clock
        self._key = secrets.token_bytes(32)
        self.door = FrontDoor(Request.application(self._answer), "identity", clock=clock)
        self._http = HttpServer(self.door, port=port)
        self.port = self._http.port
        self.endpoint = f"{self._http.url}/msi/token"
        """What ``IDENTITY_ENDPOINT`` is set to."""

    def accepts(self, token: str, audience: str | None = None) -> bool:
        """Return whether this server issued the token, it has not expired, and it is for the audience."""
        signed, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(signed).encode()):
            return False
        claims: dict[str, Any] = json.loads(_decode(signed.partition(".")[2]))
        if audience is not None and claims["aud"].rstrip("/") != audience.rstrip("/"):
            return False
        return float(claims["exp"]) > self._clock().timestamp()

    def issue(self, audience: str) -> tuple[str, int]:
        """Return a token for a resource, and the second of the epoch at which it expires."""
        now = self._clock()
        expires = int((now + self._lifetime).timestamp())
        payload = {
            "aud": audience,
            "iss": f"https://sts.windows.net/{TENANT}/",
            "oid": _PRINCIPAL,
            "appid": _PRINCIPAL,
            "idtyp": "app",
            "tid": TENANT,
            "iat": int(now.timestamp()),
            "exp": expires,
        }
        signed = f"{_encode({'alg': 'HS256', 'typ': 'JWT'})}.{_encode(payload)}"
        return f"{signed}.{self._sign(signed)}", expires

    def close(self) -> None:
        """Stop serving."""
        self._http.close()

    def __enter__(self) -> IdentityServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, request: Request) -> Response:
        if request.path != "/msi/token" or request.method != "GET":
            return _refusal(404, "there is only GET /msi/token")
        given = request.headers.get("X-IDENTITY-HEADER", "")
        if not hmac.compare_digest(given.encode(), self._header.encode()):
            return _refusal(401, "X-IDENTITY-HEADER is missing or wrong")
        if request.args.get("api-version") != API_VERSION:
            return _refusal(400, f"api-version must be {API_VERSION}")
        resource = request.args.get("resource", "")
        if not resource:
            return _refusal(400, "resource is missing")
        token, expires = self.issue(resource)
        return json_response(
            200,
            {
                "access_token": token,
                "expires_on": str(expires),
                "resource": resource,
                "token_type": "Bearer",
                "client_id": _PRINCIPAL,
            },
        )

    def _sign(self, signed: str) -> str:
        return _base64(hmac.digest(self._key, signed.encode(), hashlib.sha256))


def _refusal(status: int, message: str) -> Response:
    return json_response(status, {"statusCode": status, "message": message})


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _encode(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
