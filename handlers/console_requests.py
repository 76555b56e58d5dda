"""What a browser sends to the console, and in which form an answer goes back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

import azure.functions as func

from shared.app.api.access import Caller
from shared.app.console.render import POLICY, asset
from shared.frozen import dataclass

EASY_AUTH, SESSION = "AppServiceAuthSession", "__Host-roadstead-session"
"""Cookies: App Service's session, and ours of a key."""
LONGEST_FORM = 1 << 20
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True)
class ConsoleRequest:
    """A request: where to, who asks, and the session that its forms are bound to."""

    http: func.HttpRequest
    path: str
    cookies: Mapping[str, str]
    caller: Caller | None
    with_key: bool

    @property
    def session(self) -> str:
        """What the token of a form is bound to: the person, and the session of the browser."""
        identity = self.caller.principal.id if self.caller else ""
        cookie = self.cookies.get(SESSION) or self.cookies.get(EASY_AUTH) or ""
        return f"{identity}|{hashlib.sha256(cookie.encode()).hexdigest()}"

    @property
    def address(self) -> str:
        """The path with its query."""
        query = urlencode(dict(self.http.params))
        return f"{self.path}?{query}" if query else self.path


def file_of(name: str) -> func.HttpResponse:
    """Return one of the console's own files, which a browser keeps."""
    found = asset(name)
    if found is None:
        return func.HttpResponse(status_code=404)
    body, kind = found
    return func.HttpResponse(body, mimetype=kind, charset="utf-8", headers=FOREVER)


def page_of(status: int, body: str, headers: Mapping[str, str]) -> func.HttpResponse:
    """Return a page as an answer."""
    return func.HttpResponse(
        body, status_code=status, mimetype="text/html", charset="utf-8", headers=dict(headers)
    )


def led_to(address: str, status: int, headers: Mapping[str, str] | None = None) -> func.HttpResponse:
    """Return an answer that leads a browser to an address."""
    return func.HttpResponse(status_code=status, headers={**HEADERS, **(headers or {}), "Location": address})


def cookies_of(req: func.HttpRequest) -> Mapping[str, str]:
    """Return the cookies of a request, none where they cannot be read."""
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(req.headers.get("cookie") or "").items()}
    except CookieError:
        return {}


def fields_of(req: func.HttpRequest) -> list[tuple[str, str]]:
    """Return the fields of a form, none for a body that is none or too large."""
    body = req.get_body() or b""
    kind = (req.headers.get("content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded" or len(body) > LONGEST_FORM:
        return []
    try:
        return parse_qsl(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=10_000)
    except ValueError:
        return []


def is_own(req: func.HttpRequest) -> bool:
    """Return whether a browser sends a form of this site.

    It says so itself (W3C, "Fetch Metadata Request Headers"); one that is older states the origin.
    """
    site = (req.headers.get("sec-fetch-site") or "").lower()
    if site:
        return site == "same-origin"
    origin = req.headers.get("origin") or ""
    return bool(origin) and origin.partition("://")[2] == (
        req.headers.get("host") or urlsplit(req.url).netloc
    )


def inside(address: str) -> str:
    """Return an address of the console, "/" for any other."""
    fits = address.isprintable() and address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if fits else "/"
