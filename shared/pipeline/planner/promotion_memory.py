"""What the planner notes of promotions with a plan: the rules, and what their targets have and withdrew."""

from __future__ import annotations

from datetime import datetime

from shared.fleet.resolve.desired_fleet import DesiredFleet
from shared.frozen import replace
from shared.ports import FleetRecord
from shared.promotions.promoted_values import rules_of, values_in
from shared.promotions.withdrawn import planned


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
