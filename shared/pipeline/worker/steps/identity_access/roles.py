"""Role assignments: the cluster's identities have the roles of the manifest, each once.

Azure never changes an assignment. One with another principal, as after the cluster was created again, is
removed and created again; one that somebody else created for the same is left, and counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shared.fleet.identity_access.bodies import assignment_body, principal_in, role_id, same_assignment
from shared.fleet.identity_access.names import description_of, is_our_assignment, name_of_assignment
from shared.fleet.json_tree import Json
from shared.fleet.manifests.cluster.identity_access import CONTROL_PLANE, KUBELET, RoleAssignment
from shared.fleet.resource_ids import ManagedIdentityId, SubscriptionId
from shared.jobs.failures.errors import Dependency, InvalidManifest
from shared.pipeline.worker.steps.context import StepContext
from shared.ports.azure import (
    DeleteRoleAssignment,
    GetIdentity,
    GetRoleAssignment,
    ListRoleAssignments,
    ListRoles,
    PutRoleAssignment,
)


@dataclass
class _Reads:
    """What one run of the step has read of Azure, each once; ``existing`` is the cluster."""

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
    reads, entries = _Reads(context, existing), context.desired.spec.role_assignments
    for entry in entries:
        yield _ensured(reads, entry)
    wanted = {name_of_assignment(context.cluster, entry) for entry in entries}
    for live in [one for found in reads.assigned.values() for one in found]:
        name = str(live["name"]).lower()
        if name not in wanted and is_our_assignment(context.cluster, live):
            wanted.add(name)  # a list at one scope shows what others show too
            scope = str(live["properties"]["scope"])
            context.azure(DeleteRoleAssignment(SubscriptionId(scope.split("/")[2]), scope, name))
            yield f"removed the role assignment {name}"


def _ensured(reads: _Reads, entry: RoleAssignment) -> str:
    """Assign the role of an entry; return what was done, "" where its assignment exists."""
    context, principal = reads.context, reads.principal(entry)
    name, subscription = name_of_assignment(context.cluster, entry), SubscriptionId(entry.subscription)
    assigned = reads.of_principal(entry.subscription, principal)
    if any(str(live["name"]).lower() == name for live in assigned):
        return ""
    role = reads.role(entry)
    if any(same_assignment(live, entry, role=role, principal=principal) for live in assigned):
        return (
            f"left the role assignment that {entry.name} asks for: it exists, under a name that is not ours"
        )
    before = context.azure(GetRoleAssignment(subscription, entry.scope, name))
    if before is not None:
        if str(before["properties"]["principalId"]).lower() == principal.lower():
            return ""  # the list does not show it yet
        context.azure(DeleteRoleAssignment(subscription, entry.scope, name))
    description = description_of(context.cluster, entry)
    body = assignment_body(entry, role=role, principal=principal, description=description)
    context.azure(PutRoleAssignment(subscription, entry.scope, name, body))
    return f"assigned the role {entry.role}, as {entry.name} asks"
