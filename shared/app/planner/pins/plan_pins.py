"""The pins of a plan: in which form, and as branches that are written before the first cluster pulls them."""

from __future__ import annotations

import logging

from shared.app.planner.compute import ComputedPlan
from shared.app.planner.pins.pin_branches import ensure_branch, names_commits
from shared.cluster.failures.errors import Unauthorized
from shared.frozen import replace
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.ports import FleetRecord, Ports

log = logging.getLogger(__name__)


def with_form(desired: DesiredFleet, fleet: FleetRecord, ports: Ports) -> DesiredFleet:
    """Return a fleet whose pins name their commits, where the app may write no branches."""
    if not names_commits(fleet, ports):
        return desired
    clusters = {
        name: cluster.with_pin(replace(cluster.pin, direct=True)) if cluster.pin else cluster
        for name, cluster in desired.clusters.items()
    }
    return replace(desired, clusters=clusters)


def write_pins(computed: ComputedPlan, ports: Ports) -> bool:
    """Write the branches of the pins that a plan hands over; return False where the app may write none."""
    clusters = computed.inputs.desired.clusters
    acting = (item.cluster for item in computed.plan_record.plan.items if item.acts)
    pins = {clusters[name].pin for name in acting if name in clusters and name not in computed.held}
    try:
        for pin in sorted(filter(None, pins), key=lambda pin: pin.commit):
            if pin.branch:
                ensure_branch(pin, ports.git_host)
    except Unauthorized as error:
        log.warning("a pin is no branch, because the app may write none: %s", error)
        return False
    return True
