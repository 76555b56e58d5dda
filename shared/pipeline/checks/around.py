"""What Azure has around a cluster, which no list of clusters shows.

That are maintenance windows, policies, grants, and the namespaces that Azure manages for systems.

A check reads them for the sweep, which compares the cluster, and what Azure Policy found for whoever asks.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from shared.fleet.drift.differences import Difference
from shared.fleet.drift.namespace_differences import namespace_differences
from shared.fleet.drift.policy_differences import policy_differences
from shared.fleet.policies.compliance import Compliance, compliance_of
from shared.fleet.policies.policy_names import by_name, is_our_policy
from shared.fleet.systems.managed_names import managed_in
from shared.jobs.failures.errors import ReconcileError
from shared.jobs.messages import SweepPart
from shared.jobs.record import ClusterRecord
from shared.pipeline.checks.grants import SharedReads, read_grants
from shared.pipeline.checks.windows import read_windows
from shared.pipeline.outbox import request_sweep
from shared.pipeline.worker.rate_limiter import RateLimited
from shared.ports import Ports
from shared.ports.azure import (
    ListManagedNamespaces,
    ListPolicyAssignments,
    QueryPolicyStates,
    states_of,
)

log = logging.getLogger(__name__)

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
    found = (
        read_windows(record, ports),
        _read_policies(record, reads, ports),
        read_grants(record, reads, ports),
        _read_namespaces(record, ports),
    )
    known = [each for each in found if each is not None]
    whole = tuple(difference for each in known for difference in each)
    return Around(whole if len(known) == len(found) else None, _read_compliance(record, ports))


def with_around(record: ClusterRecord, around: Around | None, ports: Ports) -> ClusterRecord:
    """Return the record with what was read; if a difference is new, a sweep compares the cluster."""
    if around is None:
        return record
    compliance = (around.compliance or record.compliance) if _has_policies(record) else None
    record = replace(record, compliance=compliance)
    if around.differences is None or around.differences == record.windows:
        return record
    request_sweep(SweepPart(sweep=ports.unique(), clusters=(record.name,)), ports, after=SAVED_SECONDS)
    verified = replace(record.verified, digest="") if record.verified else None
    return replace(record, windows=around.differences, verified=verified)


def _has_policies(record: ClusterRecord) -> bool:
    return bool(record.document["spec"].get("policies"))


def _read_policies(record: ClusterRecord, reads: SharedReads, ports: Ports) -> tuple[Difference, ...] | None:
    """Return in which fields the policies of a cluster differ from git, None where that is unknown."""
    if not _has_policies(record):
        return ()
    cluster = record.desired.id
    try:
        found = reads.call(ListPolicyAssignments(cluster.group), ports) or ()
    except (RateLimited, ReconcileError) as error:
        log.warning("the policies of %s cannot be read: %s", record.name, error)
        return None
    live = {str(one["name"]).lower(): one for one in found if is_our_policy(cluster, one)}
    return policy_differences(record.desired, live)


def _read_namespaces(record: ClusterRecord, ports: Ports) -> tuple[Difference, ...] | None:
    """Return in which fields the managed namespaces differ from git, None where that is unknown."""
    if not managed_in(record.document):
        return ()
    try:
        live = ports.azure.call(ListManagedNamespaces(record.desired.id))
    except (RateLimited, ReconcileError) as error:
        log.warning("the managed namespaces of %s cannot be read: %s", record.name, error)
        return None
    return namespace_differences(record.desired, live)


def _read_compliance(record: ClusterRecord, ports: Ports) -> Compliance | None:
    if not _has_policies(record):
        return None
    cluster, names = record.desired.id, list(by_name(record.desired.id, record.desired.spec.policies))
    try:
        states = ports.azure.call(QueryPolicyStates(cluster, states_of(names)))
    except (RateLimited, ReconcileError) as error:
        log.warning("what Azure Policy found of %s cannot be read: %s", record.name, error)
        return None
    return compliance_of(states, names, ports.clock())
