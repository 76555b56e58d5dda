"""Who may do what: the app roles, and the decision about a caller. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from shared.frozen import dataclass


class Role(StrEnum):
    """The app roles, by the values that they have in Entra."""

    READER = "Reader"
    """Reads everything that the API shows."""
    OPERATOR = "Operator"
    """Repeats and cleans up: replays, imports, dead letters."""
    APPROVER = "Approver"
    """Approves what does not happen by itself: some deletes, and corrections that destroy."""
    ADMIN = "Admin"
    """Everything."""


INCLUDED: Mapping[Role, frozenset[Role]] = {
    Role.READER: frozenset({Role.READER}),
    Role.OPERATOR: frozenset({Role.OPERATOR, Role.READER}),
    Role.APPROVER: frozenset({Role.APPROVER, Role.READER}),
    Role.ADMIN: frozenset(Role),
}
"""What each role includes. An Operator approves nothing, and an Approver replays nothing."""


@dataclass(frozen=True)
class Principal:
    """A verified identity: a person or an app of Entra by its object id, or the holder of a key.

    ``addresses`` are what Entra states of a person: the sign-in name and the e-mail address, in lower case.
    ``person`` is False for an app, and for the holder of a key: nobody knows who that is.
    """

    id: str
    name: str
    roles: frozenset[Role]
    addresses: frozenset[str] = frozenset()
    person: bool = True


@dataclass(frozen=True)
class Caller:
    """Who calls, from which address, and with which program, as that calls itself."""

    principal: Principal
    address: str = ""
    client: str = ""

    @property
    def name(self) -> str:
        """How events and plans name the caller."""
        return self.principal.name


@dataclass(frozen=True)
class Denial:
    """Why a call is refused: 401 for nobody, 403 for somebody without the role."""

    status: int
    error: str


def decide(principal: Principal | None, required: Role, given: str = "") -> Denial | None:
    """Return why a principal may not do what needs a role; None if it may.

    ``given`` is what somebody who is nobody gave: "key" or "token", "" for nothing.
    """
    if principal is None:
        problem = f"this app does not know the {given}" if given else "sign in first"
        return Denial(401, f"{problem}: this needs the role {required}")
    if any(required in INCLUDED[role] for role in principal.roles):
        return None
    has = ", ".join(sorted(principal.roles)) or "no role"
    return Denial(403, f"this needs the role {required}; {principal.name} has {has}")
