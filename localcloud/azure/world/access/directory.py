"""The directory: who can sign in to the local cloud, and which app roles the Roadstead API gives them.

App roles reach an API as ``roles`` in the tokens for it, of a person and of an app alike
(learn.microsoft.com/entra/identity-platform, "Access token" reference, payload).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

API = "api://roadstead-local"
"""The Application ID URI of the API's registration."""


@dataclass(frozen=True)
class Account:
    """A person, or an app with an identity of its own; ``roles`` are those of the API."""

    id: str
    name: str
    roles: tuple[str, ...] = ()
    app: bool = False

    def claims(self, audience: str) -> dict[str, Any]:
        """Return what a token for an audience says, apart from its issuer and its times."""
        claims: dict[str, Any] = {"aud": audience, "oid": self.id, "sub": self.id}
        claims |= {"appid": self.id, "idtyp": "app"} if self.app else _person(self.name)
        return claims | ({"roles": list(self.roles)} if self.roles and audience == API else {})


def _person(name: str) -> dict[str, Any]:
    return {"name": name.capitalize(), "upn": f"{name}@example.com", "idtyp": "user"}


FUNCTION_APP = Account("00000000-0000-0000-0000-0000000000aa", "function-app", app=True)
APPS = {
    name: Account(f"00000000-0000-0000-0000-0000000000{digits}", name, app=True)
    for name, digits in (("control", "b1"), ("worker", "b2"), ("deleter", "b3"))
}
"""The identities of a fleet's apps, where each runs with its own."""
ACCOUNTS = (
    FUNCTION_APP,
    *APPS.values(),
    Account("00000000-0000-0000-0000-0000000000a1", "reader", ("Reader",)),
    Account("00000000-0000-0000-0000-0000000000a2", "operator", ("Operator",)),
    Account("00000000-0000-0000-0000-0000000000a3", "approver", ("Approver",)),
    Account("00000000-0000-0000-0000-0000000000a4", "admin", ("Admin",)),
    Account("00000000-0000-0000-0000-0000000000a5", "nobody"),
    Account("00000000-0000-0000-0000-0000000000a6", "script", ("Operator",), app=True),
)
