"""The HTTP API for operators and scripts: clusters, events, plans; what operators ask for.

Each route names the role that it needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import azure.functions as func

from handlers.approvals import add_approvals, clusters_in
from handlers.azure_reads import add_azure_reads
from handlers.notifications import add_notifications
from handlers.promotions import add_promotions
from handlers.replays import add_replay
from handlers.reply import html, reply
from handlers.rollbacks import add_rollback
from handlers.rollouts import add_rollouts
from handlers.routes import Routes
from handlers.sign_in import SignIn
from shared.app.api.access import Caller, Role
from shared.app.api.acts import requests as dead_letters
from shared.app.api.acts import requests as refresh
from shared.app.api.acts import requests as sync
from shared.app.api.acts import takeover
from shared.app.api.audit import MAX_TEXT, Request, audit_view, audited
from shared.app.api.parts import PAGE, Page
from shared.app.api.views import clusters, drift, plans, tree, why
from shared.app.api.views import tree as outputs
from shared.app.api.views.cluster_list import Selection, Sort
from shared.app.api.views.plan_page import message_page, plan_page
from shared.app.http_result import HttpResult, rejected
from shared.cluster.record import Phase
from shared.language.model.base import shown
from shared.masking import cut
from shared.ports import Ports

EVENTS_PAGE, MAX_EVENTS = 50, 1000
MAX_PAGE = 500
WRONG_PAGE = f"limit must be 1 to {MAX_EVENTS}, before a time such as 2026-01-31T12:00:00+00:00"
WRONG_SELECTION = (
    f"phase must be some of {', '.join(Phase)}, separated by commas, condition types such as Ready=False, "
    f"and sort {' or '.join(Sort)}"
)
LONGEST_NUMBER = 9
"""Python refuses to parse a number with thousands of digits."""


def blueprint(ports: Ports, sign_in: SignIn) -> func.Blueprint:
    """Return the API."""
    bp = func.Blueprint()
    routes = Routes(bp, sign_in)
    _add_clusters(routes, ports)
    _add_plans(routes, ports)
    _add_dead_letters(routes, ports)
    _add_audit(routes, ports)
    add_approvals(routes, ports, _reason)
    add_azure_reads(routes, ports, _reason)
    add_notifications(routes, ports, _reason)
    add_replay(routes, ports, _reason)
    add_rollouts(routes, ports, _reason, _paged)
    add_promotions(routes, ports, _reason)
    add_rollback(routes, ports, _reason)
    return bp


def _add_clusters(routes: Routes, ports: Ports) -> None:
    @routes.add("clusters", "clusters", Role.READER)
    def fleet(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        try:
            selection = _selection(req.params)
        except ValueError:
            return reply(rejected(400, WRONG_SELECTION))
        try:
            return _paged(req, lambda page: clusters.fleet_view(ports, page, selection))
        except clusters.UnknownCommit:
            return reply(rejected(404, _not_planned(selection.commit)))

    @routes.add("cluster", "clusters/{name}", Role.READER)
    def cluster(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name = req.route_params["name"]
        return _of_cluster(name, clusters.cluster_detail(name, ports), ports)

    @routes.add("events", "clusters/{name}/events", Role.READER)
    def events(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name = req.route_params["name"]
        try:
            limit, before = _events_page(req.params)
        except ValueError:
            return reply(rejected(400, WRONG_PAGE))
        return _of_cluster(name, clusters.events_view(name, limit, before, ports), ports)

    @routes.add("why", "clusters/{name}/why", Role.READER)
    def explain(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name = req.route_params["name"]
        return _of_cluster(name, why.why_view(name, ports), ports)

    @routes.add("tree", "clusters/{name}/tree", Role.READER)
    def as_tree(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name = req.route_params["name"]
        return _of_cluster(name, tree.tree_view(name, ports), ports)

    @routes.add("output", "clusters/{name}/output", Role.READER)
    def output(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name = req.route_params["name"]
        return _of_cluster(name, outputs.outputs_view(name, ports), ports)

    @routes.add("drift", "drift", Role.READER)
    def drifted(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name = req.params.get("cluster")
        if name:
            return _of_cluster(name, drift.drift_of_cluster(name, ports), ports)
        return _paged(req, lambda page: drift.drift_view(ports, page))

    @routes.add("takeover", "clusters/{name}/takeover", Role.APPROVER, method="POST")
    def take_over(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name, reason = req.route_params["name"], _reason(req)
        act = Request("takeover", name, (name,), reason)
        return reply(
            audited(act, caller, ports, lambda: takeover.take_over(name, caller.name, ports, reason))
        )

    @routes.add("takeover_repository", "takeover", Role.APPROVER, method="POST")
    def accept_source(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        act = Request("takeover", ports.config.repository, reason=_reason(req))
        return reply(audited(act, caller, ports, lambda: takeover.accept_source(caller.name, ports)))

    @routes.add("refresh", "refresh", Role.OPERATOR, method="POST")
    def compare_now(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        names = _refreshed(req.get_body())
        if names is None:
            return reply(rejected(400, refresh.WRONG_BODY))
        act = Request("refresh", ", ".join(names) or "all", tuple(names), _reason(req))
        return reply(audited(act, caller, ports, lambda: refresh.refresh(names, caller.name, ports)))

    @routes.add("sync", "sync", Role.OPERATOR, method="POST")
    def sync_now(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        act = Request("sync", ports.config.branch, reason=_reason(req))
        return reply(audited(act, caller, ports, lambda: sync.sync(caller.name, ports)))


def _add_plans(routes: Routes, ports: Ports) -> None:
    @routes.add("plans", "plans", Role.READER)
    def newest(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        return reply(HttpResult(200, plans.plans_view(ports)))

    @routes.add("plan", "plans/{commit}", Role.READER)
    def plan(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        commit = req.route_params["commit"]
        return _paged(req, lambda page: plans.plan_view(commit, ports, page), _not_planned(commit))

    @routes.add("plan_page", "plans/{commit}/page", Role.READER, page=True)
    def page(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        commit, after = req.route_params["commit"], req.params.get("after") or ""
        view = plans.plan_view(commit, ports, Page(after, PAGE))
        if view is None:
            return html(404, message_page("No such plan", f"The commit {cut(commit, 40)} was not planned."))
        return html(200, plan_page(view, fleet=ports.config.fleet, first=not after))

    @routes.add("recorded", "recorded", Role.READER)
    def recorded(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        return _paged(req, lambda page: plans.recorded_view(ports, page))


def _add_dead_letters(routes: Routes, ports: Ports) -> None:
    @routes.add("dead_letters", "dead-letters", Role.READER)
    def listed(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        return reply(HttpResult(200, dead_letters.dead_letters_view(ports)))

    @routes.add("dismiss", "dead-letters/dismiss", Role.OPERATOR, method="POST")
    def dismiss(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        named = _letters_in(req.get_body())
        if named is None:
            return reply(rejected(400, 'the body must be {"deadLetters": [{"queue": "", "id": ""}, ...]}'))
        letters = ", ".join(f"{queue}/{identifier}" for queue, identifier in sorted(named))
        act = Request("dismiss", letters, reason=_reason(req))
        return reply(
            audited(
                act, caller, ports, lambda: HttpResult(200, dead_letters.dismiss(named, caller.name, ports))
            )
        )


def _add_audit(routes: Routes, ports: Ports) -> None:
    @routes.add("audit", "audit", Role.READER)
    def audit(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        try:
            limit, before = _events_page(req.params)
        except ValueError:
            return reply(rejected(400, WRONG_PAGE))
        return reply(HttpResult(200, audit_view(limit, before, ports)))


def _of_cluster(name: str, view: Mapping[str, Any] | None, ports: Ports) -> func.HttpResponse:
    """Reply with the view of a cluster, or with 404 where nothing is known of it."""
    result = HttpResult(200, view) if view else rejected(404, clusters.describe_unknown(name, ports))
    return reply(result)


def _paged(
    req: func.HttpRequest, view: Callable[[Page], Mapping[str, Any] | None], missing: str = ""
) -> func.HttpResponse:
    """Reply with the requested page of clusters: at most ``limit``, after the name ``after``."""
    limit = req.params.get("limit") or str(PAGE)
    if not (limit.isdecimal() and len(limit) <= LONGEST_NUMBER and 1 <= int(limit) <= MAX_PAGE):
        return reply(rejected(400, f"limit must be 1 to {MAX_PAGE}"))
    body = view(Page(req.params.get("after") or "", int(limit)))
    return reply(rejected(404, missing) if body is None else HttpResult(200, body))


def _selection(params: Mapping[str, str]) -> Selection:
    """Return which clusters are listed; raise ValueError for an unknown phase, status or order."""
    return Selection(
        phases=frozenset(map(Phase, _parts(params, "phase"))),
        environment=params.get("environment") or "",
        location=params.get("location") or "",
        prefix=params.get("prefix") or "",
        cluster_class=params.get("class") or "",
        labels=frozenset(_label(each) for each in _parts(params, "label")),
        conditions=frozenset(_condition(each) for each in _parts(params, "condition")),
        commit=params.get("commit") or "",
        sort=Sort(params.get("sort") or Sort.NAME),
    )


def _parts(params: Mapping[str, str], name: str) -> list[str]:
    """Return the parts of a parameter that commas separate."""
    return [part for part in (params.get(name) or "").split(",") if part]


def _label(text: str) -> tuple[str, str | None]:
    """Return the key and the value of ``key=value``, or the key alone with None for any value."""
    key, given, value = text.partition("=")
    return key, value if given else None


_STATUSES: Mapping[str, bool | None] = {"": True, "True": True, "False": False, "Unknown": None}


def _condition(text: str) -> tuple[str, bool | None]:
    """Return the type and the status of ``Type=False``; ``Type`` alone is true, and None unknown."""
    kind, given, status = text.partition("=")
    if not kind or status not in _STATUSES or (given and not status):
        raise ValueError(text)
    return kind, _STATUSES[status]


def _not_planned(commit: str) -> str:
    return f"the commit {cut(commit, 40)} was not planned (give the full id)"


def _events_page(params: Mapping[str, str]) -> tuple[int, datetime | None]:
    """Return the limit and the time of a page of events; raise ValueError for an invalid one."""
    limit = int(params.get("limit") or EVENTS_PAGE)
    if not 1 <= limit <= MAX_EVENTS:
        raise ValueError
    given = params.get("before")
    before = datetime.fromisoformat(given.replace(" ", "+")) if given else None
    return limit, before if before is None or before.tzinfo else before.replace(tzinfo=UTC)


def _reason(req: func.HttpRequest) -> str:
    """Return why the caller acts, on one line: ``reason`` of the body, or of a GET's parameters; or ""."""
    given: Any = req.params.get("reason")
    if req.method == "POST":
        try:
            body = json.loads(req.get_body() or b"{}")
        except (ValueError, RecursionError):
            body = None
        given = body.get("reason") if isinstance(body, dict) else None
    return shown(given, MAX_TEXT) if isinstance(given, str) else ""


def _refreshed(body: bytes) -> list[str] | None:
    """Return the clusters that a refresh names, none for all of them, None for a body of another form."""
    names = clusters_in(body)
    if names is not None:
        return names if 1 <= len(names) <= refresh.MAX_CLUSTERS else None
    try:
        return [] if json.loads(body)["all"] is True else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _letters_in(body: bytes) -> set[tuple[str, str]] | None:
    """Return the queue and id of each dead letter that a body names, None when the body has another form."""
    try:
        return {(str(each["queue"]), str(each["id"])) for each in json.loads(body)["deadLetters"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
