"""A test message to a route of notifications."""

from __future__ import annotations

from shared.jobs.failures.errors import ReconcileError
from shared.masking import cut
from shared.notices.digest import Outgoing
from shared.notices.kinds import Severity
from shared.notices.routes import RouteType
from shared.pipeline.api import schema
from shared.pipeline.api.acts.approval import operator
from shared.pipeline.http_result import HttpResult, meant, rejected
from shared.pipeline.pull_requests.markdown import fence
from shared.ports import Ports

WRONG_BODY = 'the body must be {"route": "name"}'


def try_route(name: str, actor: str, ports: Ports) -> HttpResult:
    """Send a test message to a route at once, whatever waits for it; the answer has its error."""
    fleet = ports.state.fleet()
    route = next((each for each in fleet.routes if each.name == name), None)
    if route is None:
        known = ", ".join(each.name for each in fleet.routes) or "none"
        near = meant(name, (each.name for each in fleet.routes))
        return rejected(404, f"the newest plan has no route {cut(name, 63)}; it has: {known}{near}")
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
