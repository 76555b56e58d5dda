"""The HTTP API: clusters, events and plans for operators and scripts; replays, approvals and imports.

In Azure each function needs a function key (header ``x-functions-key``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import azure.functions as func

from handlers.reply import reply
from shared.fleet.manifests.base import shown
from shared.pipeline.api import approval, clusters, dead_letters, plans, replay, why
from shared.pipeline.api.import_cluster import import_cluster
from shared.pipeline.api.parts import PAGE, Page
from shared.pipeline.http_result import HttpResult, rejected
from shared.ports import Ports

EVENTS_PAGE, MAX_EVENTS = 50, 1000
MAX_PAGE = 500
LONGEST_NUMBER = 9
"""Python refuses to parse a number with thousands of digits."""


def blueprint(ports: Ports) -> func.Blueprint:
    """Return the API."""
    bp = func.Blueprint()
    _add_clusters(bp, ports)
    _add_plans(bp, ports)
    _add_dead_letters(bp, ports)
    return bp


def _add_clusters(bp: func.Blueprint, ports: Ports) -> None:
    @bp.function_name("clusters")
    @bp.route("clusters", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def fleet(req: func.HttpRequest) -> func.HttpResponse:
        return _paged(req, lambda page: clusters.fleet_view(ports, page))

    @bp.function_name("cluster")
    @bp.route("clusters/{name}", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def cluster(req: func.HttpRequest) -> func.HttpResponse:
        name = req.route_params["name"]
        return _of_cluster(name, clusters.cluster_detail(name, ports), ports)

    @bp.function_name("events")
    @bp.route("clusters/{name}/events", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def events(req: func.HttpRequest) -> func.HttpResponse:
        name = req.route_params["name"]
        try:
            limit, before = _events_page(req.params)
        except ValueError:
            error = f"limit must be 1 to {MAX_EVENTS}, before a time such as 2026-01-31T12:00:00+00:00"
            return reply(rejected(400, error))
        return _of_cluster(name, clusters.events_view(name, limit, before, ports), ports)

    @bp.function_name("why")
    @bp.route("clusters/{name}/why", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def explain(req: func.HttpRequest) -> func.HttpResponse:
        name = req.route_params["name"]
        return _of_cluster(name, why.why_view(name, ports), ports)

    @bp.function_name("replay")
    @bp.route("clusters/{name}/replay", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    def replay_job(req: func.HttpRequest) -> func.HttpResponse:
        return reply(replay.replay(req.route_params["name"], _actor(req), ports))

    @bp.function_name("import")
    @bp.route("import", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def manifest(req: func.HttpRequest) -> func.HttpResponse:
        return reply(import_cluster(req.params.get("resource") or "", ports))


def _add_plans(bp: func.Blueprint, ports: Ports) -> None:
    @bp.function_name("plans")
    @bp.route("plans", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def newest(req: func.HttpRequest) -> func.HttpResponse:
        return reply(HttpResult(200, plans.plans_view(ports)))

    @bp.function_name("plan")
    @bp.route("plans/{commit}", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def plan(req: func.HttpRequest) -> func.HttpResponse:
        commit = req.route_params["commit"]
        missing = f"the commit {commit[:40]} was not planned (give the full id)"
        return _paged(req, lambda page: plans.plan_view(commit, ports, page), missing)

    @bp.function_name("approve")
    @bp.route("plans/{commit}/approve", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    def approve(req: func.HttpRequest) -> func.HttpResponse:
        names = _clusters_in(req.get_body())
        if names is None:
            return reply(rejected(400, 'the body must be {"clusters": ["name", ...]}'))
        return reply(approval.approve(req.route_params["commit"], names, _actor(req), ports))

    @bp.function_name("recorded")
    @bp.route("recorded", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def recorded(req: func.HttpRequest) -> func.HttpResponse:
        return _paged(req, lambda page: plans.recorded_view(ports, page))


def _add_dead_letters(bp: func.Blueprint, ports: Ports) -> None:
    @bp.function_name("dead_letters")
    @bp.route("dead-letters", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def listed(req: func.HttpRequest) -> func.HttpResponse:
        return reply(HttpResult(200, dead_letters.dead_letters_view(ports)))

    @bp.function_name("dismiss")
    @bp.route("dead-letters/dismiss", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    def dismiss(req: func.HttpRequest) -> func.HttpResponse:
        named = _letters_in(req.get_body())
        if named is None:
            return reply(rejected(400, 'the body must be {"deadLetters": [{"queue": "", "id": ""}, ...]}'))
        return reply(HttpResult(200, dead_letters.dismiss(named, _actor(req), ports)))


def _of_cluster(name: str, view: Mapping[str, Any] | None, ports: Ports) -> func.HttpResponse:
    """Reply with the view of a cluster, or with 404 where nothing is known of it."""
    result = HttpResult(200, view) if view else rejected(404, clusters.describe_unknown(name, ports))
    return reply(result)


def _actor(req: func.HttpRequest) -> str:
    """Return the caller's name from its header: percent-decoded, and shortened to one line."""
    return shown(unquote(req.headers.get("x-roadstead-actor") or ""), approval.MAX_ACTOR)


def _paged(
    req: func.HttpRequest, view: Callable[[Page], Mapping[str, Any] | None], missing: str = ""
) -> func.HttpResponse:
    """Reply with the requested page of clusters: at most ``limit``, after the name ``after``."""
    limit = req.params.get("limit") or str(PAGE)
    if not (limit.isdecimal() and len(limit) <= LONGEST_NUMBER and 1 <= int(limit) <= MAX_PAGE):
        return reply(rejected(400, f"limit must be 1 to {MAX_PAGE}"))
    body = view(Page(req.params.get("after") or "", int(limit)))
    return reply(rejected(404, missing) if body is None else HttpResult(200, body))


def _events_page(params: Mapping[str, str]) -> tuple[int, datetime | None]:
    """Return the limit and the time of a page of events; raise ValueError for an invalid one."""
    limit = int(params.get("limit") or EVENTS_PAGE)
    if not 1 <= limit <= MAX_EVENTS:
        raise ValueError
    given = params.get("before")
    before = datetime.fromisoformat(given.replace(" ", "+")) if given else None
    return limit, before if before is None or before.tzinfo else before.replace(tzinfo=UTC)


def _clusters_in(body: bytes) -> list[str] | None:
    """Return the clusters that an approval names, None when the body is not an approval."""
    try:
        names = json.loads(body)["clusters"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return names if isinstance(names, list) and all(isinstance(n, str) for n in names) else None


def _letters_in(body: bytes) -> set[tuple[str, str]] | None:
    """Return the queue and id of each dead letter that a body names, None when the body has another form."""
    try:
        return {(str(each["queue"]), str(each["id"])) for each in json.loads(body)["deadLetters"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
