"""The audited acts of the HTTP API, each an entry of ``ACTS``: its route, its role, what it takes and does.

What they share is done once: the body and the reason are read, and the act is saved before it happens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import azure.functions as func

from handlers.reply import reply
from handlers.routes import Routes
from shared.app.api.access import Caller, Role, decide
from shared.app.api.acts import replay, requests, rollout, takeover
from shared.app.api.acts.approval import approve
from shared.app.api.acts.approve_correction import approve_correction
from shared.app.api.acts.drill import drill
from shared.app.api.acts.import_cluster import WRONG_NAMES, import_cluster, read_live
from shared.app.api.acts.promote import WRONG_PROMOTION, promote
from shared.app.api.acts.rollback import roll_back
from shared.app.api.audit import MAX_TEXT, Request, audited
from shared.app.api.schema import LIVE_CLUSTERS
from shared.app.http_result import HttpResult, rejected
from shared.cluster.history import DRILL, LIVE
from shared.language.model.base import shown
from shared.ports import Ports
from shared.rollouts.rollout import ActKind

Body = Mapping[str, Any]
"""The JSON object of a POST, or the parameters of a GET."""


@dataclass(frozen=True)
class Call:
    """A call of an act: the parts of its route, what ``given`` of the act read, and who calls, why."""

    path: Mapping[str, str]
    given: Any
    caller: Caller
    reason: str
    ports: Ports

    @property
    def by(self) -> str:
        """How the act names its caller."""
        return self.caller.name


@dataclass(frozen=True)
class ActRoute:
    """An act: its route and role, what the audit has of a call, and what a call does.

    ``given`` reads what the act is about from the body; where it returns None, the error is ``wrong``.
    ``refusal`` says of a call that was understood why it is refused and not audited, None for no refusal.
    """

    name: str
    path: str
    role: Role
    audit: Callable[[Call], Request]
    act: Callable[[Call], HttpResult]
    given: Callable[[Body], Any] = lambda _: ""
    wrong: str = ""
    refusal: Callable[[Call], HttpResult | None] = lambda _: None
    method: Literal["GET", "POST"] = "POST"


def add_acts(routes: Routes, ports: Ports) -> None:
    """Add a function for each act."""
    for entry in ACTS:
        _add(entry, routes, ports)


def _add(entry: ActRoute, routes: Routes, ports: Ports) -> None:
    @routes.add(entry.name, entry.path, entry.role, method=entry.method)
    def function(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        body = _object_in(req.get_body()) if entry.method == "POST" else req.params
        given, reason = entry.given(body), body.get("reason")
        if given is None:
            return reply(rejected(400, entry.wrong))
        why = shown(reason, MAX_TEXT) if isinstance(reason, str) else ""
        call = Call(req.route_params, given, caller, why, ports)
        refusal = entry.refusal(call)
        if refusal is not None:
            return reply(refusal)
        request = replace(entry.audit(call), reason=why)
        return reply(audited(request, caller, ports, lambda: entry.act(call)))


def _object_in(body: bytes) -> Body:
    """Return the JSON object of a body, an empty one for a body of another form."""
    try:
        read = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _text(field: str) -> Callable[[Body], str | None]:
    """Return what reads a field with a text, None for an empty one and for another form."""

    def read(body: Body) -> str | None:
        text = body.get(field)
        return text if isinstance(text, str) and text else None

    return read


def _clusters(body: Body) -> list[str] | None:
    """Return the clusters that an approval names, None when the body is not an approval.

    The name of a cluster is ASCII. The record of the act has all names, and has room for those.
    """
    names = body.get("clusters")
    texts = isinstance(names, list) and all(isinstance(name, str) and name.isascii() for name in names)
    return names if texts else None


def _refreshed(body: Body) -> list[str] | None:
    """Return the clusters that a refresh names, none for all of them, None for a body of another form."""
    names = _clusters(body)
    if names is not None:
        return names if 1 <= len(names) <= requests.MAX_CLUSTERS else None
    return [] if body.get("all") is True else None


def _live(body: Body) -> list[str] | None:
    """Return the clusters that are read, None for none and for too many."""
    names = list(dict.fromkeys(filter(None, (body.get("clusters") or "").split(","))))
    return names if 1 <= len(names) <= LIVE_CLUSTERS else None


def _letters(body: Body) -> set[tuple[str, str]] | None:
    """Return the queue and id of each dead letter that a body names, None when the body has another form."""
    try:
        return {(str(letter["queue"]), str(letter["id"])) for letter in body["deadLetters"]}
    except (KeyError, TypeError):
        return None


def _promotion(body: Body) -> tuple[str, str, list[str]] | None:
    """Return the two environments of a body and what is promoted, None for a body of another form."""
    source, target, what = body.get("from"), body.get("to"), body.get("what", [])
    texts = isinstance(what, list) and all(isinstance(text, str) for text in (source, target, *what))
    return (source, target, what) if texts and source and target else None


def _promote(call: Call) -> HttpResult:
    source, target, what = call.given
    return promote(source, target, what, call.by, call.ports, call.reason)


def _override_refusal(call: Call) -> HttpResult | None:
    """Refuse a replay that overrides a freeze to all but an Approver with a reason."""
    denied = decide(call.caller.principal, Role.APPROVER) if call.given else None
    if denied is not None:
        return rejected(denied.status, denied.error)
    return rejected(400, replay.WITHOUT_REASON) if call.given and not call.reason.strip() else None


def _of_rollout(
    kind: ActKind, role: Role, given: Callable[[Body], str | None] = lambda _: "", wrong: str = ""
) -> ActRoute:
    """Return an act on a rollout; ``given`` reads the stage or the cluster that it is about."""

    def audit(call: Call) -> Request:
        target = "/".join(filter(None, (call.path["commit"], call.given)))
        return Request(f"rollout-{kind}", target, (call.given,) if kind is ActKind.SKIP else ())

    def act(call: Call) -> HttpResult:
        who = call.caller.principal
        return rollout.act_on_rollout(
            call.path["commit"],
            kind,
            call.given,
            call.by,
            call.ports,
            reason=call.reason,
            addresses=who.addresses,
            roles=who.roles,
            person=who.person,
        )

    return ActRoute(f"rollout_{kind}", f"rollouts/{{commit}}/{kind}", role, audit, act, given, wrong)


def _on_cluster(action: str, call: Call, *parts: str) -> Request:
    """Return the request for an act on the cluster of the route, or on ``parts`` of it."""
    return Request(action, "/".join((call.path["name"], *parts)), (call.path["name"],))


def _on_clusters(action: str, names: Iterable[str], target: str = "") -> Request:
    return Request(action, target or ", ".join(names) or "all", tuple(names))


ACTS = (
    ActRoute(
        "approve",
        "plans/{commit}/approve",
        Role.APPROVER,
        audit=lambda call: _on_clusters("approve", call.given, call.path["commit"]),
        act=lambda call: approve(
            call.path["commit"],
            call.given,
            call.by,
            call.ports,
            reason=call.reason,
            addresses=call.caller.principal.addresses,
        ),
        given=_clusters,
        wrong='the body must be {"clusters": ["name", ...]}',
    ),
    ActRoute(
        "approve_correction",
        "clusters/{name}/approve",
        Role.APPROVER,
        audit=lambda call: _on_cluster("approve", call, call.given),
        act=lambda call: approve_correction(
            call.path["name"], call.given, call.by, call.ports, reason=call.reason
        ),
        given=_text("correction"),
        wrong='the body must be {"correction": "..."}, with needsApproval of GET drift',
    ),
    ActRoute(
        "replay",
        "clusters/{name}/replay",
        Role.OPERATOR,
        audit=lambda call: _on_cluster("replay-override" if call.given else "replay", call),
        act=lambda call: replay.replay(
            call.path["name"], call.by, call.ports, call.reason, override=call.given
        ),
        given=lambda body: body.get("override") is True,
        refusal=_override_refusal,
    ),
    ActRoute(
        "rollback",
        "clusters/{name}/pools/{pool}/rollback",
        Role.OPERATOR,
        audit=lambda call: _on_cluster("rollback", call, call.path["pool"]),
        act=lambda call: roll_back(call.path["name"], call.path["pool"], call.by, call.ports, call.reason),
    ),
    ActRoute(
        "takeover",
        "clusters/{name}/takeover",
        Role.APPROVER,
        audit=lambda call: _on_cluster("takeover", call),
        act=lambda call: takeover.take_over(call.path["name"], call.by, call.ports, call.reason),
    ),
    ActRoute(
        "takeover_repository",
        "takeover",
        Role.APPROVER,
        audit=lambda call: Request("takeover", call.ports.config.repository),
        act=lambda call: takeover.accept_source(call.by, call.ports),
    ),
    ActRoute(
        "refresh",
        "refresh",
        Role.OPERATOR,
        audit=lambda call: _on_clusters("refresh", call.given),
        act=lambda call: requests.refresh(call.given, call.by, call.ports),
        given=_refreshed,
        wrong=requests.WRONG_BODY,
    ),
    ActRoute(
        "sync",
        "sync",
        Role.OPERATOR,
        audit=lambda call: Request("sync", call.ports.config.branch),
        act=lambda call: requests.sync(call.by, call.ports),
    ),
    ActRoute(
        "dismiss",
        "dead-letters/dismiss",
        Role.OPERATOR,
        audit=lambda call: Request("dismiss", ", ".join(map("/".join, sorted(call.given)))),
        act=lambda call: HttpResult(200, requests.dismiss(call.given, call.by, call.ports)),
        given=_letters,
        wrong='the body must be {"deadLetters": [{"queue": "", "id": ""}, ...]}',
    ),
    ActRoute(
        "notify_test",
        "notifications/test",
        Role.OPERATOR,
        audit=lambda call: Request("notify", call.given),
        act=lambda call: requests.try_route(call.given, call.by, call.ports),
        given=_text("route"),
        wrong=requests.WRONG_TEST,
    ),
    *(_of_rollout(kind, Role.OPERATOR) for kind in (ActKind.PAUSE, ActKind.RESUME, ActKind.ABORT)),
    _of_rollout(ActKind.OVERRIDE, Role.APPROVER),
    _of_rollout(ActKind.APPROVE, Role.APPROVER, _text("stage"), rollout.WRONG_STAGE),
    _of_rollout(ActKind.SKIP, Role.APPROVER, _text("cluster"), rollout.WRONG_CLUSTER),
    ActRoute(
        "promote",
        "promotions",
        Role.OPERATOR,
        audit=lambda call: Request("promote", "/".join(call.given[:2])),
        act=_promote,
        given=_promotion,
        wrong=WRONG_PROMOTION,
    ),
    ActRoute(
        "import",
        "import",
        Role.OPERATOR,
        audit=lambda call: Request("import", call.given),
        act=lambda call: import_cluster(call.given, call.ports),
        given=lambda body: body.get("resource") or "",
        method="GET",
    ),
    ActRoute(
        "drill",
        "drill",
        Role.OPERATOR,
        audit=lambda call: Request(DRILL, call.ports.config.fleet),
        act=lambda call: drill(call.ports),
        method="GET",
    ),
    ActRoute(
        "live",
        "live",
        Role.OPERATOR,
        audit=lambda call: _on_clusters(LIVE, call.given),
        act=lambda call: read_live(call.given, call.ports),
        given=_live,
        wrong=WRONG_NAMES,
        method="GET",
    ),
)
"""What an Operator may do to a rollout are pause, resume and abort. An approval, an override of windows and
freezes, and what frees a part of the failure budget, is an Approver's."""
