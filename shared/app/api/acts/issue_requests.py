"""A cluster by an issue: what was opened with the form is asked for, answered in the issue, and closed.

The text is that of the moment at which the issue was opened, so nobody who edits it asks in another one's
name. A timer finds the issues of which no webhook came; one that was edited meanwhile is refused. Of
somebody whom no rule of ``selfService`` names, an issue is left as it is: a flood of strangers costs no
answer. Messages of an account have a session, so nobody waits for another one's.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.app.api.access import Caller, Principal
from shared.app.api.acts import WITHOUT_REASON
from shared.app.api.acts.request_limits import ClusterRequest, GitHubPerson, named
from shared.app.api.acts.requests import request_cluster
from shared.app.api.audit import MAX_TEXT, AuditedAct, audited
from shared.app.http_result import HttpResult
from shared.app.intake.issue_form import HEADINGS, LONGEST, is_form, read_form
from shared.app.outbox import seconds_until_again, send
from shared.app.proposals.head import Head
from shared.app.pull_requests.markdown import code, prose
from shared.cluster.failures.errors import Dependency, ReconcileError
from shared.cluster.queues.messages import IssueRequest
from shared.language.model.base import ClusterName, Location, ObjectName, shown
from shared.language.model.change_windows import Lifetime
from shared.masking import cut
from shared.ports import Capability, Ports

log = logging.getLogger(__name__)

MARKER = "<!-- roadstead:request -->"
"""The first characters of the comment that answers an issue."""
AGAIN = "An edit of this issue changes nothing: open another one with the form."
EDITED = "it was edited before Roadstead read it, and nobody knows with which text it was opened"
FORGOTTEN = timedelta(days=3)
"""So long after it was opened an issue is looked for. GitHub has the deliveries of three days, to send them
again (docs.github.com/webhooks, "Redelivering webhooks"); an older issue surprises whoever opened it."""
NEEDED = frozenset({Capability.ISSUES, Capability.FORMS, Capability.PROPOSALS})
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


def find_missed(ports: Ports) -> None:
    """Queue what was opened with the form and has no answer; one call, where a rule names people of GitHub.

    One more for each open issue of them. What somebody has opened again has its answer, and stays open.
    """
    fleet, host = ports.state.fleet(), ports.git_host
    if not fleet.rules.asks_by_issue or not host.capabilities >= NEEDED:
        return
    since = ports.clock() - FORGOTTEN
    found = [issue for issue in host.newest_issues() if issue.at >= since and is_form(issue.body)]
    people = {issue.number: GitHubPerson(issue.login, issue.account) for issue in found}
    known = named([*people.values()], Head(fleet, ports).self_service(), ports) if found else frozenset()
    for issue in found:
        if people[issue.number] in known and host.comment(issue.number, MARKER) is None:
            log.warning("issue %d has no answer yet; it is answered now", issue.number)
            send(
                IssueRequest(
                    number=issue.number,
                    login=issue.login,
                    account=issue.account,
                    body=cut(issue.body, LONGEST + 1),
                    edited=issue.edited,
                ),
                ports,
            )


def _answer(request: IssueRequest, ports: Ports) -> None:
    host, person = ports.git_host, GitHubPerson(request.login, request.account)
    if not host.capabilities >= NEEDED:
        log.warning("issue %d gets no answer: the app may write no issues or no branches", request.number)
        return
    head = Head(ports.state.fleet(), ports)
    if not named([person], head.self_service(), ports):
        log.info("issue %d is of nobody whom a rule of selfService names", request.number)
        return
    if host.comment(request.number, MARKER) is None:
        host.comment_issue(request.number, f"{MARKER}\n{_said(request, person, ports)}")
    host.close_issue(request.number)


def _said(request: IssueRequest, person: GitHubPerson, ports: Ports) -> str:
    """Return the answer, once the pull request is open."""
    if request.edited:
        return _refused(EDITED)
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
    reason = shown(form.reason, MAX_TEXT)
    principal = Principal(f"github:{person.id}", f"github.{person.login}", frozenset())
    asked = ClusterRequest(
        form.name, form.cluster_class, form.lifetime, form.environment, form.location, reason
    )
    act = AuditedAct("request", form.name, (form.name,), reason)
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
