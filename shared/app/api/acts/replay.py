"""Replays: an operator starts a job again that failed, or whose result somebody changed in Azure."""

from __future__ import annotations

from collections.abc import Sequence

from shared.app.api import schema
from shared.app.api.acts.approval import operator
from shared.app.http_result import HttpResult, rejected, unknown_cluster
from shared.app.outbox import send, send_continuation
from shared.app.records import Transition, change
from shared.azure.drift.policy import is_version
from shared.cluster.drift import HeldStart
from shared.cluster.health import problem_of
from shared.cluster.messages import ReportRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.diagnosis import diagnose
from shared.cluster.reporting.events import replayed_event
from shared.cluster.transitions.acceptance import accept_replay
from shared.ports import Ports
from shared.rollouts.calendar import Start
from shared.rollouts.of_plan import start_of
from shared.rollouts.shut import held_start

WITHOUT_REASON = "an override needs a reason: the body must have one"


def replay(name: str, actor: str, ports: Ports, reason: str = "", *, override: bool = False) -> HttpResult:
    """Start the job of a cluster again that has failed, is unhealthy inside, or differs from git.

    What waits for an approval stays as it is. In a freeze, and outside its change windows, a job starts only
    with an ``override``.
    """
    by = operator(actor)

    def decide(record: ClusterRecord | None) -> Transition | HttpResult:
        if record is None:
            return rejected(404, unknown_cluster(name, ports))
        same = record.observed_generation == record.generation
        left = tuple(each.path for each in record.drift.to_approve) if record.drift and same else ()
        problem = _why_not(record, left, ports, override=override)
        if problem:
            return rejected(409, problem)
        after = accept_replay(record, now=ports.clock(), left=left)
        then = [send_continuation, lambda _, ports: send(ReportRequest(), ports)]
        return Transition(after, [replayed_event(after, by, reason)], then=then)

    saved = change(name, decide, ports)
    if isinstance(saved, HttpResult):
        return saved
    receipt: schema.ReplayReceipt = {"cluster": name, "replayed": saved.job.recipe.value, "by": by}
    return HttpResult(202, receipt)


def _why_not(record: ClusterRecord, left: Sequence[str], ports: Ports, *, override: bool) -> str:
    """Return why a cluster is not replayed, whose fields of ``left`` wait for an approval; "" when it is."""
    name = record.name
    idle_problem = not record.job.active and (problem_of(record) or record.drift is not None)
    if not record.failed and not idle_problem:
        activity = diagnose(record, now=ports.clock(), retries=ports.config.retries).activity
        return f"{name} has not failed: it {activity}"
    if any(map(is_version, left)):
        approve = f"`roadstead approve --cluster {name}` has it written"
        return f"{name} is not replayed: {', '.join(left)} needs an approval; {approve}"
    hold = None if override else _hold(record, ports)
    if hold is None:
        return ""
    command = f"`roadstead replay {name} --override --reason TEXT`"
    return f"{name} is not replayed: {hold}; in an emergency, an Approver starts it with {command}"


def _hold(record: ClusterRecord, ports: Ports) -> HeldStart | None:
    """Return the freeze or the change window that keeps the job from starting, None for neither."""
    start = start_of(record)
    if start is Start.CHANGE and not record.failed:
        start = Start.CORRECTION
    return held_start(record, start, ports.state.fleet().calendar, ports.clock())
