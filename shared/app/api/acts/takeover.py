"""Takeovers: this app manages a cluster whose tags name somebody else, or is planned from elsewhere.

The step reads who else may manage the cluster, and stores it in the record. A takeover overrules just that:
when the tags name yet another installation by then, the cluster waits again.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from shared.app.api import schema
from shared.app.api.acts.approval import operator
from shared.app.http_result import HttpResult, rejected, unknown_cluster
from shared.app.outbox import send, send_continuation
from shared.app.records import Transition, again, change
from shared.cluster.failures.errors import ReconcileError, Stale, Unavailable
from shared.cluster.history import by_whom
from shared.cluster.messages import PlanRequest, ReportRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import taken_over_event
from shared.cluster.transitions.acceptance import accept_takeover
from shared.ports import Ports

log = logging.getLogger(__name__)


def take_over(name: str, actor: str, ports: Ports, reason: str = "") -> HttpResult:
    """Let the job of a cluster continue over the tags that it waits for; any other job is left alone."""
    by, overruled = operator(actor), list[str]()

    def decide(record: ClusterRecord | None) -> Transition | HttpResult:
        if record is None:
            return rejected(404, unknown_cluster(name, ports))
        contest = record.job.next_run.contest
        if contest is None:
            why = f"roadstead why {name} says what it does"
            return rejected(409, f"{name} does not wait for a takeover; {why}")
        overruled[:] = [installation or "unknown" for installation in contest.installations]
        after = accept_takeover(record, contest, now=ports.clock())
        event = taken_over_event(after, contest, by_whom(by, reason))
        return Transition(
            after, [event], then=[send_continuation, lambda _, ports: send(ReportRequest(), ports)]
        )

    saved = change(name, decide, ports)
    if isinstance(saved, HttpResult):
        return saved
    receipt: schema.TakeoverReceipt = {"cluster": name, "overruled": overruled, "by": by}
    return HttpResult(202, receipt)


@again
def accept_source(actor: str, ports: Ports) -> HttpResult:
    """Plan the fleet from now on from the repository or branch that the planner refused at last.

    In another repository, a number is that of another issue or pull request: those of the former are dropped.
    """
    fleet = ports.state.fleet()
    source = fleet.other_source
    if source is None:
        return rejected(409, "the fleet is planned from the repository and branch of its settings")
    if fleet.source is not None and fleet.source.repository != source.repository:
        _drop_numbers(ports)
    after = replace(fleet, source=source, other_source=None)
    try:
        ports.state.save_fleet(after)
    except (Stale, Unavailable):
        if ports.state.fleet() != after:  # else it was saved, and the answer was lost
            raise
    by = operator(actor)
    request = PlanRequest(again=True, reason="another repository was accepted")
    try:
        send(request, ports, message_id=f"source:{fleet.etag}")
    except ReconcileError as error:
        log.warning("the timer plans from the accepted source: %s: %s", error.kind, error)
    receipt: schema.SourceReceipt = {"repositoryId": source.repository, "branch": source.branch, "by": by}
    return HttpResult(202, receipt)


def _drop_numbers(ports: Ports) -> None:
    """Drop the numbers of issues and pull requests; what people decided of values stays. Raise Stale."""
    state = ports.state
    for proposal in state.proposals():
        state.save_proposal(replace(proposal, number=0, url="", values=(), digest=""))
    for promotion in state.promotions():
        state.save_promotion(replace(promotion, number=0, url="", values=(), digest=""))
    known = state.announced()
    routes = {name: replace(each, issues={}) for name, each in known.routes.items()}
    state.save_announced(replace(known, routes=routes))
