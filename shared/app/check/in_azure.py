"""What Azure has around a cluster, which no list of clusters shows.

That are maintenance windows, policies, grants, and the namespaces that Azure manages for systems.

A check reads them for the sweep, which compares the cluster, and what Azure Policy found for whoever asks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from shared.app.access.context import StepContext
from shared.app.access.rate_limiter import RateLimited
from shared.app.outbox import send
from shared.app.worker.steps.role_assignments import RoleReads, is_assigned
from shared.azure.compliance import Compliance, compliance_of
from shared.azure.differences import Difference
from shared.azure.identity_access import credential_differences, name_of_assignment, role_differences
from shared.azure.maintenance_windows import window_differences
from shared.azure.managed_namespaces import managed_in, namespace_differences
from shared.azure.policies import by_name, is_our_policy, policy_differences
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.messages import SweepRequest
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass, field, replace
from shared.language.model.cluster.access import RoleAssignment
from shared.ports import Ports
from shared.ports.azure import (
    GetCluster,
    ListFederatedCredentials,
    ListMaintenance,
    ListManagedNamespaces,
    ListPolicyAssignments,
    ListRoleAssignments,
    QueryPolicyStates,
    states_of,
)
from shared.ports.azure.calls import AzureCall
from shared.resource_ids import ManagedIdentityId, SubscriptionId

# What a cluster grants to identities: no list of clusters has it, so a check reads it for the sweep.
#
# Azure lists the role assignments of a subscription at once, and the federated credentials of each
# identity. The clusters of a message share both. A cluster is read by itself only where an assignment is
# missing there.

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


def _grants(record: ClusterRecord, reads: SharedReads, ports: Ports) -> tuple[Difference, ...]:
    return (*_credentials(record, reads, ports), *_roles(record, reads, ports))


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


# The maintenance windows of a cluster: no list of clusters has them, so a check reads them for the sweep.
#
# Azure Resource Graph has no maintenance configurations (learn.microsoft.com/azure/governance/resource-
# graph, "table and resource type reference"), so that is one call for each cluster with windows, with a
# check.


def _windows(record: ClusterRecord, _: SharedReads, ports: Ports) -> tuple[Difference, ...]:
    return window_differences(record.desired, ports.azure.call(ListMaintenance(record.desired.id)))


def _policies(record: ClusterRecord, reads: SharedReads, ports: Ports) -> tuple[Difference, ...]:
    cluster = record.desired.id
    found = reads.call(ListPolicyAssignments(cluster.group), ports) or ()
    live = {str(entry["name"]).lower(): entry for entry in found if is_our_policy(cluster, entry)}
    return policy_differences(record.desired, live)


def _namespaces(record: ClusterRecord, _: SharedReads, ports: Ports) -> tuple[Difference, ...]:
    return namespace_differences(record.desired, ports.azure.call(ListManagedNamespaces(record.desired.id)))


@dataclass(frozen=True)
class AroundKind:
    """One kind of what Azure has around a cluster: which manifests have it, and how it differs from git."""

    noun: str
    has: Callable[[ClusterRecord], bool]
    differences: Callable[[ClusterRecord, SharedReads, Ports], tuple[Difference, ...]]

    def read(self, record: ClusterRecord, reads: SharedReads, ports: Ports) -> tuple[Difference, ...] | None:
        """Return the fields that differ from git: none where git has none, None where that is unknown."""
        if not self.has(record):
            return ()
        try:
            return self.differences(record, reads, ports)
        except (RateLimited, ReconcileError) as error:
            log.warning("the %s of %s cannot be read: %s", self.noun, record.name, error)
            return None


def _in_spec(*fields: str) -> Callable[[ClusterRecord], bool]:
    """Return the test whether a manifest has one of these fields."""
    return lambda record: any(record.document["spec"].get(name) for name in fields)


WINDOWS = AroundKind("maintenance windows", _in_spec("maintenanceWindows"), _windows)
POLICIES = AroundKind("policies", _in_spec("policies"), _policies)
GRANTS = AroundKind("grants", _in_spec("federatedCredentials", "roleAssignments"), _grants)
NAMESPACES = AroundKind("managed namespaces", lambda record: bool(managed_in(record.document)), _namespaces)
KINDS = (WINDOWS, POLICIES, GRANTS, NAMESPACES)
"""In the order in which a record lists their differences."""

SAVED_SECONDS = 5.0
"""By then the record of the check is saved; if not, the next sweep compares the cluster."""


@dataclass(frozen=True)
class Around:
    """The fields that differ, None where that is unknown; and what Azure Policy found, None likewise."""

    differences: tuple[Difference, ...] | None
    compliance: Compliance | None = None


def read_around(record: ClusterRecord, reads: SharedReads, ports: Ports) -> Around | None:
    """Read what Azure has around a cluster; nothing where its manifest has nothing there.

    Return None for what is not understood: it keeps no other cluster from its check.
    """
    try:
        return _read_around(record, reads, ports)
    except Exception:
        log.exception("what Azure has around %s cannot be compared", record.name)
        return None


def _read_around(record: ClusterRecord, reads: SharedReads, ports: Ports) -> Around:
    found = [kind.read(record, reads, ports) for kind in KINDS]
    known = [differences for differences in found if differences is not None]
    whole = tuple(difference for differences in known for difference in differences)
    return Around(whole if len(known) == len(found) else None, _read_compliance(record, ports))


def with_around(record: ClusterRecord, around: Around | None, ports: Ports) -> ClusterRecord:
    """Return the record with what was read; if a difference is new, a sweep compares the cluster."""
    if around is None:
        return record
    compliance = (around.compliance or record.compliance) if POLICIES.has(record) else None
    record = replace(record, compliance=compliance)
    if around.differences is None or around.differences == record.windows:
        return record
    send(SweepRequest(sweep=ports.unique(), clusters=(record.name,)), ports, after=SAVED_SECONDS)
    verified = replace(record.verified, digest="") if record.verified else None
    return replace(record, windows=around.differences, verified=verified)


def _read_compliance(record: ClusterRecord, ports: Ports) -> Compliance | None:
    if not POLICIES.has(record):
        return None
    cluster, names = record.desired.id, list(by_name(record.desired.id, record.desired.spec.policies))
    try:
        states = ports.azure.call(QueryPolicyStates(cluster, states_of(names)))
    except (RateLimited, ReconcileError) as error:
        log.warning("what Azure Policy found of %s cannot be read: %s", record.name, error)
        return None
    return compliance_of(states, names, ports.clock())
