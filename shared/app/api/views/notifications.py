"""The routes of notifications: what each waits for, and which do not deliver."""

from __future__ import annotations

from shared.app.api import schema
from shared.app.api.projection import projected
from shared.notifications.record import RouteState
from shared.notifications.routes import Route
from shared.ports import FleetRecord, Ports


def routes_view(ports: Ports) -> schema.RoutesView:
    """Return each route of the newest plan, and how it is."""
    routes = ports.state.fleet().rules.routes
    states = ports.state.notifier_record().routes if routes else {}
    return {"routes": [_view(route, states.get(route.name, RouteState())) for route in routes]}


def failing_routes(fleet: FleetRecord, ports: Ports) -> list[schema.FailingRoute]:
    """Return the routes that do not deliver; a fleet without routes costs no read."""
    states = ports.state.notifier_record().routes if fleet.rules.routes else {}
    return [
        projected(schema.FailingRoute, outage, route=name, problem=str(outage))
        for name, state in states.items()
        if (outage := state.outage)
    ]


def _view(route: Route, state: RouteState) -> schema.RouteView:
    outage = state.outage
    return projected(
        schema.RouteView,
        route,
        state,
        severity="" if route.events else route.severity,
        pending=len(state.missing),
        problem=str(outage or ""),
        failingSince=outage.since if outage else None,
        nextAt=state.next_at if state.missing else None,
        messages=[*reversed(state.messages)],
    )
