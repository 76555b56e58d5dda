"""What every audited act of the API shares: its body and reason, who may do it, the audit before it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

import azure.functions as func
from pydantic import ValidationError

from handlers.bodies import Body, wrong_form
from handlers.reply import reply
from handlers.routes import ApiRoutes
from shared.app.api.access import Caller, Role, decide
from shared.app.api.acts import WITHOUT_REASON
from shared.app.api.audit import MAX_TEXT, AuditedAct, audited
from shared.app.http_result import HttpResult, rejected
from shared.frozen import dataclass, replace
from shared.language.model.base import shown
from shared.ports import Ports
from shared.rollouts.rollout import Rollout


@dataclass(frozen=True)
class ActCall:
    """A call of an act: the parts of its route, what it says as ``body`` of the act has it, and by whom."""

    path: Mapping[str, str]
    body: Any
    caller: Caller
    ports: Ports

    @property
    def reason(self) -> str:
        """Why, as it is stored and shown."""
        return shown(self.body.reason, MAX_TEXT)

    @property
    def by(self) -> str:
        """How the act names its caller."""
        return self.caller.name


@dataclass(frozen=True)
class ActRoute:
    """An act: its route and role, its answer, what the audit has of a call, and what a call does.

    ``body`` is the class of what it takes; what is not of that form is refused, and so is a call without a
    reason where it ``needs_reason``. ``refusal`` says of a call that was understood why it is refused and not
    audited, None for no refusal.
    ``concerns`` are the environments of what a call is about, "" for none; without it, it is about the fleet.
    """

    name: str
    path: str
    role: Role
    answer: type[Any]
    audit: Callable[[ActCall], AuditedAct]
    act: Callable[[ActCall], HttpResult]
    body: type[Body] = Body
    needs_reason: bool = False
    refusal: Callable[[ActCall], HttpResult | None] = lambda _: None
    concerns: Callable[[ActCall], Collection[str]] | None = None
    method: Literal["GET", "POST"] = "POST"


def add_act(entry: ActRoute, routes: ApiRoutes, ports: Ports) -> None:
    """Add the function of an act."""
    decides = entry.concerns is not None

    @routes.add(
        entry.name,
        entry.path,
        entry.role,
        method=entry.method,
        answer=entry.answer,
        body=entry.body,
        decides=decides,
    )
    def function(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        try:
            body = entry.body.model_validate(said(req) if entry.method == "POST" else dict(req.params))
        except ValidationError as error:
            return reply(rejected(400, wrong_form(error, entry.body)))
        return reply(performed(entry, req.route_params, body, caller, ports))


def performed(
    entry: ActRoute, path: Mapping[str, str], body: Body, caller: Caller, ports: Ports
) -> HttpResult:
    """Do an act unless its caller may not, or it is refused; it is saved before it happens."""
    call = ActCall(path, body, caller, ports)
    silent = entry.needs_reason and not call.reason.strip()
    refusal = denial(call, entry.role, entry.concerns)
    refusal = refusal or (rejected(400, WITHOUT_REASON) if silent else entry.refusal(call))
    if refusal is not None:
        return refusal
    request = replace(entry.audit(call), reason=call.reason)
    return audited(request, caller, ports, lambda: entry.act(call))


def denial(
    call: ActCall, role: Role, concerns: Callable[[ActCall], Collection[str]] | None
) -> HttpResult | None:
    """Return why the caller may not do what needs a role with what the call is about, None if it may."""
    principal = call.caller.principal
    denied = decide(principal, role)
    if denied and concerns is not None:
        denied = decide(principal, role, environments=concerns(call))
    return rejected(denied.status, denied.error) if denied else None


def said(req: func.HttpRequest) -> object:
    """Return the JSON object of a body, an empty one for a body of another form."""
    try:
        read = json.loads(req.get_body() or b"{}")
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


# What a call is about, as the environments of it.


def of_cluster(call: ActCall) -> Collection[str]:
    """Return the environment of the cluster of the route."""
    return _environments([call.path["name"]], call.ports)


def of_clusters(call: ActCall) -> Collection[str]:
    """Return the environments of the clusters of the body; without any, it is about the fleet."""
    return _environments(call.body.clusters, call.ports)


def of_rollout(call: ActCall) -> Collection[str]:
    """Return the environments of the clusters of a rollout, of its stage, or of the cluster of the body."""
    rollout = call.ports.state.rollout(call.path["commit"])
    return _environments(_members(rollout, call.body), call.ports) if rollout else ()


def _members(rollout: Rollout, body: Body) -> Collection[str]:
    cluster, stage = getattr(body, "cluster", ""), getattr(body, "stage", "")
    if cluster:
        return [cluster]
    return [
        member.cluster
        for member in rollout.members
        if not stage or rollout.stages[member.stage].name == stage
    ]


def _environments(clusters: Collection[str], ports: Ports) -> Collection[str]:
    """Return where clusters were accepted last, "" for one in no environment or without a record."""
    known = {summary.name: summary.place.environment for summary in ports.state.summaries()}
    return {known.get(name, "") for name in clusters}
