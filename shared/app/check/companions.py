"""The companions of a cluster in Azure, which no list of clusters shows.

A check reads them for the sweep, which compares the cluster, and what Azure Policy found for whoever asks.
The clusters of a message share what Azure lists for several of them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from shared.app.access.companions import COMPANIONS, POLICIES, CompanionCalls, Reads, assignments
from shared.app.access.context import StepContext
from shared.app.access.rate_limiter import RateLimited
from shared.app.outbox import send
from shared.azure.companions.companion import Live
from shared.azure.companions.compliance import Compliance, compliance_of
from shared.azure.companions.identity_access import RoleCompanion
from shared.azure.companions.policies import PolicyCompanion
from shared.azure.differences import Difference
from shared.cluster.failures.errors import Dependency, ReconcileError
from shared.cluster.queues.messages import SweepRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import CompanionState
from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.ports import Ports
from shared.ports.azure import GetCluster, ListRoleAssignments, QueryPolicyStates, states_of
from shared.ports.azure.calls import AzureCall
from shared.resource_ids import SubscriptionId

log = logging.getLogger(__name__)

SharedReads = dict[AzureCall[Any], Any]
"""What Azure has answered to the clusters of a message, by what was asked."""


class _CheckReads(Reads):
    """What a check reads: it marks no cluster and requests no plan, whosever the cluster is."""

    @cached_property
    def cluster(self) -> Json:
        """The cluster."""
        found = self.call(GetCluster(self.context.cluster))
        if found is None:
            raise Dependency(f"the cluster {self.context.record.name} does not exist")
        return found

    def to_read(self, roles: Sequence[RoleCompanion]) -> Sequence[RoleCompanion]:
        """Return those that the list of their subscription lacks: nothing more is read of the others."""
        return [role for role in roles if role.key not in self._listed(role)]

    @property
    def issuer(self) -> str:
        """The issuer of the cluster's tokens as the facts have it, "" where nobody has read them."""
        return (self.context.record.observation.facts or {}).get("oidc_issuer_url", "")

    def _listed(self, role: RoleCompanion) -> Live:
        return assignments(self.call(ListRoleAssignments(SubscriptionId(role.entry.subscription.lower()))))


SAVED_SECONDS = 5.0
"""By then the record of the check is saved; if not, the next sweep compares the cluster."""


@dataclass(frozen=True)
class CompanionReading:
    """The fields that differ, None where that is unknown; and what Azure Policy found, None likewise."""

    differences: tuple[Difference, ...] | None
    compliance: Compliance | None = None


def read_companions(record: ClusterRecord, reads: SharedReads, ports: Ports) -> CompanionReading | None:
    """Read the companions of a cluster; no call where its manifest has none.

    Return None for what is not understood: it keeps no other cluster from its check.
    """
    try:
        return _read_companions(record, reads, ports)
    except Exception:
        log.exception("the companions of %s cannot be compared", record.name)
        return None


def _read_companions(record: ClusterRecord, shared: SharedReads, ports: Ports) -> CompanionReading:
    reads = _CheckReads(StepContext.of(record, ports), shared)
    found = [_differences(kind, reads) for kind in COMPANIONS]
    known = [differences for differences in found if differences is not None]
    whole = tuple(difference for differences in known for difference in differences)
    return CompanionReading(whole if len(known) == len(found) else None, _read_compliance(record, ports))


def _differences(kind: CompanionCalls[Any], reads: Reads) -> Sequence[Difference] | None:
    """Return the fields that differ from git: none where git has none, None where that is unknown."""
    record = reads.context.record
    if not kind.concerns(record):
        return ()
    try:
        return kind.differences(reads)
    except (RateLimited, ReconcileError) as error:
        log.warning("the %ss of %s cannot be read: %s", kind.companion.noun, record.name, error)
        return None


def with_companions(record: ClusterRecord, reading: CompanionReading | None, ports: Ports) -> ClusterRecord:
    """Return the record with what was read; if a difference is new, a sweep compares the cluster."""
    if reading is None:
        return record
    before, has_policies = record.observation.companions, POLICIES.concerns(record)
    compliance = (reading.compliance or before.compliance) if has_policies else None
    record = replace(
        record, observation=replace(record.observation, companions=replace(before, compliance=compliance))
    )
    if reading.differences is None or reading.differences == before.differences:
        return record
    send(SweepRequest(sweep=ports.unique(), clusters=(record.name,)), ports, after=SAVED_SECONDS)
    verified = replace(record.observation.verified, digest="") if record.observation.verified else None
    return replace(
        record,
        observation=replace(
            record.observation, companions=CompanionState(reading.differences, compliance), verified=verified
        ),
    )


def _read_compliance(record: ClusterRecord, ports: Ports) -> Compliance | None:
    if not POLICIES.concerns(record):
        return None
    cluster, names = record.desired.id, [policy.azure_name for policy in PolicyCompanion.of(record.desired)]
    try:
        states = ports.azure.call(QueryPolicyStates(cluster, states_of(names)))
    except (RateLimited, ReconcileError) as error:
        log.warning("what Azure Policy found of %s cannot be read: %s", record.name, error)
        return None
    return compliance_of(states, names, ports.clock())
