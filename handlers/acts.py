"""The audited acts of the HTTP API, each an entry of a table: its route, its role, what it takes and does.

What they share is done once: the body and the reason are read, and the act is saved before it happens.
"""

from __future__ import annotations

from handlers.act_route import add_act
from handlers.cluster_acts import CLUSTER_ACTS
from handlers.fleet_acts import FLEET_ACTS
from handlers.rollout_acts import ROLLOUT_ACTS
from handlers.routes import ApiRoutes
from shared.ports import Ports

ACTS = (*CLUSTER_ACTS, *ROLLOUT_ACTS, *FLEET_ACTS)


def add_acts(routes: ApiRoutes, ports: Ports) -> None:
    """Add a function for each act."""
    for entry in ACTS:
        add_act(entry, routes, ports)
