"""App Service Authentication ("Easy Auth") in front of the functions, as a WSGI application.

It verifies a bearer token, or the session of a browser, and passes the identity on in headers that no
client can set. Each rule names its source in Microsoft's documentation:

- The headers, their JSON, and that a client cannot set them: "Work with user identities in Azure App Service
  authentication".
- Signature, issuer, audience and times of a token: "Configure your App Service to use Microsoft Entra
  sign-in". The clocks may differ by five minutes, as in Microsoft.IdentityModel's
  TokenValidationParameters.
- ``/.auth/login/aad``, ``post_login_redirect_uri``, ``/.auth/logout`` and the cookie: "Customize sign-ins and
  sign-outs". A redirect leads to the app itself.
- A session ends a fixed time after the sign-in: "cookieExpiration" of 'authsettingsV2' with the convention
  FixedTime, as infra/sign_in.bicep sets it.
- What happens to a request without an identity, and excluded paths: Microsoft.Web/sites/config
  'authsettingsV2', GlobalValidation. The documentation does not say what AllowAnonymous does with a token
  that is invalid. Here it passes without an identity: the case in which the app alone protects itself.

Where Entra would ask for a password, a page asks which person of the local directory signs in.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import httpx
import jwt
from werkzeug.utils import redirect
from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import json_response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

ENABLED = "WEBSITE_AUTH_ENABLED"
"""What App Service sets in the environment of the app, see its list of environment variables."""
_OWN = ("HTTP_X_MS_CLIENT_PRINCIPAL", "HTTP_X_MS_TOKEN_")
_COOKIE = "AppServiceAuthSession"
_LOGIN, _LOGOUT, _CALLBACK = "/.auth/login/aad", "/.auth/logout", "/.auth/login/aad/callback"
_SIGNED_OUT = f"{_LOGOUT}/complete"
_SKEW_SECONDS = 300
_SECONDS = 5
_URI = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims"
_LONG: Mapping[str, str] = {
    "oid": "http://schemas.microsoft.com/identity/claims/objectidentifier",
    "tid": "http://schemas.microsoft.com/identity/claims/tenantid",
    "sub": f"{_URI}/nameidentifier",
    "upn": f"{_URI}/upn",
    "email": f"{_URI}/emailaddress",
}
"""What has a long name in the header: Microsoft.IdentityModel's ClaimTypeMapping. ``roles`` keeps its
short name, see WEBSITE_AUTH_USE_LEGACY_CLAIMS in the list of environment variables."""


@dataclass(frozen=True)
class AuthSettings:
    """What authsettingsV2 says; ``authority`` is where the metadata of the issuer is.

    ``required``: a request without an identity is redirected to the sign-in, except to an excluded path.
    ``session_seconds`` is how long a browser stays signed in.
    """

    authority: str
    audiences: tuple[str, ...]
    required: bool = False
    excluded_paths: tuple[str, ...] = ()
    session_seconds: int = 3600


class EasyAuth:
    """Passes requests on to an application, with the identity of the caller; ``elapsed`` are seconds."""

    def __init__(
        self,
        application: WSGIApplication,
        settings: AuthSettings,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application, self._settings, self._elapsed = application, settings, elapsed
        self._sessions: dict[str, tuple[Mapping[str, Any], float]] = {}
        self._issuer: _Issuer | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        for name in [name for name in environ if name.startswith(_OWN)]:
            del environ[name]
        request = Request(environ)
        reply = (
            self._own_page(request) if request.path.startswith("/.auth/") else self._gate(request, environ)
        )
        return reply(environ, start_response) if reply else self._application(environ, start_response)

    def _gate(self, request: Request, environ: WSGIEnvironment) -> Response | None:
        """Put the identity into the environment; return a reply for a request that goes no further."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        bearer = scheme.lower() == "bearer"
        claims = self._claims(token) if bearer else self._of_session(request.cookies.get(_COOKIE, ""))
        if claims is not None:
            environ |= _identity(claims)
            return None
        if not self._settings.required or request.path in self._settings.excluded_paths:
            return None
        if bearer:
            return Response(status=401, headers={"WWW-Authenticate": "Bearer"})
        return redirect(f"{_LOGIN}?post_login_redirect_uri={quote(request.full_path.rstrip('?'))}")

    def _of_session(self, cookie: str) -> Mapping[str, Any] | None:
        claims, end = self._sessions.get(cookie, (None, 0.0))
        return claims if self._elapsed() < end else None

    def _claims(self, token: str) -> Mapping[str, Any] | None:
        """Return what a valid token says, None for any other."""
        if self._issuer is None:
            self._issuer = _Issuer(self._settings.authority)
        try:
            return jwt.decode(
                token,
                self._issuer.key_of(token),
                ["RS256"],
                audience=self._settings.audiences,
                issuer=self._issuer.name,
                leeway=_SKEW_SECONDS,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError:
            return None

    def _own_page(self, request: Request) -> Response:
        after = _inside(request.args.get("post_login_redirect_uri", "/"))
        if request.path == _LOGIN:
            people = _read(f"{self._settings.authority}/people")
            return Response(_sign_in_page(people, after), mimetype="text/html")
        if request.path == _CALLBACK:
            return self._signed_in(request.args.get("person", ""), after)
        if request.path == _SIGNED_OUT:
            return Response(
                "<!doctype html><title>Signed out</title><h1>You are signed out</h1>", mimetype="text/html"
            )
        leave = _inside(request.args.get("post_logout_redirect_uri", _SIGNED_OUT))
        reply = redirect(leave) if request.path == _LOGOUT else json_response(404, {})
        if request.path == _LOGOUT:
            self._sessions.pop(request.cookies.get(_COOKIE, ""), None)
            reply.delete_cookie(_COOKIE)
        return reply

    def _signed_in(self, person: str, after: str) -> Response:
        audience = quote(self._settings.audiences[0], safe="")
        url = f"{self._settings.authority}/sign-in?person={quote(person, safe='')}&audience={audience}"
        claims = self._claims(_read(url)["token"])
        if claims is None:
            return Response(status=401)
        session = secrets.token_urlsafe(32)
        lasts = self._settings.session_seconds
        self._sessions[session] = claims, self._elapsed() + lasts
        reply = redirect(after)
        reply.set_cookie(_COOKIE, session, max_age=lasts, httponly=True, samesite="Lax")
        return reply


class _Issuer:
    """The issuer's name and keys, from its metadata."""

    def __init__(self, authority: str) -> None:
        metadata = _read(f"{authority}/.well-known/openid-configuration")
        self.name: str = metadata["issuer"]
        self._keys = jwt.PyJWKSet.from_dict(_read(metadata["jwks_uri"]))

    def key_of(self, token: str) -> jwt.PyJWK:
        """Return the key that a token names; raise InvalidTokenError for an unknown one."""
        try:
            return self._keys[str(jwt.get_unverified_header(token).get("kid"))]
        except KeyError:
            raise jwt.InvalidTokenError("signed with an unknown key") from None


def _identity(claims: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of an identity, as names of the environment."""
    principal = {
        "auth_typ": "aad",
        "claims": [{"typ": typ, "val": val} for typ, val in _flat(claims)],
        "name_typ": f"{_URI}/emailaddress",
        "role_typ": "http://schemas.microsoft.com/ws/2008/06/identity/claims/role",
    }
    name = str(claims.get("upn") or claims.get("appid") or "")
    return {
        "HTTP_X_MS_CLIENT_PRINCIPAL": base64.b64encode(json.dumps(principal).encode()).decode(),
        "HTTP_X_MS_CLIENT_PRINCIPAL_ID": str(claims.get("oid", "")),
        "HTTP_X_MS_CLIENT_PRINCIPAL_NAME": name,
        "HTTP_X_MS_CLIENT_PRINCIPAL_IDP": "aad",
    }


def _flat(claims: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each type, by its name in the header, with its value; those of a list one by one."""
    for name, value in claims.items():
        for document in value if isinstance(value, list) else [value]:
            yield _LONG.get(name, name), str(document)


def _inside(address: str) -> str:
    """Return an address of the app itself, "/" for any other."""
    parts = urlsplit(address)
    inside = address.startswith("/") and not address.startswith(("//", "/\\")) and not parts.netloc
    return address if inside else "/"


def _sign_in_page(people: list[str], after: str) -> str:
    links = "".join(
        f'<li><a href="{_CALLBACK}?person={quote(name)}&amp;post_login_redirect_uri='
        f'{escape(quote(after, safe=""))}">{escape(name)}</a></li>'
        for name in people
    )
    return f"<!doctype html><title>Sign in</title><h1>Sign in to the local cloud as</h1><ul>{links}</ul>"


def _read(url: str) -> Any:
    return httpx.get(url, timeout=_SECONDS, trust_env=False).raise_for_status().json()
