"""Who this app is on the tags of its clusters, and whether its tables were lost.

An id of the settings outlives the tables. Where there is none, each state makes one for itself. Tables
without a plan are those of a new app, or were lost; clusters in Azure that carry the id of the settings show
which. The generations of a new state begin above any that the lost one had.
"""

from __future__ import annotations

import logging

from shared.fleet.aks.ownership import INSTALLATION_TAG, Installation, tag
from shared.fleet.json_tree import Json
from shared.fleet.planning.generations import above_any
from shared.fleet.resource_ids import SubscriptionId
from shared.frozen import replace
from shared.jobs.failures.errors import ReconcileError
from shared.pipeline.repository.commit_reader import PlanInputs
from shared.ports import FleetRecord, Ports
from shared.ports.azure import ListClusters, every_document

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
