"""Signatures of Standard Webhooks (github.com/standard-webhooks/standard-webhooks), from either side.

The headers ``webhook-id`` and ``webhook-timestamp`` are signed with the raw body. A key is written as
``whsec_`` and its base64.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

PREFIX = "whsec_"
_VERSION = "v1,"


def standard_webhooks_key(secret: str) -> bytes:
    """Return the key of a secret, of this app or of another one. Raise ValueError."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith(PREFIX) or not 24 <= len(key) <= 64:
        raise ValueError("must be whsec_ and the base64 of 24 to 64 bytes")
    return key


def signature(identity: str, seconds: str, body: bytes, key: bytes) -> str:
    """Return what the header ``webhook-signature`` has for a body, with its version."""
    signed = f"{identity}.{seconds}.".encode(errors="replace") + body
    return _VERSION + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def is_signed(headers: Mapping[str, str], body: bytes, key: bytes) -> bool:
    """Return whether one of the signatures is that of the key, compared in constant time.

    The names of ``headers`` are in lower case. An empty key signs nothing, and takes as long. The time must
    be an integer, in seconds; whether it is too old is for the caller to say.
    """
    identity, seconds = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not (identity and seconds.isascii() and seconds.isdigit() and len(seconds) <= 11):
        return False
    expected = signature(identity, seconds, body, key).encode()
    given = [value for value in headers.get("webhook-signature", "").split(" ") if value.startswith(_VERSION)]
    equal = [hmac.compare_digest(expected, value.encode(errors="replace")) for value in given]
    return bool(key) and any(equal)
