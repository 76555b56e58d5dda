"""The HTTP API for operators and scripts: what it shows, and the acts that ``acts.py`` joins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from types import NoneType
from typing import Any, Union, get_args, get_type_hints

import azure.functions as func
from pydantic import ValidationError

from handlers.act_route import said
from handlers.acts import add_acts
from handlers.bodies import OffersBody
from handlers.executions import counted
from handlers.reply import reply
from handlers.routes import ANYBODY, API, ApiRoutes, callable_by
from handlers.sign_in import SignIn
from shared.app.api import schema
from shared.app.api.access import Caller, Role
from shared.app.api.acts.fleet import dead_letters_view
from shared.app.api.audit import audit_view
from shared.app.api.openapi import document
from shared.app.api.parts import PAGE, ClusterPage
from shared.app.api.views import clusters, costs, drift, plans, tree, versions, why
from shared.app.api.views.cluster_list import Sort, selection_of
from shared.app.api.views.notifications import routes_view
from shared.app.api.views.plans import log_view
from shared.app.api.views.rollouts import rollout_view, rollouts_view
from shared.app.api.views.versions import NO_SPEC, offers_view, readiness_view, unknown_names
from shared.app.doctor import doctor_view
from shared.app.health import Health, health_view, ready_view
from shared.app.http_result import HttpResult, rejected
from shared.cluster.record_parts import Phase
from shared.frozen import replace
from shared.kubernetes.readiness.blockers import minor_of
from shared.masking import cut
from shared.ports import Ports

View = Mapping[str, Any]
EVENTS_PAGE, MAX_EVENTS = 50, 1000
MAX_PAGE = 500
PAGED, DATED = ("limit", "after"), ("limit", "before")
SELECTED = (
    *(
        "phase",
        "environment",
        "location",
        "prefix",
        "text",
        "version",
        "owner",
        "class",
        "label",
        "condition",
    ),
    *("cause", "commit", "sort"),
)
UPGRADED = ("to", "cluster", *SELECTED)
WRONG_VERSION = "to must be a version of Kubernetes, such as 1.38"
WRONG_PAGE = f"limit must be 1 to {MAX_EVENTS}, before a time such as 2026-01-31T12:00:00+00:00"
WRONG_SELECTION = (
    f"phase must be some of {', '.join(Phase)}, separated by commas, condition types such as Ready=False, "
    f"and sort {', '.join(Sort)}, or one of these after - for the order from its end"
)
WRONG_ASKED = "asked must be a time such as 2026-01-31T12:00:00+00:00"
LONGEST_NUMBER = 9
"""Python refuses to parse a number with thousands of digits."""


def blueprint(ports: Ports, sign_in: SignIn, health: Health) -> func.Blueprint:
    """Return the API."""
    bp = func.Blueprint()
    routes = ApiRoutes(bp, sign_in, ports)
    for name, whole in WHOLE.items():
        _add_whole(routes, name, whole, ports)
    for name, of_cluster in OF_CLUSTER.items():
        _add_of_cluster(routes, name, of_cluster, ports)
    _add_pages(routes, ports)
    _add_offers(routes, ports)
    add_acts(routes, ports)
    _add_health(routes, health, ports)

    @routes.add("openapi", "openapi", Role.READER)
    def openapi(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        return reply(HttpResult(200, document(routes.operations)))

    return bp


WHOLE: Mapping[str, Callable[[Ports], View]] = {
    "plans": plans.plans_view,
    "dead-letters": dead_letters_view,
    "notifications": routes_view,
    "rollouts": rollouts_view,
    "promotions": plans.promotions_view,
    "cost": costs.costs_view,
    "versions": versions.versions_view,
    "systems": versions.systems_view,
}
"""The reads that show one thing whole, by their routes."""
OF_CLUSTER: Mapping[str, Callable[[str, Ports], View | None]] = {
    "": clusters.cluster_detail,
    "why": why.why_view,
    "tree": tree.tree_view,
    "output": tree.outputs_view,
}
"""The reads of one cluster, by the ends of their routes; None where nothing is known of it."""


def _add_whole(routes: ApiRoutes, route: str, view: Callable[[Ports], View], ports: Ports) -> None:
    @routes.add(route.replace("-", "_"), route, Role.READER, answer=_answer_of(view))
    def function(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        return reply(HttpResult(200, view(ports)))


def _add_of_cluster(
    routes: ApiRoutes, part: str, view: Callable[[str, Ports], View | None], ports: Ports
) -> None:
    path = f"clusters/{{name}}/{part}".rstrip("/")

    @routes.add(part or "cluster", path, Role.READER, answer=_answer_of(view))
    def function(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name = req.route_params["name"]
        return _of_cluster(name, view(name, ports), ports)


def _add_pages(routes: ApiRoutes, ports: Ports) -> None:
    """Add the reads that come in pages."""

    @routes.add("clusters", "clusters", Role.READER, answer=schema.FleetView, query=PAGED + SELECTED)
    def fleet(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        try:
            selection = selection_of(req.params)
        except ValueError:
            return reply(rejected(400, WRONG_SELECTION))
        try:
            return _paged(req, lambda page: clusters.fleet_view(ports, page, selection))
        except clusters.UnknownCommit:
            return reply(rejected(404, _not_planned(selection.commit)))

    @routes.add("events", "clusters/{name}/events", Role.READER, answer=schema.Events, query=DATED)
    def events(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name = req.route_params["name"]
        try:
            limit, before = _events_page(req.params)
        except ValueError:
            return reply(rejected(400, WRONG_PAGE))
        return _of_cluster(name, clusters.events_view(name, limit, before, ports), ports)

    @routes.add("audit", "audit", Role.READER, answer=schema.Audit, query=DATED)
    def audit(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        try:
            limit, before = _events_page(req.params)
        except ValueError:
            return reply(rejected(400, WRONG_PAGE))
        return reply(HttpResult(200, audit_view(limit, before, ports)))

    @routes.add("drift", "drift", Role.READER, answer=schema.DriftView, query=(*PAGED, "cluster"))
    def drifted(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name = req.params.get("cluster")
        if name:
            return _of_cluster(name, drift.drift_of_cluster(name, ports), ports)
        return _paged(req, lambda page: drift.drift_view(ports, page))

    @routes.add("readiness", "readiness", Role.READER, answer=schema.ReadinessView, query=PAGED + UPGRADED)
    def readiness(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        to, names = req.params.get("to") or "", _parts(req.params, "cluster")
        if to and minor_of(to) is None:
            return reply(rejected(400, WRONG_VERSION))
        unknown = unknown_names(names, ports)
        if unknown:
            return reply(rejected(404, clusters.describe_unknown(unknown[0], ports)))
        try:
            selection = replace(selection_of(req.params), names=frozenset(names) if names else None)
        except ValueError:
            return reply(rejected(400, WRONG_SELECTION))
        return _paged(req, lambda page: readiness_view(ports, page, selection, to))

    @routes.add("plan", "plans/{commit}", Role.READER, answer=schema.PlanView, query=PAGED)
    def plan(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        commit = req.route_params["commit"]
        return _paged(req, lambda page: plans.plan_view(commit, ports, page), _not_planned(commit))

    @routes.add("pull", "pulls/{number}", Role.READER, answer=schema.PullPlanView, query=PAGED)
    def pull(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        given = req.route_params["number"]
        number = int(given) if given.isdecimal() and given.isascii() and len(given) <= LONGEST_NUMBER else 0
        missing = f"the pull request {cut(given, 40)} was not planned"
        return _paged(req, lambda page: plans.pull_plan_view(number, ports, page), missing)

    @routes.add("log", "log", Role.READER, answer=schema.Log, query=("environment",))
    def log(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        environment = req.params.get("environment") or ""
        view = log_view(environment, ports)
        missing = f"no cluster is in an environment {cut(environment, 63) or '(give one)'}"
        return reply(HttpResult(200, view) if view else rejected(404, missing))

    @routes.add("recorded", "recorded", Role.READER, answer=schema.RecordedFleet, query=PAGED)
    def recorded(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        return _paged(req, lambda page: plans.recorded_view(ports, page))

    @routes.add("rollout", "rollouts/{commit}", Role.READER, answer=schema.RolloutView, query=PAGED)
    def rollout(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        commit = req.route_params["commit"]
        missing = f"the commit {cut(commit, 40)} has no rollout (give the full id)"
        return _paged(req, lambda page: rollout_view(commit, ports, page), missing)


def _add_offers(routes: ApiRoutes, ports: Ports) -> None:
    """Add a read with a body: the clusters that files on somebody's machine ask for."""

    @routes.add(
        "offers",
        "offers",
        Role.READER,
        method="POST",
        answer=schema.OffersView,
        body=OffersBody,
    )
    def function(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        try:
            body = OffersBody.model_validate(said(req))
        except ValidationError:
            return reply(rejected(400, NO_SPEC))
        return reply(offers_view([cluster.model_dump() for cluster in body.clusters], ports))


def _answer_of(view: Callable[..., View | None]) -> Any:
    """Return the classes of what a view shows."""
    hint = get_type_hints(view)["return"]
    return Union[tuple(kind for kind in get_args(hint) or (hint,) if kind is not NoneType)]  # noqa: UP007


def _add_health(routes: ApiRoutes, app: Health, ports: Ports) -> None:
    """Add health and findings for callers with a role, and the readiness for a probe that has none.

    The probe's route passes the sign-in of the platform, so that it believes no identity at all.
    """

    @routes.add("health", "health", Role.READER, answer=schema.HealthView)
    def health(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        return reply(health_view(app.read()))

    @routes.add("doctor", "doctor", Role.READER, answer=schema.DoctorView)
    def doctor(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        try:
            asked = _moment(req.params.get("asked"))
        except ValueError:
            return reply(rejected(400, WRONG_ASKED))
        return reply(HttpResult(200, doctor_view(app.read(), ports, asked)))

    @routes.bp.function_name("ready")
    @routes.bp.route(f"{API}/ready", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    @partial(callable_by, ANYBODY)
    @counted("ready", ports)
    def ready(req: func.HttpRequest) -> func.HttpResponse:
        return reply(ready_view(app.read()))


def _of_cluster(name: str, view: View | None, ports: Ports) -> func.HttpResponse:
    """Reply with the view of a cluster, or with 404 where nothing is known of it."""
    result = HttpResult(200, view) if view else rejected(404, clusters.describe_unknown(name, ports))
    return reply(result)


def _paged(
    req: func.HttpRequest, view: Callable[[ClusterPage], View | None], missing: str = ""
) -> func.HttpResponse:
    """Reply with the requested page of clusters: at most ``limit``, after the name ``after``."""
    limit = req.params.get("limit") or str(PAGE)
    if not (limit.isdecimal() and len(limit) <= LONGEST_NUMBER and 1 <= int(limit) <= MAX_PAGE):
        return reply(rejected(400, f"limit must be 1 to {MAX_PAGE}"))
    body = view(ClusterPage(req.params.get("after") or "", int(limit)))
    return reply(rejected(404, missing) if body is None else HttpResult(200, body))


def _parts(params: Mapping[str, str], name: str) -> list[str]:
    """Return the parts of a parameter that commas separate."""
    return [part for part in (params.get(name) or "").split(",") if part]


def _not_planned(commit: str) -> str:
    return f"the commit {cut(commit, 40)} was not planned (give the full id)"


def _events_page(params: Mapping[str, str]) -> tuple[int, datetime | None]:
    """Return the limit and the time of a page of events; raise ValueError for an invalid one."""
    limit = int(params.get("limit") or EVENTS_PAGE)
    if not 1 <= limit <= MAX_EVENTS:
        raise ValueError
    return limit, _moment(params.get("before"))


def _moment(given: str | None) -> datetime | None:
    """Return a time of a query, None for none; raise ValueError."""
    moment = datetime.fromisoformat(given.replace(" ", "+")) if given else None
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)
