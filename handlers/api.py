"""The API: what is known of clusters and plans, for people and scripts; approvals and replays.

In Azure each needs a function key (header ``x-functions-key``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import azure.functions as func

from handlers.reply import json_reply
from shared.fleet.manifests.base import shown
from shared.pipeline.api import approval, replay, views
from shared.pipeline.api.import_cluster import import_cluster as read_manifest
from shared.pipeline.recovery.dead_letters import dismiss as dismiss_dead_letters
from shared.ports import Ports

EVENTS_PAGE, MAX_EVENTS = 50, 1000
MAX_PAGE = 500


def blueprint(ports: Ports) -> func.Blueprint:
    """Return the API."""
    bp = func.Blueprint()

    @bp.function_name("clusters")
    @bp.route("clusters", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def clusters(req: func.HttpRequest) -> func.HttpResponse:
        return _paged(req, lambda page: views.fleet_view(ports, page))

    @bp.function_name("cluster")
    @bp.route("clusters/{name}", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def cluster(req: func.HttpRequest) -> func.HttpResponse:
        name = req.route_params["name"]
        view = views.cluster_detail(name, ports)
        return json_reply(200, view) if view else _unknown(name, ports)

    @bp.function_name("events")
    @bp.route("clusters/{name}/events", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def events(req: func.HttpRequest) -> func.HttpResponse:
        name = req.route_params["name"]
        try:
            limit, before = _page(req.params)
        except ValueError:
            words = f"limit must be 1 to {MAX_EVENTS}, before a time as 2026-01-31T12:00:00+00:00"
            return json_reply(400, {"error": words})
        view = views.events_view(name, limit, before, ports)
        return json_reply(200, view) if view else _unknown(name, ports)

    @bp.function_name("why")
    @bp.route("clusters/{name}/why", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def why(req: func.HttpRequest) -> func.HttpResponse:
        name = req.route_params["name"]
        view = views.why_view(name, ports)
        return json_reply(200, view) if view else _unknown(name, ports)

    @bp.function_name("replay")
    @bp.route("clusters/{name}/replay", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    def replay_job(req: func.HttpRequest) -> func.HttpResponse:
        answer = replay.replay(req.route_params["name"], _actor(req), ports)
        return json_reply(answer.status, answer.body)

    @bp.function_name("dead_letters")
    @bp.route("dead-letters", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def dead_letters(req: func.HttpRequest) -> func.HttpResponse:
        return json_reply(200, views.dead_letters_view(ports))

    @bp.function_name("dismiss")
    @bp.route("dead-letters/put-away", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    def dismiss(req: func.HttpRequest) -> func.HttpResponse:
        named = _letters_in(req.get_body())
        if named is None:
            return json_reply(
                400, {"error": 'the body must be {"deadLetters": [{"queue": "", "id": ""}, ...]}'}
            )
        return json_reply(200, {"putAway": dismiss_dead_letters(named, _actor(req), ports)})

    @bp.function_name("recorded")
    @bp.route("recorded", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def recorded(req: func.HttpRequest) -> func.HttpResponse:
        return _paged(req, lambda page: views.recorded_view(ports, page))

    @bp.function_name("import")
    @bp.route("import", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def import_cluster(req: func.HttpRequest) -> func.HttpResponse:
        answer = read_manifest(req.params.get("resource") or "", ports)
        return json_reply(answer.status, answer.body)

    @bp.function_name("plan")
    @bp.route("plans/{commit}", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def plan(req: func.HttpRequest) -> func.HttpResponse:
        commit = req.route_params["commit"]
        missing = f"the commit {commit[:40]} was not planned (give the full id)"
        return _paged(req, lambda page: views.plan_view(commit, ports, page), missing)

    @bp.function_name("plans")
    @bp.route("plans", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def plans(req: func.HttpRequest) -> func.HttpResponse:
        return json_reply(200, views.plans_view(ports))

    @bp.function_name("approve")
    @bp.route("plans/{commit}/approve", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    def approve(req: func.HttpRequest) -> func.HttpResponse:
        names = _clusters_in(req.get_body())
        if names is None:
            return json_reply(400, {"error": 'the body must be {"clusters": ["name", ...]}'})
        answer = approval.approve(req.route_params["commit"], names, _actor(req), ports)
        return json_reply(answer.status, answer.body)

    return bp


def _actor(req: func.HttpRequest) -> str:
    """Return who asks, as they say: percent-encoded in UTF-8, one line."""
    return shown(unquote(req.headers.get("x-roadstead-actor") or ""), approval.MAX_ACTOR)


def _unknown(name: str, ports: Ports) -> func.HttpResponse:
    return json_reply(404, {"error": views.unknown(name, ports)})


def _paged(
    req: func.HttpRequest, view: Callable[[views.Page], dict[str, Any] | None], missing: str = ""
) -> func.HttpResponse:
    """Answer with the page of clusters that is asked for: ``after`` a name, at most ``limit``."""
    limit = req.params.get("limit") or str(views.PAGE)
    if not (limit.isdecimal() and 1 <= int(limit) <= MAX_PAGE):
        return json_reply(400, {"error": f"limit must be 1 to {MAX_PAGE}"})
    found = view(views.Page(req.params.get("after") or "", int(limit)))
    return json_reply(404, {"error": missing}) if found is None else json_reply(200, found)


def _page(params: Mapping[str, str]) -> tuple[int, datetime | None]:
    """Return the limit and the time of a page of events; raise ValueError when they are none."""
    limit = int(params.get("limit") or EVENTS_PAGE)
    if not 1 <= limit <= MAX_EVENTS:
        raise ValueError
    given = params.get("before")
    before = datetime.fromisoformat(given.replace(" ", "+")) if given else None
    return limit, before if before is None or before.tzinfo else before.replace(tzinfo=UTC)


def _clusters_in(body: bytes) -> list[str] | None:
    """Return the names in the body of an approval, None when it is not one."""
    try:
        names = json.loads(body)["clusters"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return names if isinstance(names, list) and all(isinstance(n, str) for n in names) else None


def _letters_in(body: bytes) -> set[tuple[str, str]] | None:
    """Return the queue and id of each dead letter in a body, None when it is not one of dead letters."""
    try:
        return {(str(each["queue"]), str(each["id"])) for each in json.loads(body)["deadLetters"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
