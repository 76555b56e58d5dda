"""Turn a delivery into a plan request: queue it, remember the delivery, reply. Makes no call.

A delivery is recognised by the digest of its body. Whoever recorded one can send it again under any id,
because GitHub's signature covers the body alone; it then starts nothing, and nothing more is stored.

A hint, which nobody signed, has the branch or the pull request read, and no more: no commit of it is waited
for, and all hints of some seconds are one message: those on the branch, those on each pull request that has a
plan, and those with any other number, which have the host's list read.
"""

from __future__ import annotations

import logging

from shared.app.http_result import HttpResult, rejected
from shared.app.intake.webhook import (
    Delivery,
    DeliveryRefusal,
    IgnoredDelivery,
    NewIssue,
    PullChange,
    Push,
    ReviewDelivery,
)
from shared.app.outbox import request_hinted_plan, send
from shared.cluster.failures.errors import Retryable, Unreadable
from shared.cluster.queues.messages import (
    IssueRequest,
    PlanRequest,
    PreviewRequest,
    PromoteRequest,
    ProposeRequest,
    ReviewRequest,
    TryRequest,
)
from shared.cluster.reporting.measurements import WEBHOOKS, Measurement, Span
from shared.logs import about
from shared.ports import FleetRecord, Ports

AFTER_MERGE = 60
"""So many seconds after the end of a pull request its tries end: a merge is planned by then, and where a
cluster gets its commit at once, nothing that it tried is taken from it first."""
log = logging.getLogger(__name__)


def accept(delivery: Delivery, ports: Ports) -> HttpResult:
    """Queue the plan request of a delivery, once.

    A push is queued also while the state does not answer: the planner then says on its commit that it waits.
    Any delivery is queued while the record of the fleet is of a newer version: the message waits for that.
    """
    began = ports.clock()
    result = _accepted(delivery, ports)
    name = {200: "ignored", 202: "queued", 401: "unsigned"}.get(result.status, "refused")
    ports.services.telemetry.record([Measurement(WEBHOOKS, 1, {"result": name})])
    if isinstance(delivery, Push) and delivery.commit:
        ports.services.telemetry.record(
            [Span("webhook", delivery.commit, began, ports.clock(), {"result": name})]
        )
    return result


def _accepted(delivery: Delivery, ports: Ports) -> HttpResult:
    if isinstance(delivery, DeliveryRefusal):
        return rejected(delivery.status, delivery.reason)
    if isinstance(delivery, IgnoredDelivery):
        return HttpResult(200, {"ignored": delivery.reason})
    with about(commit=_commit_of(delivery)):
        return _accepted_once(delivery, ports)


Taken = Push | PullChange | ReviewDelivery | NewIssue


def _commit_of(delivery: Taken) -> str:
    if isinstance(delivery, NewIssue):
        return ""
    return delivery.head if isinstance(delivery, PullChange) else delivery.commit


def _accepted_once(delivery: Taken, ports: Ports) -> HttpResult:
    try:
        ignored = _ignored(delivery, ports)
    except Retryable as error:
        if not isinstance(delivery, Push) and not isinstance(error, Unreadable):
            raise
        log.warning("a delivery is queued without asking the state: %s: %s", error.kind, error)
        return _queued(delivery, ports)
    return ignored or _queued(delivery, ports)


def _ignored(delivery: Taken, ports: Ports) -> HttpResult | None:
    """Return the answer to a delivery that starts nothing, None for any other."""
    if ports.state.delivery_seen(delivery.digest):
        return HttpResult(200, {"ignored": "this delivery was queued before", "delivery": delivery.delivery})
    fleet = ports.state.fleet()
    source = fleet.origin.source
    if source is not None and delivery.repository not in (0, source.repository):
        same_name = f"{ports.config.repository} with the id {delivery.repository}"
        return HttpResult(
            200, {"ignored": f"{same_name} is not the fleet's, whose id is {source.repository}"}
        )
    needless = _needless(delivery, fleet, ports) if isinstance(delivery, ReviewDelivery) else ""
    return HttpResult(200, {"ignored": needless}) if needless else None


def _queued(delivery: Taken, ports: Ports) -> HttpResult:
    commit = _commit_of(delivery)
    if isinstance(delivery, PullChange) and not delivery.head and ports.state.pull(delivery.number) is None:
        send(PreviewRequest(), ports)
        return HttpResult(202, {"queued": "plan", "commit": commit, "delivery": delivery.delivery})
    if isinstance(delivery, ReviewDelivery):
        send(ReviewRequest(commit=delivery.commit), ports)
    elif isinstance(delivery, NewIssue):
        number, body = delivery.number, delivery.body
        asked = IssueRequest(number=number, login=delivery.login, account=delivery.account, body=body)
        send(asked, ports)
    elif isinstance(delivery, PullChange):
        if delivery.proposal and delivery.action in ("closed", "reopened"):
            send(ProposeRequest(pull=delivery.number), ports)
        if delivery.promotion and delivery.action in ("closed", "reopened"):
            send(PromoteRequest(pull=delivery.number), ports)
        if delivery.action in ("closed", "synchronize"):
            after = AFTER_MERGE if delivery.action == "closed" else 0
            send(TryRequest(pull=delivery.number), ports, after=after)
        if delivery.action != "closed":
            preview = PreviewRequest(pull=delivery.number, head=commit)
            send(preview, ports)
    elif not delivery.signed:
        request_hinted_plan(ports)
    else:
        request = PlanRequest(commit=delivery.commit, reason="push", at=delivery.at, read_from=ports.clock())
        send(request, ports, message_id=f"push:{delivery.digest}")
    # After the request: a crash before this line causes a second, harmless plan, and loses no push.
    try:
        ports.state.remember_delivery(delivery.digest, ports.clock())
    except Retryable as error:
        log.warning("a delivery is queued and not remembered: %s: %s", error.kind, error)
    queued = "request" if isinstance(delivery, NewIssue) else "plan"
    return HttpResult(202, {"queued": queued, "commit": commit, "delivery": delivery.delivery})


def _needless(review: ReviewDelivery, fleet: FleetRecord, ports: Ports) -> str:
    """Return why a review cannot approve anything, "" if it may."""
    if not ports.config.approvals.teams:
        return "no review approves anything; set APPROVAL_TEAMS to change that"
    if review.commit not in (fleet.commit, fleet.planning):
        return f"{review.commit[:8]} is not the commit that was planned last"
    return ""
