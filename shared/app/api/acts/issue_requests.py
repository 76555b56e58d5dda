"""A cluster by an issue: what was opened with the form is asked for, answered in the issue, and closed.

The text is that of the moment at which the issue was opened, so nobody who edits it asks in another one's
name. Of somebody whom no rule of ``selfService`` names, an issue is left as it is: a flood of strangers
costs no answer. Messages of an account have a session, so nobody waits for another one's.
"""

from __future__ import annotations

import logging
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.app.api.access import Caller, Principal
from shared.app.api.acts.requests import (
    WITHOUT_REASON,
    ClusterRequest,
    GitHubPerson,
    is_named,
    request_cluster,
)
from shared.app.api.audit import AuditedAct, audited
from shared.app.http_result import HttpResult
from shared.app.intake.issue_form import HEADINGS, LONGEST, read_form
from shared.app.outbox import send
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import seconds_until_again
from shared.app.pull_requests.markdown import code, prose
from shared.cluster.failures.errors import Dependency, ReconcileError
from shared.cluster.queues.messages import IssueRequest
from shared.language.model.base import ClusterName, Location, ObjectName, shown
from shared.language.model.cluster.lifetime import Lifetime
from shared.ports import Capability, Ports

log = logging.getLogger(__name__)

MARKER = "<!-- roadstead:request -->"
"""The first characters of the comment that answers an issue."""
AGAIN = "An edit of this issue changes nothing: open another one with the form."
OTHER_FORM = (
    f"this is not what the form writes, with each heading once and in order, or has over {LONGEST} characters"
)


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, defer_build=True)

    name: ClusterName
    cluster_class: ObjectName = Field(alias="class")
    environment: ObjectName | Literal[""]
    lifetime: Lifetime
    location: Location | Literal[""]
    reason: str


def handle(request: IssueRequest, ports: Ports) -> None:
    """Answer an issue, once; postpone that while a service is away."""
    try:
        _answer(request, ports)
    except Dependency as error:
        log.warning("issue %d gets no answer: %s", request.number, error)
    except ReconcileError as error:
        seconds = seconds_until_again(error, request, ports)
        log.warning("issue %d has no answer yet: %s: %s", request.number, error.kind, error)
        if seconds is not None:
            send(request.next_attempt(), ports, after=seconds)


def _answer(request: IssueRequest, ports: Ports) -> None:
    host, person = ports.git_host, GitHubPerson(request.login, request.account)
    if not {Capability.ISSUES, Capability.PROPOSALS} <= host.capabilities:
        log.warning("issue %d gets no answer: the app may write no issues or no branches", request.number)
        return
    head = Head(ports.state.fleet(), ports)
    if not any(is_named(person, rule, ports) for rule in head.self_service()):
        log.info("issue %d is of nobody whom a rule of selfService names", request.number)
        return
    if host.comment(request.number, MARKER) is None:
        host.comment_issue(request.number, f"{MARKER}\n{_said(request, person, ports)}")
    host.close_issue(request.number)


def _said(request: IssueRequest, person: GitHubPerson, ports: Ports) -> str:
    """Return the answer, once the pull request is open."""
    answers = read_form(request.body)
    problem = OTHER_FORM if answers is None else ""
    try:
        form = _Form.model_validate(answers or {})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        heading = HEADINGS.get(str(first["loc"][0]) if first["loc"] else "", "")
        problem = problem or f"{heading}: {first['msg'].removeprefix('Value error, ')}"
        return _refused(problem)
    if not form.reason:
        return _refused(WITHOUT_REASON)
    principal = Principal(f"github:{person.id}", f"github.{person.login}", frozenset())
    asked = ClusterRequest(
        form.name, form.cluster_class, form.lifetime, form.environment, form.location, form.reason
    )
    act = AuditedAct("request", form.name, (form.name,), shown(form.reason, 500))
    result = audited(
        act,
        Caller(principal, client=f"issue {request.number}"),
        ports,
        lambda: request_cluster(asked, principal, ports, person),
    )
    return _opened(result) if result.ok else _refused(str(result.body.get("error", result.status)))


def _opened(result: HttpResult) -> str:
    body = result.body
    return (
        f"{body['pullRequest']} adds the cluster {code(str(body['cluster']))} in "
        f"{code(str(body['environment']))} for {code(str(body['lifetime']))}.\n\n"
        f"Who merges it: {prose(str(body['merge']))}."
    )


def _refused(problem: str) -> str:
    return f"No cluster is asked for: {prose(problem)}.\n\n{AGAIN}"
