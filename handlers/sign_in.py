"""Who calls: the identity that App Service verified, or the holder of a key.

App Service Authentication ("Easy Auth") verifies a token or a session, removes the headers below from what a
client sends, and sets them itself
(learn.microsoft.com/azure/app-service/configure-authentication-user-identities). Where it is off, anybody
can send them. So they are believed only if SIGN_IN is ``entra`` and the platform states that it is on: it
sets WEBSITE_AUTH_ENABLED (learn.microsoft.com/azure/app-service/reference-app-settings).
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from shared.app.api.access import Caller, Principal, Role, limited_roles
from shared.frozen import dataclass, field
from shared.language.model.base import shown

PRINCIPAL, KEY = "x-ms-client-principal", "x-functions-key"
ENTRA = "aad"
ROLES = ("roles", "http://schemas.microsoft.com/ws/2008/06/identity/claims/role")
"""App roles: by the name in the token, or by the long name that App Service may map it to."""
IDS = ("oid", "http://schemas.microsoft.com/identity/claims/objectidentifier")
ADDRESSES = (
    "preferred_username",
    "upn",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/upn",
    "email",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
)
APPS = ("azp", "appid")
MAX_NAME, MAX_CLIENT = 100, 200

Mode = Literal["entra", "keys"]


class _Claim(BaseModel):
    model_config = ConfigDict(defer_build=True)

    typ: str
    val: str


class _ClientPrincipal(BaseModel):
    """The JSON of the header, decoded; the names are Microsoft's."""

    model_config = ConfigDict(defer_build=True)

    auth_typ: str
    claims: list[_Claim]

    def first(self, *types: str) -> str:
        """Return the value of the first of these types that is there, "" for none."""
        found = {claim.typ: claim.val for claim in reversed(self.claims)}
        return next((found[kind] for kind in types if found.get(kind)), "")

    def all(self, *types: str) -> frozenset[str]:
        """Return the values of these types."""
        return frozenset(claim.val for claim in self.claims if claim.typ in types)


@dataclass(frozen=True)
class SignIn:
    """How callers prove who they are; ``keys`` has the roles by key. Without either, nobody is anybody."""

    mode: Mode = "keys"
    platform_verifies: bool = False
    """Whether App Service Authentication is on."""
    keys: Mapping[str, Role] = field(default_factory=dict, repr=False)

    def caller(self, headers: Mapping[str, str]) -> Caller | None:
        """Return who calls, None for nobody; a token counts before a key."""
        principal = self._signed_in(headers) or self._with_key(headers)
        if principal is None:
            return None
        client = shown(headers.get("user-agent") or "", MAX_CLIENT)
        return Caller(principal, address_of(headers), client)

    def given(self, headers: Mapping[str, str]) -> str:
        """Return what a caller gave to be recognised: "key" or "token", "" for nothing."""
        if headers.get("authorization") or headers.get(PRINCIPAL):
            return "token"
        return "key" if headers.get(KEY) else ""

    @property
    def has_pages(self) -> bool:
        """Whether a person with a browser can sign in."""
        return self.mode == "entra" and self.platform_verifies

    @property
    def problem(self) -> str:
        """Why nobody can sign in with Entra although the settings say so, "" for no problem."""
        if self.mode == "entra" and not self.platform_verifies:
            return "SIGN_IN is entra, but App Service Authentication is off: no identity is believed"
        return ""

    def _signed_in(self, headers: Mapping[str, str]) -> Principal | None:
        if self.mode != "entra" or not self.platform_verifies:
            return None
        try:
            read = _ClientPrincipal.model_validate_json(base64.b64decode(headers.get(PRINCIPAL) or ""))
        except (ValueError, ValidationError):
            return None
        identifier = read.first(*IDS)
        if read.auth_typ != ENTRA or not identifier:
            return None
        app = read.first(*APPS)
        own = read.first(*ADDRESSES) or read.first("name")
        name = own or (f"app {app}" if app else identifier)
        roles = frozenset(role for role in Role if role in read.all(*ROLES))
        addresses = frozenset(address.lower() for address in read.all(*ADDRESSES))
        identity, person = shown(identifier, MAX_NAME), bool(own or not app)
        limited = limited_roles(read.all(*ROLES))
        return Principal(identity, shown(name, MAX_NAME), roles, addresses, person=person, limited=limited)

    def _with_key(self, headers: Mapping[str, str]) -> Principal | None:
        given = (headers.get(KEY) or "").encode(errors="replace")
        found = None
        for key, role in self.keys.items():
            if hmac.compare_digest(given, key.encode()):
                found = role
        if found is None:
            return None
        return Principal(f"key:{found}", f"the key of {found}", frozenset({found}), person=False)


def address_of(headers: Mapping[str, str]) -> str:
    """Return the address of the client without its port: the last entry, which App Service adds.

    A client can send the header itself, so entries before the last one prove nothing.
    """
    last = (headers.get("x-forwarded-for") or "").rpartition(",")[2].strip()
    if last.startswith("["):
        last = last[1:].partition("]")[0]
    elif last.count(":") == 1:
        last = last.partition(":")[0]
    return shown(last, MAX_NAME)
