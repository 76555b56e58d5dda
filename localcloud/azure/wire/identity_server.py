"""The managed identity endpoint of App Service and Functions, and the issuer of its tokens.

A function app finds the endpoint through ``IDENTITY_ENDPOINT`` and ``IDENTITY_HEADER``; so does
``DefaultAzureCredential``, and ``az login --identity``, which reads the tenant in the token. The parameter
``client_id`` selects a user-assigned identity; here these are the accounts of the directory, people too,
since a person cannot type a password here. Tokens are JWTs, signed with RS256. Whoever checks them finds
the keys through the metadata of the issuer, as with Entra (OpenID Connect Discovery 1.0).
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from werkzeug.wrappers import Request, Response

from localcloud.azure.world.access.directory import ACCOUNTS, FUNCTION_APP, Account
from localcloud.azure.world.catalog import TENANT
from localcloud.common.clock import system_clock
from localcloud.common.http_server import json_response
from localcloud.common.local_service import LocalService

API_VERSION = "2019-08-01"
ISSUER = f"https://sts.windows.net/{TENANT}/"
_KEY_ID = "local"


class IdentityServer(LocalService):
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
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        super().__init__(self._answer, "identity", port=port, clock=clock)
        self.endpoint = f"{self.url}/msi/token"
        """What ``IDENTITY_ENDPOINT`` is set to."""
        self.authority = f"{self.url}/{TENANT}"
        """Where the metadata of the issuer is, below ``/.well-known``."""

    def holder(self, token: str) -> str:
        """Return the id of the account for which this server issued a token, "" for another token."""
        return str(self._claims(token).get("oid", ""))

    def caller(self, token: str) -> str:
        """Return how the activity log names the holder of a token: the UPN of a person, the id of an app."""
        return str(self._claims(token).get("upn") or self.holder(token))

    def accepts(self, token: str, audience: str | None = None) -> bool:
        """Return whether this server issued the token, it has not expired, and it is for the audience."""
        claims = self._claims(token)
        if not claims:
            return False
        if audience is not None and claims["aud"].rstrip("/") != audience.rstrip("/"):
            return False
        return float(claims["exp"]) > self._clock().timestamp()

    def _claims(self, token: str) -> dict[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key.public_key(),
                ["RS256"],
                issuer=ISSUER,
                # By the clock of this server, in ``accepts``.
                options={"verify_exp": False, "verify_aud": False, "verify_iat": False},
            )
        except jwt.InvalidTokenError:
            return {}
        return claims

    def issue(self, audience: str, account: Account = FUNCTION_APP) -> tuple[str, int]:
        """Return a token for a resource, and the second of the epoch at which it expires."""
        now = self._clock()
        expires = int((now + self._lifetime).timestamp())
        times = {"iat": int(now.timestamp()), "exp": expires}
        claims = {**account.claims(audience), "iss": ISSUER, "tid": TENANT, **times}
        return jwt.encode(claims, self._key, "RS256", headers={"kid": _KEY_ID}), expires

    @cached_property
    def _keys(self) -> dict[str, Any]:
        public = json.loads(RSAAlgorithm.to_jwk(self._key.public_key()))
        return {"keys": [{**public, "kid": _KEY_ID, "use": "sig"}]}

    def _answer(self, request: Request) -> Response:
        if request.method != "GET":
            return _refusal(404, "there is only GET")
        match request.path.removeprefix(f"/{TENANT}"):
            case "/msi/token":
                return self._managed_identity(request)
            case "/.well-known/openid-configuration":
                keys = f"{self.authority}/discovery/keys"
                return json_response(200, {"issuer": ISSUER, "jwks_uri": keys})
            case "/discovery/keys":
                return json_response(200, self._keys)
            case "/people":
                return json_response(200, [account.name for account in ACCOUNTS if not account.app])
            case "/sign-in":
                return self._sign_in(request.args.get("person", ""), request.args.get("audience", ""))
            case _:
                return _refusal(404, "there is no such page")

    def _sign_in(self, person: str, audience: str) -> Response:
        """Sign a person in without a password: no part of Entra."""
        for account in ACCOUNTS:
            if account.name == person and not account.app:
                return json_response(200, {"token": self.issue(audience, account)[0]})
        return _refusal(404, "there is no such person")

    def _managed_identity(self, request: Request) -> Response:
        given = request.headers.get("X-IDENTITY-HEADER", "")
        if not hmac.compare_digest(given.encode(), self._header.encode()):
            return _refusal(401, "X-IDENTITY-HEADER is missing or wrong")
        if request.args.get("api-version") != API_VERSION:
            return _refusal(400, f"api-version must be {API_VERSION}")
        resource = request.args.get("resource", "")
        if not resource:
            return _refusal(400, "resource is missing")
        wanted = request.args.get("client_id", FUNCTION_APP.id)
        found = [account for account in ACCOUNTS if account.id == wanted]
        if not found:
            return _refusal(
                400, "No User Assigned or Delegated Managed Identity found for specified ClientId"
            )
        token, expires = self.issue(resource, found[0])
        return json_response(
            200,
            {
                "access_token": token,
                "expires_on": str(expires),
                "resource": resource,
                "token_type": "Bearer",
                "client_id": wanted,
            },
        )


def _refusal(status: int, message: str) -> Response:
    return json_response(status, {"statusCode": status, "message": message})
