"""Who may do what: the app roles, and the decision about a caller. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
    limited: frozenset[tuple[Role, str]] = frozenset()
    """The roles that it has in one environment alone, each with that."""

    def roles_in(self, environments: Collection[str]) -> frozenset[Role]:
        """Return the roles that it has for all of these environments, at least one, with their parts."""
        by_environment = [
            {included for role, limit in self.limited if limit == name for included in INCLUDED[role]}
            for name in environments
        ]
        return self.roles | frozenset(set.intersection(*by_environment) if by_environment else ())


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


LIMITED = (Role.OPERATOR, Role.APPROVER, Role.ADMIN)
"""The roles that somebody may have in one environment alone: everybody with a role reads everything."""
MAX_ROLE = 120
"""Characters of the value of an app role in Entra: learn.microsoft.com/graph/api/resources/approle."""


def limited_roles(values: Collection[str]) -> frozenset[tuple[Role, str]]:
    """Return the roles in one environment that values of app roles name, such as ``Approver.production``."""
    parts = (value.partition(".") for value in values if len(value) <= MAX_ROLE)
    known = {str(role): role for role in LIMITED}
    return frozenset((known[name], limit) for name, _, limit in parts if name in known and limit)


def decide(
    principal: Principal | None, required: Role, given: str = "", environments: Collection[str] = ()
) -> Denial | None:
    """Return why a principal may not do what needs a role; None if it may.

    ``given`` is what somebody who is nobody gave: "key" or "token", "" for nothing. ``environments`` are
    those that it concerns, "" for none: somebody with the role in each of them may. Without one it concerns
    the whole fleet.
    """
    if principal is None:
        problem = f"this app does not know the {given}" if given else "sign in first"
        return Denial(401, f"{problem}: this needs the role {required}")
    reads = required is Role.READER and principal.limited
    if reads or any(required in INCLUDED[role] for role in principal.roles_in(environments)):
        return None
    here = [f"{required}.{name}" for name in sorted(environments) if name]
    needs = f"the role {required}" + (f", or {' and '.join(here)}" if here else "")
    own = (*principal.roles, *(f"{role}.{limit}" for role, limit in principal.limited))
    return Denial(403, f"this needs {needs}; {principal.name} has {', '.join(sorted(own)) or 'no role'}")


def may_somewhere(principal: Principal, required: Role) -> bool:
    """Return whether a principal may do what needs a role in some environment."""
    return any(required in INCLUDED[role] for role, _ in principal.limited)
