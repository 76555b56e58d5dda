"""What a manifest grants to identities, compared with what Azure has of it. Pure.

The fields of a federated credential can change. A role assignment is there or not: Azure changes none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from shared.fleet.desired import Desired
from shared.fleet.drift.differences import Difference
from shared.fleet.identity_access.bodies import credential_body
from shared.fleet.identity_access.names import credential_name
from shared.fleet.json_tree import Json
from shared.fleet.manifests.cluster.identity_access import RoleAssignment

_CREDENTIAL, _ROLE = "federatedCredentials[", "roleAssignments["
GRANTS = (_CREDENTIAL, _ROLE)
"""How the path of a difference of a grant begins."""


def credential_path(entry: str, field: str = "") -> str:
    """Return the path of a federated credential, or of a field of it."""
    return ".".join(filter(None, (f"{_CREDENTIAL}{entry}]", field)))


def role_path(entry: str) -> str:
    """Return the path of a role assignment."""
    return f"{_ROLE}{entry}]"


def credential_differences(
    desired: Desired, live: Mapping[str, Sequence[Json] | None], issuer: str
) -> Iterator[Difference]:
    """Yield the fields in which the federated credentials differ, whatever a job leaves.

    ``live`` are those of each identity, by its id in lower case: None where it does not exist, which no job
    changes. An ``issuer`` that is not known is not compared. One that is there under another name is no
    difference: a job leaves it too.
    """
    for entry in desired.spec.federated_credentials:
        wanted = dict(credential_body(entry, issuer)["properties"])
        if not issuer:
            del wanted["issuer"]
        found, path = live[entry.identity.lower()], credential_path(entry.name)
        by_name = {str(one["name"]).lower(): one.get("properties") or {} for one in found or ()}
        has = by_name.get(credential_name(desired.id, entry.name).lower())
        if has is not None:
            for field, value in wanted.items():
                if has.get(field) != value:
                    yield Difference(credential_path(entry.name, field), value, has.get(field))
        elif not any(all(one.get(key) == value for key, value in wanted.items()) for one in by_name.values()):
            yield Difference(path, wanted, None, left_alone=found is None)


def role_differences(desired: Desired, missing: Collection[str]) -> Iterator[Difference]:
    """Yield the role assignments that are ``missing``, by the names of their entries."""
    for entry in desired.spec.role_assignments:
        if entry.name in missing:
            yield Difference(role_path(entry.name), _shown(entry), None)


def _shown(entry: RoleAssignment) -> Json:
    return {"role": entry.role, "scope": entry.scope, "principal": entry.principal}
