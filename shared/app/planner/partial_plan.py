"""The plan of only the clusters that a rollout starts now, where it is certain to equal the whole plan.

The whole plan of this commit was carried out before. Its fingerprints say which inputs gave which document,
with the code that resolved it and with all that rules between clusters and systems decided. What
the same files give for these clusters alone must have these fingerprints, and what is planned of it must
equal the stored plan. Whatever else a plan depends on has it planned as a whole: a newer commit, a plan that
was not finished, namespaces that a guard may keep, a record that does not follow. So does time: what this
does not look at is looked at again after ``WHOLE_AFTER``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from shared.app.planner.compute import ComputedPlan
from shared.app.planner.pins.line import with_line
from shared.app.planner.pins.plan_pins import with_form
from shared.app.planner.rollouts import RolloutStart, starting_of
from shared.app.repository import PlanInputs, read_some
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.pace import small_change
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.queues.messages import RolloutRequest
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.language.cluster_systems import systems_in
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.reuse import KnownCluster, fingerprint_of
from shared.plan.make_plan import make_plan
from shared.plan.plan import Action, Item, Plan
from shared.plan.system_removals import losses
from shared.ports import FleetRecord, PlanRecord, Ports
from shared.rollouts.line import splits

log = logging.getLogger(__name__)

WHOLE_AFTER = timedelta(hours=1)
"""How old the whole plan may be that a partial one follows."""


def partial_plan_of(before: FleetRecord, fleet: FleetRecord, ports: Ports) -> ComputedPlan | None:
    """Return the plan of the clusters that start now, None where the whole plan is needed."""
    head = fleet.planning
    if not _continues(head, before, ports):
        return None
    starting, stored = starting_of(head, ports), ports.state.plan(head)
    if starting is None or stored is None or not (stored.open and _is_carried_out(stored, before)):
        return None
    known = {
        name: KnownCluster(record.document, record.digest)
        for name, record in starting.records.items()
        if not record.deleting
    }
    if known.keys() != starting.records.keys():
        return None
    try:
        desired = read_some(head, known, ports)
        if splits(starting.known.line, starting.known, head):
            desired = with_line(head, desired, starting.known.line, starting.records, ports).desired
        desired = with_form(desired, fleet, ports)
    except ReconcileError as error:  # the whole plan reads again, and reports it
        log.warning("%s could not be read for a partial plan: %s: %s", head[:8], error.kind, error)
        return None
    plan = make_plan(head, desired, starting.records, now=ports.clock())
    if not _same(plan, stored.plan, starting, desired, ports.state.fingerprints()):
        log.info("the rollout of %s needs the whole plan", head[:8])
        return None
    decision = starting.decision
    log.info("rollout of %s: %d start, %d wait", head[:8], len(decision.start), len(decision.waits))
    return ComputedPlan(
        replace(stored, plan=plan),
        PlanInputs(desired, starting.records, known),
        fleet,
        _small(stored.plan, ports),
        (decision.rollout,) if decision.rollout != starting.known else (),
        then=(Envelope(RolloutRequest(), at=decision.next_at),) if decision.next_at else (),
        continues=True,
    )


def _continues(head: str, fleet: FleetRecord, ports: Ports) -> bool:
    """Return whether the last plan is a recent one of this head, whose rollout is under way."""
    now = ports.clock()
    age = now - fleet.at if fleet.at else WHOLE_AFTER
    if fleet.lets_start(now):  # other items start, too
        return False
    recent = timedelta(0) <= age < WHOLE_AFTER
    return recent and not fleet.planning and head == fleet.commit == fleet.rollout


def _is_carried_out(stored: PlanRecord, fleet: FleetRecord) -> bool:
    """Return whether the stored plan is that of the fleet's record: a superseded planner may overwrite it."""
    return stored.plan.applied and stored.at == fleet.at


def _same(
    plan: Plan, stored: Plan, starting: RolloutStart, desired: DesiredFleet, fingerprints: Mapping[str, str]
) -> bool:
    """Return whether every cluster that starts is planned as the whole plan has it."""
    if desired.guards is None or desired.rollout is None:
        return False
    items = {item.cluster: item for item in stored.items}
    generations = {member.cluster: (member.uid, member.generation) for member in starting.known.members}
    return plan.items != () and all(
        item == items.get(item.cluster)
        and _is_plain(item, starting.records[item.cluster], desired)
        and (item.uid, item.generation) == generations.get(item.cluster)
        and _fingerprint(item.cluster, desired) == fingerprints.get(item.cluster)
        for item in plan.items
    )


def _is_plain(item: Item, record: ClusterRecord, desired: DesiredFleet) -> bool:
    """Return whether an item changes a cluster and nothing that a guard of the whole fleet counts."""
    wanted = desired.clusters.get(item.cluster)
    if item.action is not Action.UPDATE or item.hold is not None or item.retained or wanted is None:
        return False
    return not losses(systems_in(record.document), wanted.systems)


def _fingerprint(cluster: str, desired: DesiredFleet) -> str | None:
    """Return the fingerprint of a cluster as it was resolved by itself, None if its inputs are unknown."""
    inputs = desired.inputs.get(cluster, "")
    return fingerprint_of(inputs, desired.clusters[cluster].digest) if inputs else None


def _small(stored: Plan, ports: Ports) -> frozenset[str]:
    """Return the clusters of the whole plan that are a small change."""
    most = ports.config.limits.small_change
    if not small_change(stored.items, (), (), most=most):
        return frozenset()
    return small_change(stored.items, (), ports.state.continuations(), most=most)
