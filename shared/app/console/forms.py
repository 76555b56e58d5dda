"""Forms of the console: the token that proves whose page sent one, sessions of keys, and what a form says.

A form of another site is sent with the session of whoever looks at it. So each form of the console has a
token that only a page for this session can have (OWASP, "Cross-Site Request Forgery Prevention": signed
double submit, bound to the session). Tokens and sessions are signed with a key that all instances of the app
have: it is derived from a secret of the vault, so that nobody stores another one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from shared.app.api.access import Role
from shared.frozen import dataclass

SESSION = timedelta(hours=1)
"""How long somebody with a key is signed in, as infra/sign_in.bicep has it for those of Entra."""
TOKEN_HOURS = 2
"""For how many hours, at most, a page that stays open can send its forms."""


@dataclass(frozen=True)
class Signer:
    """Signs what a browser sends back; the first secret signs, and each may have signed."""

    secrets: Sequence[str]

    def token(self, session: str, now: datetime, purpose: str = "form") -> str:
        """Return the token of the forms of a session, or of another purpose."""
        return self._sign(self.secrets[0], purpose, session, str(_hour(now)))

    def is_token(self, given: str, session: str, now: datetime, purpose: str = "form") -> bool:
        """Return whether a form has the token of its session, and is not too old."""
        hours = [str(_hour(now) - hour) for hour in range(TOKEN_HOURS)]
        found = [self._sign(secret, purpose, session, hour) for secret in self.secrets for hour in hours]
        return any(hmac.compare_digest(given.encode(), token.encode()) for token in found)

    def sealed(self, purpose: str, value: Any) -> str:
        """Return a value as a cookie can have it: readable, and unchanged when it comes back."""
        text = base64.urlsafe_b64encode(json.dumps(value).encode()).decode()
        return f"{text}.{self._sign(self.secrets[0], purpose, text)}"

    def opened(self, purpose: str, sealed: str) -> Any:
        """Return the value that was sealed for a purpose; None for anything else."""
        text, _, signature = sealed.partition(".")
        found = [self._sign(secret, purpose, text) for secret in self.secrets]
        if not any(hmac.compare_digest(signature.encode(), own.encode()) for own in found):
            return None
        return json.loads(base64.urlsafe_b64decode(text))

    def _sign(self, secret: str, *parts: str) -> str:
        key = hmac.digest(secret.encode(), b"roadstead console", "sha256")
        return hmac.new(key, "\n".join(parts).encode(), hashlib.sha256).hexdigest()


def _hour(now: datetime) -> int:
    return int(now.timestamp()) // 3600


def new_session(role: Role, unique: str, now: datetime) -> Mapping[str, Any]:
    """Return the session of the holder of a key, as its cookie has it: never the key."""
    return {"role": role.value, "id": unique, "until": (now + SESSION).timestamp()}


def role_of_session(session: Any, now: datetime) -> Role | None:
    """Return the role of a session, None for one that has ended, or none."""
    if not isinstance(session, dict) or session.get("until", 0) <= now.timestamp():
        return None
    return Role(session["role"])


_LISTS = frozenset({"clusters", "what"})
_FLAGS = frozenset({"override", "all"})
_NUMBERS = frozenset({"pull"})


def body_of(fields: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
    """Return what the fields of a form say, as the JSON body of the API has it.

    A field that repeats is a list where the body has one. ``fields:PATH`` is an entry of ``fields``, and
    ``deadLetters`` is a queue and an id, separated by a space.
    """
    body: dict[str, Any] = {}
    for field_name, value in fields:
        name, _, part = field_name.partition(":")
        if part:
            body.setdefault(name, {})[part] = value
        elif name == "deadLetters":
            queue, _, letter = value.partition(" ")
            body.setdefault(name, []).append({"queue": queue, "id": letter})
        elif name in _LISTS:
            body.setdefault(name, []).append(value)
        elif name in _FLAGS:
            body[name] = value == "yes"
        elif name in _NUMBERS:
            body[name] = int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else value
        elif value:
            body[name] = value
    return body
