"""Takeovers: this app manages a cluster whose tags name somebody else, or is planned from elsewhere.

The step reads who else may manage the cluster, and stores it in the record. A takeover overrules just that:
when the tags name yet another installation by then, the cluster waits again.
"""

from __future__ import annotations

from dataclasses import replace

from shared.jobs.acts import by_whom
from shared.jobs.failures.errors import Stale
from shared.jobs.messages import PlanRequest
from shared.jobs.reporting.events import taken_over_event
from shared.jobs.transitions.acceptance import accept_takeover
from shared.pipeline.api import schema
from shared.pipeline.api.acts.approval import operator
from shared.pipeline.http_result import HttpResult, rejected, unknown_cluster
from shared.pipeline.outbox import request_plan, request_report, send_continuation
from shared.ports import Ports


def take_over(name: str, actor: str, ports: Ports, reason: str = "") -> HttpResult:
    """Let the job of a cluster continue over the tags that it waits for; any other job is left alone."""
    while True:
        record = ports.state.cluster(name)
        if record is None:
            return rejected(404, unknown_cluster(name, ports.config.fleet))
        contest = record.job.next_run.contest
        if contest is None:
            why = f"roadstead why {name} says what it does"
            return rejected(409, f"{name} does not wait for a takeover; {why}")
        try:
            saved = ports.state.save(accept_takeover(record, contest, now=ports.clock()))
        except Stale:
            continue  # a plan or the worker saved the record first
        break
    by = operator(actor)
    ports.state.append([taken_over_event(saved, contest, by_whom(by, reason))])
    send_continuation(saved, ports)
    request_report(ports)
    receipt: schema.TakeoverReceipt = {
        "cluster": name,
        "overruled": [each or "unknown" for each in contest.installations],
        "by": by,
    }
    return HttpResult(202, receipt)


def accept_source(actor: str, ports: Ports) -> HttpResult:
    """Plan the fleet from now on from the repository or branch that the planner refused at last.

    In another repository, a number is that of another issue or pull request: those of the former are dropped.
    """
    while True:
        fleet = ports.state.fleet()
        source = fleet.other_source
        if source is None:
            return rejected(409, "the fleet is planned from the repository and branch of its settings")
        try:
            if fleet.source is not None and fleet.source.repository != source.repository:
                _drop_numbers(ports)
            ports.state.save_fleet(replace(fleet, source=source, other_source=None))
        except Stale:
            continue  # the planner saved the record first
        break
    by = operator(actor)
    request = PlanRequest(again=True, reason="another repository was accepted")
    request_plan(request, message_id=f"source:{fleet.etag}", ports=ports)
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
