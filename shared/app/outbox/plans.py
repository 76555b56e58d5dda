"""The requests for the planner, for pull requests, reports, notifications, sweeps and proposals."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from shared.app.outbox.times import at_time, later, slot, whole
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.messages import PlanRequest, PromotionAsked, RolloutAct, SweepPart
from shared.cluster.record import ClusterRecord
from shared.language.desired import digest_of
from shared.ports import FleetRecord, Message, Ports

log = logging.getLogger(__name__)

PREVIEWS = ("pull", "outdated")
"""The requests that have a queue of their own, with a session for each pull request: they delay no push."""
PREVIEW_SECONDS = 10
"""Events of a pull request within this many seconds are one message, and so are reviews."""
REPORT_SECONDS = 5
"""Requests for a report within this many seconds are one message."""
NOTIFY_SECONDS = 15
"""Requests for notifications within this many seconds are one message."""
ROLLOUT_SECONDS = 5
"""Requests that a rollout continues within this many seconds are one message."""
PROPOSE_SECONDS = 15
"""Requests for the pull requests about drift, or for promotions, within this many seconds are one message."""


def request_plan(request: PlanRequest, *, message_id: str, ports: Ports, after: float = 0) -> None:
    """Queue a request for the fleet's one planner, or one for a pull request, ``after`` seconds from now."""
    _send_plan(request, message_id, later(after, ports), ports)


def request_plan_again(request: PlanRequest, *, after: float, ports: Ports) -> None:
    """Queue a request again that the planner could not finish, ``after`` seconds from now."""
    subject = (
        f"pull:{request.pull}:{request.head[:12]}" if request.kind == "pull" else request.commit or "head"
    )
    message_id = f"again:{subject}:{request.attempt}:{ports.unique()}"
    request_plan(request, message_id=message_id, ports=ports, after=after)


def request_handover(fleet: FleetRecord, ports: Ports, *, rollout: bool = False) -> None:
    """Request that the planner continues a hand-over; requests that wait in its session come before.

    ``rollout``: only the next clusters of a rollout are handed over.

    The plan of the commit that was planned last is the only one that needs ``again``: without it, the request
    has no effect once a newer push has been planned.
    """
    again = fleet.planning == fleet.commit
    kind: Literal["plan", "rollout"] = "rollout" if rollout else "plan"
    request = PlanRequest(kind=kind, again=again, reason="handover", read_from=ports.clock())
    request_plan(request, message_id=f"handover:{fleet.planning[:12]}:{fleet.etag}", ports=ports)


def request_outdated_marks(commit: str, ports: Ports) -> None:
    """Ask that the plans of pull requests are marked as out of date. An error must not prevent a plan."""
    request = PlanRequest(kind="outdated", commit=commit, reason="the base moved")
    try:
        request_plan(request, message_id=f"outdated:{commit}", ports=ports)
    except ReconcileError as error:
        log.warning("pull requests are not marked as out of date: %s: %s", error.kind, error)


def request_preview(request: PlanRequest, ports: Ports) -> None:
    """Queue a request for a pull request for a few seconds from now.

    All requests of one pull request within the same few seconds are one message, so that a flood of pushes to
    it costs a bounded number of plans and of calls to GitHub.
    """
    number, at = slot(PREVIEW_SECONDS, 0, ports)
    _send_plan(request, f"pull:{request.pull}:{number}", at, ports)


def request_review(commit: str, ports: Ports) -> None:
    """Ask the planner to read the reviews of a commit's pull request a few seconds from now.

    All requests within the same few seconds are one message, so that a flood of reviews costs a bounded
    number of calls to GitHub.
    """
    number, at = slot(PREVIEW_SECONDS, 0, ports)
    request = PlanRequest(kind="review", commit=commit, reason="review")
    _send_plan(request, f"review:{commit}:{number}", at, ports)


def request_awaited_plan(ports: Ports, deleted: str = "") -> FleetRecord:
    """Request a plan when the deletion of a cluster has finished that git has again.

    ``deleted`` is the cluster whose record has just been removed; without it, the record of each is read.
    Return the fleet's record.
    """
    fleet = ports.state.fleet()
    awaited = fleet.awaiting_deletion
    if deleted in awaited or (awaited and not deleted and _are_gone(awaited, ports)):
        message_id = f"deleted:{fleet.commit}:{int(ports.clock().timestamp() // 10)}"
        request_plan(PlanRequest(again=True, reason="deleted"), message_id=message_id, ports=ports)
    return fleet


def _are_gone(clusters: Sequence[str], ports: Ports) -> bool:
    """Return whether some of these clusters have no record, not even one that cannot be read."""
    found = ports.state.clusters_named(clusters)
    return len(found) + len(found.unreadable) < len(clusters)


def request_replacing_plan(record: ClusterRecord, ports: Ports) -> None:
    """Request a plan when a cluster is Ready for which the delete of the one that it replaces waits.

    ``record`` is that of a cluster whose job has ended.
    """
    if "replaces" in record.document and record.ready:
        _request_if_awaited([record], ports.state.fleet(), ports)


def request_awaited_deletes(fleet: FleetRecord, ports: Ports) -> None:
    """Request a plan when a cluster is Ready for which a delete waits; the record of each is read."""
    if fleet.awaiting_ready:
        _request_if_awaited(ports.state.clusters_named(list(fleet.awaiting_ready)), fleet, ports)


def _request_if_awaited(records: Sequence[ClusterRecord], fleet: FleetRecord, ports: Ports) -> None:
    awaited = fleet.awaiting_ready
    ready = [each for each in records if each.ready and each.name in awaited]
    if any(each.generation >= awaited[each.name] for each in ready):
        message_id = f"replaced:{fleet.commit}:{int(ports.clock().timestamp() // 10)}"
        request_plan(PlanRequest(again=True, reason="replaced"), message_id=message_id, ports=ports)


def request_unfinished_plan(commit: str, ports: Ports) -> None:
    """Request a plan again over which a superseded planner wrote one of its own, which it did not carry out.

    One request a minute gets through.
    """
    message_id = f"unfinished:{commit}:{int(ports.clock().timestamp() // 60)}"
    request_plan(PlanRequest(again=True, reason="unfinished"), message_id=message_id, ports=ports)


def request_rollout(ports: Ports, *, after: float = 0, at: datetime | None = None) -> None:
    """Ask that a rollout starts what may start a few seconds from now, or ``at`` a time."""
    number, comes = slot(ROLLOUT_SECONDS, after, ports)
    for name, when in at_time(at, ports) if at else [(str(number), comes)]:
        _send_plan(PlanRequest(kind="rollout", reason="rollout"), f"rollout:{name}", when, ports)


def request_rollout_act(act: RolloutAct, ports: Ports) -> None:
    """Queue what a person decided of a rollout; the planner alone writes its record."""
    message_id = f"rollout:{act.kind}:{digest_of(act.model_dump(mode='json'))}"
    _send_plan(PlanRequest(kind="rollout", reason=act.kind, act=act), message_id, None, ports)


def request_report(ports: Ports, *, after: float = 0) -> None:
    """Ask for a report of progress a few seconds from now, ``after`` seconds at the earliest."""
    number, at = slot(REPORT_SECONDS, after, ports)
    _send_plan(PlanRequest(kind="report", reason="progress"), f"report:{number}", at, ports)


def request_notifications(ports: Ports, *, after: float = 0, attempt: int = 0) -> None:
    """Ask the notifier to look some seconds from now, ``after`` seconds at the earliest."""
    number, at = slot(NOTIFY_SECONDS, after, ports)
    request = PlanRequest(kind="notify", reason="notifications", attempt=attempt)
    _send_plan(request, f"notify:{number}:{attempt}", at, ports)


def request_proposals(
    ports: Ports, pull: int = 0, *, beyond: str = "", after: float = 0, attempt: int = 0
) -> None:
    """Ask for the pull requests about drift some seconds from now, ``after`` seconds at the earliest.

    ``pull`` is the number of one that somebody closed or reopened. It begins after the cluster ``beyond``.
    """
    number, at = slot(PROPOSE_SECONDS, after, ports)
    request = PlanRequest(kind="propose", reason="proposals", attempt=attempt, pull=pull, beyond=beyond)
    _send_plan(request, f"propose:{number}:{attempt}:{pull}:{beyond}".rstrip(":"), at, ports)


def request_promotions(
    ports: Ports, pull: int = 0, *, at: datetime | None = None, after: float = 0, attempt: int = 0
) -> None:
    """Ask for the pull requests that rules of fleet.yaml promote by, some seconds from now, or ``at`` a time.

    ``pull`` is the number of one that somebody closed or reopened.
    """
    number, comes = slot(PROPOSE_SECONDS, after, ports)
    request = PlanRequest(kind="promote", reason="promotions", attempt=attempt, pull=pull)
    for name, when in at_time(at, ports) if at else [(f"{number}:{attempt}:{pull}", comes)]:
        _send_plan(request, f"promote:{name}", when, ports)


def request_promotion(asked: PromotionAsked, ports: Ports, *, after: float = 0, attempt: int = 0) -> None:
    """Queue the promotion that a person asked for."""
    digest = digest_of([asked.model_dump(mode="json"), attempt])
    request = PlanRequest(kind="promote", reason="asked", promotion=asked, attempt=attempt)
    _send_plan(request, f"promote:{digest}", later(after, ports), ports)


def request_status_again(commit: str, ports: Ports) -> None:
    """Ask that the status of a commit is written again a few seconds from now."""
    message_id = f"report:{commit}:{ports.unique()}"
    request = PlanRequest(kind="report", commit=commit, reason="overwritten")
    request_plan(request, message_id=message_id, ports=ports, after=REPORT_SECONDS)


def request_report_now(ports: Ports) -> None:
    """Ask for a report at once, because of a new plan; one request a second gets through."""
    second = int(ports.clock().timestamp())
    _send_plan(PlanRequest(kind="report", reason="planned"), f"report:now:{second}", None, ports)


def request_sweep(part: SweepPart, ports: Ports, *, after: float = 0, attempt: int = 0) -> None:
    """Ask for a part of a sweep, ``after`` seconds from now; the same part twice is one message."""
    _send_sweep(part, attempt, later(after, ports), ports)


def request_sweep_at(at: datetime, cluster: str, ports: Ports) -> None:
    """Ask for a sweep of a cluster ``at`` a time."""
    for name, when in at_time(at, ports):
        _send_sweep(SweepPart(sweep=name, clusters=(cluster,)), 0, when, ports)


def request_whole_sweep(ports: Ports, *, within: float = 0) -> None:
    """Ask for a sweep, see ``whole``."""
    number, at = whole(within, ports)
    _send_sweep(SweepPart(sweep=str(number)), 0, at, ports)


def _send_sweep(part: SweepPart, attempt: int, at: datetime | None, ports: Ports) -> None:
    request = PlanRequest(kind="sweep", reason="sweep", sweep=part, attempt=attempt)
    digest = digest_of([part.model_dump(mode="json"), attempt])
    _send_plan(request, f"sweep:{part.sweep}:{digest}", at, ports)


def _send_plan(request: PlanRequest, message_id: str, at: datetime | None, ports: Ports) -> None:
    queue, session = ports.plans, ports.config.fleet
    if request.kind in PREVIEWS:
        queue, session = ports.previews, f"pull-{request.pull}" if request.pull else request.kind
    elif request.kind == "report":
        session = f"{ports.config.fleet}:reports"
    elif request.kind == "notify":
        session = f"{ports.config.fleet}:notifications"
    elif request.kind in ("propose", "promote"):
        session = f"{ports.config.fleet}:proposals"
    elif request.kind == "sweep":
        session = f"{ports.config.fleet}:sweeps"
    queue.send(Message(session, message_id, request.model_dump_json(), at))
