"""What Azure has billed for the clusters, as it was read last."""

from __future__ import annotations

from shared.app.api import schema
from shared.app.api.parts import iso
from shared.ports import Ports


def costs_view(ports: Ports) -> schema.CostsView:
    """Return the costs of the clusters that the fleet has, and what could not be read."""
    names = {summary.name for summary in ports.state.summaries()}
    read = sorted(ports.state.costs(), key=lambda costs: costs.subscription)
    return {
        "clusters": [
            {
                "name": name,
                "cost": cost,
                "currency": costs.currency,
                "since": costs.since,
                "until": costs.until,
                "readAt": iso(costs.at),
            }
            for costs in read
            for name, cost in costs.clusters.items()
            if name in names
        ],
        "problems": [
            {"subscription": costs.subscription, "problem": costs.problem, "at": iso(costs.tried)}
            for costs in read
            if costs.problem
        ],
    }
