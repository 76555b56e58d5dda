"""Promotions: what is proposed to each environment, why nothing is, and which values no rule gives."""

from __future__ import annotations

from collections.abc import Iterator

from shared.app.api import schema
from shared.app.api.parts import iso
from shared.ports import FleetRecord, Ports
from shared.ports.state import Promotion
from shared.promotions import Reason, Value


def promotions_view(ports: Ports) -> schema.Promotions:
    """Return the promotions that were ever asked for, and those of the rules."""
    fleet, known = ports.state.fleet(), {each.target: each for each in ports.state.promotions()}
    rules = {rule.target: rule.source for rule in fleet.promotions}
    for target, source in rules.items():
        known.setdefault(target, Promotion(target, source))
    return {"promotions": [_view(known[name], fleet, rule=name in rules) for name in sorted(known)]}


def _view(promotion: Promotion, fleet: FleetRecord, *, rule: bool) -> schema.Promotion:
    return {
        "target": promotion.target,
        "source": promotion.source,
        "rule": rule,
        "state": _state(promotion),
        "values": [{"field": each.path, "value": each.value} for each in promotion.values],
        "pullRequest": promotion.url if promotion.values else "",
        "by": promotion.by,
        "askedAt": iso(promotion.asked) if promotion.asked else None,
        "problem": promotion.problem,
        "holds": list(_holds(promotion, fleet)) if rule else [],
    }


def _state(promotion: Promotion) -> str:
    """Return what became of the newest pull request, as far as it is known."""
    if not promotion.values:
        return "none"
    if all(each in promotion.merged for each in promotion.values):
        return "merged"
    return "declined" if all(each in promotion.declined for each in promotion.values) else "open"


def _holds(promotion: Promotion, fleet: FleetRecord) -> Iterator[schema.PromotionHold]:
    """Yield the values that the environment has not, and that no rule gives to it."""
    had = next((each for each in fleet.had if each.environment == promotion.target), None)
    if had is None:
        return
    lifted = {each.value: each.at for each in promotion.lifted}
    has = {*had.file, *had.clusters}
    withdrew = [each.value for each in had.withdrawn if had.withdrew(each.value, lifted.get(each.value))]
    found: dict[Value, Reason] = dict.fromkeys(promotion.declined, Reason.DECLINED)
    found |= dict.fromkeys([*promotion.merged, *withdrew], Reason.WITHDRAWN)
    for value, reason in sorted(found.items()):
        if value not in has:
            yield {"field": value.path, "value": value.value, "reason": reason.value}
