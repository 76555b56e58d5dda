"""Replays: an operator starts a job again that failed, or whose result somebody changed in Azure.

The record decides; compare-and-swap saves it.
"""

from __future__ import annotations

from shared.fleet.drift.policy import is_version
from shared.jobs.failures.errors import Stale
from shared.jobs.findings.health import problem_of
from shared.jobs.reporting.diagnosis import diagnose
from shared.jobs.reporting.events import replayed_event
from shared.jobs.transitions.acceptance import accept_replay
from shared.pipeline.api import schema
from shared.pipeline.api.acts.approval import operator
from shared.pipeline.http_result import HttpResult, rejected, unknown_cluster
from shared.pipeline.outbox import request_report, send_continuation
from shared.ports import Ports


def replay(name: str, actor: str, ports: Ports, reason: str = "") -> HttpResult:
    """Start the job of a cluster again that has failed, is unhealthy inside, or differs from git.

    What waits for an approval stays as it is.
    """
    while True:
        record = ports.state.cluster(name)
        if record is None:
            return rejected(404, unknown_cluster(name, ports.config.fleet))
        idle_problem = not record.job.active and (problem_of(record) or record.drift is not None)
        if not record.failed and not idle_problem:
            activity = diagnose(record, now=ports.clock(), retries=ports.config.retries).activity
            return rejected(409, f"{name} has not failed: it {activity}")
        same = record.observed_generation == record.generation
        left = tuple(each.path for each in record.drift.to_approve) if record.drift and same else ()
        if any(map(is_version, left)):
            approve = f"`roadstead approve --cluster {name}` has it written"
            return rejected(409, f"{name} is not replayed: {', '.join(left)} needs an approval; {approve}")
        try:
            saved = ports.state.save(accept_replay(record, now=ports.clock(), left=left))
        except Stale:
            continue  # a plan or another replay saved the record first
        break
    by = operator(actor)
    ports.state.append([replayed_event(saved, by, reason)])
    send_continuation(saved, ports)
    request_report(ports)
    receipt: schema.ReplayReceipt = {"cluster": name, "replayed": saved.job.recipe.value, "by": by}
    return HttpResult(202, receipt)
