"""Role assignments: the cluster's identities have the roles of the manifest, each once.

Azure never changes an assignment, and takes no second one of a role, a scope and a principal. One with
another principal, as after the cluster was created again, is removed and created again, and so is one that
has the name of a former entry; one that somebody else created for the same is left, and counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from shared.app.access.context import StepContext
from shared.azure.identity_access import (
    assignment_body,
    description_of,
    is_our_assignment,
    name_of_assignment,
    principal_in,
    role_id,
    role_path,
    same_assignment,
)
from shared.cluster.failures.errors import NOT_FOUND, Dependency, InvalidManifest
from shared.json_tree import Json
from shared.language.model.cluster.access import CONTROL_PLANE, KUBELET, RoleAssignment
from shared.ports.azure import (
    DeleteRoleAssignment,
    GetIdentity,
    GetRoleAssignment,
    ListRoleAssignments,
    ListRoles,
    PutRoleAssignment,
)
from shared.resource_ids import ManagedIdentityId, SubscriptionId


@dataclass
class RoleReads:
    """What one run of the step, or a check, has read of Azure, each once; ``existing`` is the cluster."""

    context: StepContext
    existing: Json
    assigned: dict[tuple[str, str], Sequence[Json]] = field(default_factory=dict)
    principals: dict[str, str] = field(default_factory=dict)
    roles: dict[tuple[str, str], str] = field(default_factory=dict)

    def principal(self, entry: RoleAssignment) -> str:
        """Return the object id of who gets the role."""
        if entry.principal_id:
            return entry.principal_id
        if entry.principal not in self.principals:
            found = principal_in(self.existing, entry.principal) or self._of_identity(entry.principal)
            self.principals[entry.principal] = found
        return self.principals[entry.principal]

    def _of_identity(self, identity: str) -> str:
        if identity in (CONTROL_PLANE, KUBELET):
            raise Dependency(f"Azure shows no {identity} identity of {self.context.record.name} yet")
        shown = self.context.azure(GetIdentity(ManagedIdentityId.of(identity)))
        if shown is None:
            raise Dependency(f"the identity {identity} does not exist")
        return str(shown["properties"]["principalId"])

    def of_principal(self, subscription: str, principal: str) -> Sequence[Json]:
        """Return the role assignments of a principal in a subscription."""
        key = subscription.lower(), principal.lower()
        if key not in self.assigned:
            self.assigned[key] = self.context.azure(
                ListRoleAssignments(SubscriptionId(subscription), principal)
            )
        return self.assigned[key]

    def role(self, entry: RoleAssignment) -> str:
        """Return the id of the role of an entry."""
        if role_id(entry.role):
            return role_id(entry.role)
        key = entry.subscription.lower(), entry.role.lower()
        if key not in self.roles:
            found = self.context.azure(ListRoles(SubscriptionId(entry.subscription), entry.role))
            if not found:
                raise InvalidManifest(
                    f"there is no role {entry.role} in the subscription {entry.subscription}"
                )
            self.roles[key] = str(found[0]["name"])
        return self.roles[key]


def ensure_roles(context: StepContext, existing: Json) -> Iterator[str]:
    """Assign the roles that are missing, then remove those of ours that git does not have; yield notes."""
    reads, entries = RoleReads(context, existing), context.desired.spec.role_assignments
    wanted = {name_of_assignment(context.cluster, entry) for entry in entries}
    for entry in entries:
        yield _ensured(reads, entry, wanted)
    for live in [one for found in reads.assigned.values() for one in found]:
        if _is_obsolete(context, live, wanted):
            yield f"removed the role assignment {_remove(context, live, wanted)}"


def _is_obsolete(context: StepContext, live: Json, wanted: Collection[str]) -> bool:
    """Return whether an assignment is one of ours that is to go; ``wanted`` are the names of all others."""
    return str(live["name"]).lower() not in wanted and is_our_assignment(context.cluster, live)


def _remove(context: StepContext, live: Json, wanted: set[str]) -> str:
    """Remove an assignment, once: a list at one scope shows what others show too. Return its name."""
    name, scope = str(live["name"]).lower(), str(live["properties"]["scope"])
    wanted.add(name)
    context.azure(DeleteRoleAssignment(SubscriptionId(scope.split("/")[2]), scope, name))
    return name


def is_assigned(reads: RoleReads, entry: RoleAssignment) -> bool:
    """Return whether an entry has its role, under whatever name; a list may be late, so it is read too."""
    principal = reads.principal(entry)
    return _standing(reads, entry, principal) is not None or _is_of(_own(reads, entry), principal)


def _standing(reads: RoleReads, entry: RoleAssignment, principal: str) -> Json | None:
    """Return the assignment of an entry that is listed: the one with its name, or one of the same."""
    name = name_of_assignment(reads.context.cluster, entry)
    assigned = reads.of_principal(entry.subscription, principal)
    own = next((live for live in assigned if str(live["name"]).lower() == name), None)
    if own is not None:
        return own
    role = reads.role(entry)
    same = (live for live in assigned if same_assignment(live, entry, role=role, principal=principal))
    return next(same, None)


def _own(reads: RoleReads, entry: RoleAssignment) -> Json | None:
    """Return the assignment that has the name of an entry."""
    name = name_of_assignment(reads.context.cluster, entry)
    return reads.context.azure(GetRoleAssignment(SubscriptionId(entry.subscription), entry.scope, name))


def _is_of(live: Json | None, principal: str) -> bool:
    return live is not None and str(live["properties"]["principalId"]).lower() == principal.lower()


def _ensured(reads: RoleReads, entry: RoleAssignment, wanted: set[str]) -> str:
    """Assign the role of an entry; return what was done, "" where its assignment exists, or is left.

    ``wanted`` are the names of the assignments that stay.
    """
    context = reads.context
    if role_path(entry.name) in context.desired.left:
        return ""
    principal = reads.principal(entry)
    name, subscription = name_of_assignment(context.cluster, entry), SubscriptionId(entry.subscription)
    standing = _standing(reads, entry, principal)
    if standing is not None and _is_obsolete(context, standing, wanted):
        _remove(context, standing, wanted)  # it is in the way of the one with the name of this entry
    elif standing is not None:
        foreign = (
            f"left the role assignment that {entry.name} asks for: it exists, under a name that is not ours"
        )
        return "" if str(standing["name"]).lower() == name else foreign
    before = _own(reads, entry)
    if before is not None:
        if _is_of(before, principal):
            return ""  # the list does not show it yet
        context.azure(DeleteRoleAssignment(subscription, entry.scope, name))
    description, role = description_of(context.cluster, entry), reads.role(entry)
    body = assignment_body(entry, role=role, principal=principal, description=description)
    try:
        context.azure(PutRoleAssignment(subscription, entry.scope, name, body))
    except Dependency as error:
        if error.code not in NOT_FOUND:
            raise
        missing = f"the scope of the role assignment {entry.name} does not exist: {error}"
        raise Dependency(missing, request_id=error.request_id) from None
    return f"assigned the role {entry.role}, as {entry.name} asks"
