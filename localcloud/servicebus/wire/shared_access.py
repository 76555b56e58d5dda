"""Shared access signatures: the tokens that a client sends before it may use a queue."""

from __future__ import annotations

import base64
import hashlib
import hmac
from urllib.parse import parse_qs, unquote_plus, urlsplit

PREFIX = "SharedAccessSignature "


class InvalidToken(Exception):
    """The token has a wrong signature, has expired, or is for another resource."""


def resource_path(address: str) -> str:
    """Return the path of a resource URI or link address, as "plans/$management", in lower case."""
    return (urlsplit(address).path if "://" in address else address).strip("/").lower()


def verify(token: str, audience: str, *, key: str, now: float) -> None:
    """Check a token for an audience (a resource URI); raise InvalidToken. ``now`` is seconds since 1970.

    The signature is HMAC-SHA256 over the quoted resource URI, a line feed and the expiry.
    """
    if not token.startswith(PREFIX):
        raise InvalidToken("MalformedToken: the token is not a shared access signature")
    fields = dict(pair.split("=", 1) for pair in token.removeprefix(PREFIX).split("&") if "=" in pair)
    resource, expiry = fields.get("sr", ""), fields.get("se", "")
    digest = hmac.new(key.encode(), f"{resource}\n{expiry}".encode(), hashlib.sha256).digest()
    given = parse_qs(f"sig={fields.get('sig', '')}").get("sig", [""])[0]
    if not hmac.compare_digest(base64.b64encode(digest), given.encode()):
        raise InvalidToken("InvalidSignature: The token has an invalid signature.")
    if not expiry.isdigit() or int(expiry) <= now:
        raise InvalidToken("ExpiredToken: The token is expired.")
    if not covers(resource_path(unquote_plus(resource)), resource_path(audience)):
        raise InvalidToken("InvalidAudience: the token is for another resource")


def covers(granted: str, path: str) -> bool:
    """Return whether a right on one path holds for another: itself, or what is below it."""
    return granted in ("", path) or path.startswith(f"{granted}/")
