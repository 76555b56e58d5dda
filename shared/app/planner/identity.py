"""Who this app is on the tags of its clusters, and what a plan notes in the fleet's record.

An id of the settings outlives the tables. Where there is none, each state makes one for itself. Tables
without a plan are those of a new app, or were lost; clusters in Azure that carry the id of the settings show
which. The generations of a new state begin above any that the lost one had.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime

from shared.app.repository import PlanInputs
from shared.azure.ownership import INSTALLATION_TAG, Installation, tag
from shared.cluster.failures.errors import ReconcileError
from shared.frozen import replace
from shared.json_tree import Json
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.plan import Item, Plan, above_any
from shared.ports import FleetRecord, GroupMember, Ports
from shared.ports.azure import ListClusters, every_document
from shared.promotions import planned, rules_of, values_in
from shared.resource_ids import SubscriptionId

log = logging.getLogger(__name__)


def identified(fleet: FleetRecord, ports: Ports) -> FleetRecord:
    """Return the fleet's record with the id of the app, and with those that it had before."""
    before = fleet.installation
    mine = ports.config.installation or before or ports.unique()
    if before in ("", mine):
        return replace(fleet, installation=mine)
    former = tuple(dict.fromkeys((*fleet.former_installations, before)))
    return replace(fleet, installation=mine, former_installations=former)


def first_generation(inputs: PlanInputs, fleet: FleetRecord, ports: Ports) -> int:
    """Return the generation of a new cluster; a state without records reads Azure for it, once.

    It is 0, and decided by a later plan, while git has no cluster.
    """
    if fleet.first_generation:
        return fleet.first_generation
    if not (inputs.records or inputs.unreadable or inputs.desired.clusters):
        return 0
    if inputs.records or inputs.unreadable or not _were_lost(inputs, ports):
        return 1
    first = above_any(ports.clock())
    log.warning("the tables were lost, or cannot be known not to be: generations begin at %d", first)
    return first


def _were_lost(inputs: PlanInputs, ports: Ports) -> bool:
    """Return whether Azure has clusters of this app, which has no record of any; True where nobody knows.

    It happens once in the life of a state, so it takes no token of Azure's limits: a refusal is an answer.
    """
    if not ports.config.installation:
        return False
    in_azure = (cluster for cluster in inputs.desired.clusters.values() if not cluster.is_existing)
    named = {cluster.id.subscription.lower() for cluster in in_azure}
    try:
        for subscription in sorted({*named, *inputs.desired.subscriptions}):
            listed = every_document(ports.azure, ListClusters(SubscriptionId(subscription)))
            if any(_is_ours(cluster, ports) for cluster in listed):
                return True
    except ReconcileError as error:
        log.warning("whether Azure has clusters of this app could not be read: %s", error)
        return True
    return False


def _is_ours(cluster: Json, ports: Ports) -> bool:
    named = tag(cluster, INSTALLATION_TAG) or ""
    return Installation.of(named).id == ports.config.installation


# The index of resource groups: a delete finds the clusters of its group without reading the whole fleet.


def index_groups(plan: Plan, inputs: PlanInputs, fleet: FleetRecord, ports: Ports) -> None:
    """Save the clusters of a plan as members of their groups, before the first record of a new one is saved.

    The first plan of new tables saves all of them, any other one those on which it acts.
    """
    items = (item for item in plan.items if item.acts or not fleet.commit)
    ports.state.add_group_members([member for item in items for member in _member(item, inputs)])


def _member(item: Item, inputs: PlanInputs) -> Iterator[tuple[str, GroupMember]]:
    """Yield the membership of an item's cluster; none of a cluster that does not exist and does not begin."""
    record = inputs.records.get(item.cluster)
    cluster = record.desired if record else inputs.desired.clusters.get(item.cluster)
    uid = record.uid if record else item.uid
    if cluster is not None and uid and not cluster.is_existing:
        yield cluster.id.group.key, GroupMember(item.cluster, uid)


# What the planner notes of promotions with a plan: the rules, and what their targets have and withdrew.


def with_promotions(fleet: FleetRecord, desired: DesiredFleet, at: datetime) -> FleetRecord:
    """Return the record with the rules of a plan, and what it gives to their targets."""
    rules = rules_of(desired.promotions)
    before = {each.environment: each for each in fleet.had}
    had = []
    for rule in rules:
        written = desired.environments.get(rule.target)
        own = (each for each in desired.clusters.values() if each.environment == rule.target)
        clusters = {value for each in own for value in values_in(each.document()["spec"])}
        file = values_in(written.spec.defaults) if written else frozenset()
        had.append(planned(before.get(rule.target), rule.target, file, clusters, at))
    return replace(fleet, promotions=rules, had=tuple(had))
