"""The routes of notifications: what each waits for, and a test message to one of them."""

from __future__ import annotations

from shared.jobs.failures.errors import ReconcileError
from shared.notices.announced import RouteState
from shared.notices.digest import Outgoing
from shared.notices.kinds import Severity
from shared.notices.routes import Route, RouteType
from shared.pipeline.api import schema
from shared.pipeline.api.approval import operator
from shared.pipeline.api.parts import iso
from shared.pipeline.http_result import HttpResult, rejected
from shared.pipeline.pull_requests.markdown import fence
from shared.ports import FleetRecord, Ports

WRONG_BODY = 'the body must be {"route": "name"}'


def routes_view(ports: Ports) -> schema.Routes:
    """Return each route of the newest plan, and how its channel is."""
    routes = ports.state.fleet().routes
    states = ports.state.announced().routes if routes else {}
    return {"routes": [_view(route, states.get(route.name, RouteState())) for route in routes]}


def failing_channels(fleet: FleetRecord, ports: Ports) -> list[schema.FailingChannel]:
    """Return the routes that do not deliver; a fleet without routes costs no read."""
    states = ports.state.announced().routes if fleet.routes else {}
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
        "pending": len(state.pending),
        "problem": f"{outage.kind}: {outage.message}" if outage else "",
        "failingSince": iso(outage.since) if outage else None,
        "nextAt": iso(state.next_at) if state.pending else None,
    }


def try_route(name: str, actor: str, ports: Ports) -> HttpResult:
    """Send a test message to a route at once, whatever waits for it; the answer has its error."""
    fleet = ports.state.fleet()
    route = next((each for each in fleet.routes if each.name == name), None)
    if route is None:
        known = ", ".join(each.name for each in fleet.routes) or "none"
        return rejected(404, f"the newest plan has no route {name[:63]}; it has: {known}")
    by = operator(actor)
    title = f"{ports.config.fleet}: a test of the route {name}"
    text = f"{by} asked for this test. The route works."
    message = Outgoing(f"test-{ports.unique()}", ports.config.fleet, title, Severity.INFO, text, (), ())
    try:
        if route.type is RouteType.GITHUB:
            ports.issues.close_issue(ports.issues.open_issue(title, fence(text)))
        else:
            ports.channels.send(route, message)
    except ReconcileError as error:
        return rejected(409, f"{name} does not deliver: {error.kind}: {error}")
    receipt: schema.RouteReceipt = {"route": name, "delivered": True, "by": by}
    return HttpResult(200, receipt)
