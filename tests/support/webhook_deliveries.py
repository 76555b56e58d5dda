"""Signed deliveries of the webhook of GitHub."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

COMMIT = "c0ffee" + "0" * 34


def payload(**changes: Any) -> bytes:
    body = {"ref": "refs/heads/main", "after": COMMIT, "repository": {"full_name": "example/fleet"}}
    return json.dumps(body | changes).encode()


def sign(body: bytes, key: str = "new") -> str:
    return "sha256=" + hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
