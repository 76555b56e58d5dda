"""What a cluster grants to identities: no list of clusters has it, so a check reads it for the sweep.

Azure lists the role assignments of a subscription at once, and the federated credentials of each identity.
The clusters of a message share both. A cluster is read by itself only where an assignment is missing there.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shared.fleet.drift.differences import Difference
from shared.fleet.drift.grant_differences import credential_differences, role_differences
from shared.fleet.identity_access.names import name_of_assignment
from shared.fleet.manifests.cluster.identity_access import RoleAssignment
from shared.fleet.resource_ids import ManagedIdentityId, SubscriptionId
from shared.jobs.failures.errors import ReconcileError
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.rate_limiter import RateLimited
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.identity_access.roles import RoleReads, is_assigned
from shared.ports import Ports
from shared.ports.azure import GetCluster, ListFederatedCredentials, ListRoleAssignments
from shared.ports.azure.calls import AzureCall

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass
class SharedReads:
    """Lists of Azure that the clusters of a message share, by what was asked; a failed one is asked again."""

    _found: dict[AzureCall[Any], Any] = field(default_factory=dict)

    def call(self, operation: AzureCall[T], ports: Ports) -> T:
        """Return what an operation answers, or has answered before."""
        if operation not in self._found:
            self._found[operation] = ports.azure.call(operation)
        found: T = self._found[operation]
        return found


def read_grants(record: ClusterRecord, reads: SharedReads, ports: Ports) -> tuple[Difference, ...] | None:
    """Return in which fields what a cluster grants differs from git, None where that is unknown."""
    spec = record.document["spec"]
    if not (spec.get("federatedCredentials") or spec.get("roleAssignments")):
        return ()
    try:
        return (*_credentials(record, reads, ports), *_roles(record, reads, ports))
    except (RateLimited, ReconcileError) as error:
        log.warning("what %s grants cannot be read: %s", record.name, error)
        return None


def _credentials(record: ClusterRecord, reads: SharedReads, ports: Ports) -> tuple[Difference, ...]:
    identities = {one.identity.lower() for one in record.desired.spec.federated_credentials}
    live = {
        identity: reads.call(ListFederatedCredentials(ManagedIdentityId.of(identity)), ports)
        for identity in sorted(identities)
    }
    issuer = (record.facts or {}).get("oidc_issuer_url", "")
    return tuple(credential_differences(record.desired, live, issuer))


def _roles(record: ClusterRecord, reads: SharedReads, ports: Ports) -> tuple[Difference, ...]:
    unlisted = [
        entry for entry in record.desired.spec.role_assignments if not _is_listed(record, entry, reads, ports)
    ]
    if not unlisted:
        return ()
    existing = ports.azure.call(GetCluster(record.desired.id))
    if existing is None:
        return ()  # a sweep finds that
    of_cluster = RoleReads(StepContext.of(record, ports), existing)
    missing = {entry.name for entry in unlisted if not is_assigned(of_cluster, entry)}
    return tuple(role_differences(record.desired, missing))


def _is_listed(record: ClusterRecord, entry: RoleAssignment, reads: SharedReads, ports: Ports) -> bool:
    """Return whether the list of a subscription has the assignment under its name, at its scope."""
    listed = reads.call(ListRoleAssignments(SubscriptionId(entry.subscription.lower())), ports)
    name, scope = name_of_assignment(record.desired.id, entry), entry.scope.lower()
    return any(
        str(one["name"]).lower() == name and str(one["properties"].get("scope")).lower() == scope
        for one in listed
    )
