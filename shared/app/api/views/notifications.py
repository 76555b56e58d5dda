"""The routes of notifications: what each waits for, and which do not deliver."""

from __future__ import annotations

from shared.app.api import schema
from shared.app.api.parts import iso
from shared.notices.announced import RouteState
from shared.notices.routes import Route
from shared.ports import FleetRecord, Ports


def routes_view(ports: Ports) -> schema.Routes:
    """Return each route of the newest plan, and how its channel is."""
    routes = ports.state.fleet().rules.routes
    states = ports.state.announced().routes if routes else {}
    return {"routes": [_view(route, states.get(route.name, RouteState())) for route in routes]}


def failing_channels(fleet: FleetRecord, ports: Ports) -> list[schema.FailingChannel]:
    """Return the routes that do not deliver; a fleet without routes costs no read."""
    states = ports.state.announced().routes if fleet.rules.routes else {}
    return [
        {
            "route": name,
            "problem": f"{state.outage.kind}: {state.outage.message}",
            "since": iso(state.outage.since),
        }
        for name, state in states.items()
        if state.outage
    ]


def _view(route: Route, state: RouteState) -> schema.Route:
    outage = state.outage
    return {
        "name": route.name,
        "type": route.type.value,
        "severity": "" if route.events else route.severity.value,
        "events": [kind.value for kind in route.events],
        "environments": list(route.environments),
        "labels": dict(route.labels),
        "sent": state.sent,
        "pending": len(state.missing),
        "problem": f"{outage.kind}: {outage.message}" if outage else "",
        "failingSince": iso(outage.since) if outage else None,
        "nextAt": iso(state.next_at) if state.missing else None,
    }
