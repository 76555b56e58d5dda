"""The plan of a commit is computed here, and carried out elsewhere: this reads, and writes nothing.

What is saved, sent and started with a plan is one value. The records in it were read after the check that no
other planner has started.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from shared.app.costs.list_prices import list_price_of
from shared.app.notifications import approval_notifications
from shared.app.planner.approvals import approved_plan
from shared.app.planner.line import with_line
from shared.app.planner.pins import with_distances, with_form
from shared.app.planner.rollouts import RolloutStart, stage, starting_of
from shared.app.repository import PlanInputs, read_some
from shared.azure.ownership import INSTALLATION_TAG, Installation, new_life, tag
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.history import Act
from shared.cluster.pace import small_change
from shared.cluster.queues.continuations import continuations_of
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.queues.messages import RolloutRequest, ToPlan
from shared.cluster.record import ClusterRecord
from shared.cluster.transitions.acceptance import follows
from shared.frozen import dataclass, field, replace
from shared.json_tree import Json
from shared.language.cluster_systems import systems_in
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.reuse import KnownCluster
from shared.notifications.notification import Notification
from shared.plan.list_price import ListPrice
from shared.plan.make_plan import make_plan
from shared.plan.plan import Action, Item, Plan, held_since
from shared.plan.replacements import Replacement, remembered, replaced_in
from shared.plan.retained import losses
from shared.platform.followed import Followed
from shared.ports import FleetRecord, GroupMember, PlanRecord, Ports
from shared.ports.azure import ListClusters, every_document
from shared.ports.state.fleet import Recovery
from shared.resource_ids import SubscriptionId
from shared.rollouts.line import splits
from shared.rollouts.rollout import Rollout

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ComputedPlan:
    """A plan, and all that is saved, sent and started when it is carried out.

    ``fleet`` is the fleet's record over the version that was saved when the plan began. ``small`` are the
    clusters of a small change, and ``held`` those that start later. ``rollouts`` are saved in their order.
    ``members`` are clusters by their groups. ``continues``: only the next clusters of a rollout start.
    """

    plan_record: PlanRecord
    inputs: PlanInputs
    fleet: FleetRecord
    small: frozenset[str]
    rollouts: tuple[Rollout, ...] = ()
    held: frozenset[str] = frozenset()
    replaced: Mapping[str, Replacement] = field(default_factory=dict)
    members: tuple[tuple[str, GroupMember], ...] = ()
    act: Act | None = None
    notifications: tuple[Notification, ...] = ()
    then: tuple[Envelope, ...] = ()
    continues: bool = False


def compute_plan(
    request: ToPlan, unfinished: str, inputs: PlanInputs, fleet: FleetRecord, ports: Ports
) -> ComputedPlan:
    """Return the plan of ``fleet.planning``; ``unfinished`` is the commit that was being planned before."""
    head, now = fleet.planning, ports.clock()
    earlier = ports.state.plan(head)
    before = earlier.plan if earlier else None
    continues = isinstance(request, RolloutRequest) and head == fleet.commit
    if _were_lost(inputs, fleet, ports):
        recovery = Recovery(now, fleet.tables.epoch + 1)
        fleet = replace(fleet, tables=replace(fleet.tables, recovery=recovery))
    if _pulled(fleet.origin.followed) != _pulled(inputs.followed):  # what was allowed was of what sources had
        fleet, approvable = replace(fleet, closed=replace(fleet.closed, override=None)), None
    else:
        approvable = earlier
    fleet = replace(fleet, origin=replace(fleet.origin, followed=inputs.followed))
    approved = approved_plan(request, inputs, fleet, approvable, ports)
    staged = stage(approved.plan, before, inputs, fleet, ports, continues=continues)
    items = [_with_life(item, inputs, ports) for item in staged.plan.items]
    heads = {"": head, **{known.key: known.commit for known in inputs.followed}}
    distant = with_distances(items, inputs.records, before if approvable else None, heads, ports)
    plan = replace(staged.plan, items=tuple(distant))
    plan_record = PlanRecord(
        plan,
        now,
        approval=approved.approval,
        reports=earlier.reports if earlier else 0,
        review=approved.review,
        held=_held(plan, earlier, fleet, ports),
        list_price=_list_price(approved.plan, earlier, inputs, ports),
    )
    replaced = replaced_in(inputs.desired, inputs.records, fleet.expects.replacing)
    # Before the first record: a new cluster that has one no longer shows whose delete it holds.
    replacing = {**fleet.expects.replacing, **remembered(replaced, plan.items)}
    begin = (item for item in plan.items if item.acts or not fleet.commit)
    again = [approved.again] if approved.again else []
    return ComputedPlan(
        plan_record,
        inputs,
        replace(staged.fleet, expects=replace(fleet.expects, replacing=replacing)),
        _small_changes(plan, unfinished, inputs, ports),
        staged.changed,
        held=staged.held,
        replaced=replaced,
        members=tuple(member for item in begin for member in _member(item, inputs)),
        act=approved.act,
        notifications=tuple(approval_notifications(earlier, plan_record)),
        then=(*again, *(Envelope(RolloutRequest(), at=at) for at in staged.times)),
        continues=continues,
    )


def _pulled(followed: Iterable[Followed]) -> Mapping[str, str]:
    return {known.key: known.pulls for known in followed}


def _held(plan: Plan, earlier: PlanRecord | None, fleet: FleetRecord, ports: Ports) -> Mapping[str, datetime]:
    """Return since when each item is on hold; ``earlier`` is the plan of the same commit, None for none."""
    if not any(item.hold for item in plan.items):
        return {}
    former = earlier or ports.state.plan(fleet.commit)
    since = former.held if former else {}
    return held_since(plan, former.plan if former else None, since, ports.clock())


def _list_price(plan: Plan, earlier: PlanRecord | None, inputs: PlanInputs, ports: Ports) -> ListPrice | None:
    """Return by how much a commit changes the list price, as its first plan found it."""
    if earlier is not None or inputs.files is None:
        return earlier.list_price if earlier else None
    return list_price_of(
        plan.commit, inputs.files, plan.items, inputs.desired.clusters, inputs.records, ports
    )


def _with_life(item: Item, inputs: PlanInputs, ports: Ports) -> Item:
    """Return the item of a new cluster with its uid, so that a second attempt has the same."""
    if not item.begins or item.uid:
        return item
    uid = new_life(ports.unique(), inputs.desired.clusters[item.cluster].rebuild)
    return replace(item, uid=uid, generation=1)


def _small_changes(plan: Plan, unfinished: str, inputs: PlanInputs, ports: Ports) -> frozenset[str]:
    """Return the clusters of a plan that are a small change."""
    before = ports.state.plan(unfinished) if unfinished not in ("", plan.commit) else None
    items = before.plan.items if before else ()
    left = {i.cluster for i in items if i.acts and follows(i, inputs.records.get(i.cluster))}
    running = continuations_of(inputs.records.values())
    return small_change(plan.items, left, running, most=ports.config.limits.small_change)


def _member(item: Item, inputs: PlanInputs) -> Iterator[tuple[str, GroupMember]]:
    """Yield the membership of an item's cluster in its resource group.

    A delete finds the clusters of its group by that. The first plan of new tables saves all of them, any
    other one those on which it acts. A cluster that does not exist and does not begin has none.
    """
    record = inputs.records.get(item.cluster)
    cluster = record.desired if record else inputs.desired.clusters.get(item.cluster)
    uid = record.uid if record else item.uid
    if cluster is not None and uid and not cluster.is_attached:
        yield cluster.id.group.key, GroupMember(item.cluster, uid)


# Tables without a plan are those of a new app, or were lost with their epoch, as where the app has moved.


def _were_lost(inputs: PlanInputs, fleet: FleetRecord, ports: Ports) -> bool:
    """Return whether Azure has clusters of this app, by the id of the settings, and the tables have nothing.

    Before the first plan alone, so it takes no token of Azure's limits: a refusal is an answer. Where nobody
    knows, the step that finds a cluster of another life asks a person.
    """
    known = fleet.commit or fleet.is_behind or inputs.records or inputs.unreadable
    if known or not ports.config.installation:
        return False
    in_azure = (cluster for cluster in inputs.desired.clusters.values() if not cluster.is_attached)
    named = {cluster.id.subscription.lower() for cluster in in_azure}
    try:
        for subscription in sorted({*named, *inputs.desired.subscriptions}):
            listed = every_document(ports.azure, ListClusters(SubscriptionId(subscription)))
            if any(_is_ours(cluster, ports) for cluster in listed):
                log.warning("the tables were lost, and Azure has clusters of this app: a recovery begins")
                return True
    except ReconcileError as error:
        log.warning("whether Azure has clusters of this app could not be read: %s", error)
    return False


def _is_ours(cluster: Json, ports: Ports) -> bool:
    named = tag(cluster, INSTALLATION_TAG) or ""
    return Installation.of(named).id == ports.config.installation


WHOLE_AFTER = timedelta(hours=1)
"""How old the whole plan may be that a partial one follows."""


def partial_plan_of(before: FleetRecord, fleet: FleetRecord, ports: Ports) -> ComputedPlan | None:
    """Return the plan of the clusters that a rollout starts now, None where the whole plan is needed.

    The whole plan of this commit was carried out before. What is planned of these clusters alone must equal
    it: so must all that rules between clusters and systems decided. Whatever else a plan depends on has it
    planned as a whole: a newer commit, a plan that was not finished, namespaces that a guard may keep, a
    record that does not follow. So does time: what this does not look at is looked at again after
    ``WHOLE_AFTER``.
    """
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
    if not _same(plan, stored.plan, starting, desired):
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
    if fleet.closed.lets_start(now):  # other items start, too
        return False
    recent = timedelta(0) <= age < WHOLE_AFTER
    return recent and not fleet.planning and head == fleet.commit == fleet.rollout


def _is_carried_out(stored: PlanRecord, fleet: FleetRecord) -> bool:
    """Return whether the stored plan is that of the fleet's record: a superseded planner may overwrite it."""
    return stored.plan.applied and stored.at == fleet.at


def _same(plan: Plan, stored: Plan, starting: RolloutStart, desired: DesiredFleet) -> bool:
    """Return whether every cluster that starts is planned as the whole plan has it."""
    if desired.guards is None or desired.rollout is None:
        return False
    items = {item.cluster: item for item in stored.items}
    generations = {member.cluster: (member.uid, member.generation) for member in starting.known.members}
    return plan.items != () and all(
        item == items.get(item.cluster)
        and _is_plain(item, starting.records[item.cluster], desired)
        and (item.uid, item.generation) == generations.get(item.cluster)
        for item in plan.items
    )


def _is_plain(item: Item, record: ClusterRecord, desired: DesiredFleet) -> bool:
    """Return whether an item changes a cluster and nothing that a guard of the whole fleet counts."""
    wanted = desired.clusters.get(item.cluster)
    if item.action is not Action.UPDATE or item.hold is not None or item.retained or wanted is None:
        return False
    return not losses(systems_in(record.document), wanted.systems)


def _small(stored: Plan, ports: Ports) -> frozenset[str]:
    """Return the clusters of the whole plan that are a small change."""
    most = ports.config.limits.small_change
    if not small_change(stored.items, (), (), most=most):
        return frozenset()
    return small_change(stored.items, (), ports.state.continuations(), most=most)
