"""The reporter: it writes the commit statuses of the open plans, one report after the other.

Workers only request a report. Requests within the same few seconds are one message, in a session of their
own: no report waits for a plan that is handed over, and no push for a report. A report reads a few fields of
every cluster. The next one follows after an interval that grows with the fleet and with the age of the plan.

A commit may be planned again meanwhile. So what was reported is saved over the version of the plan that was
read, and when that fails, the status is written again.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from operator import attrgetter

from shared.app.outbox import send, send_all, send_unlike
from shared.app.planner.commit_status import (
    CONTEXT,
    LONGEST,
    Standing,
    has_room,
    interval,
    progress_of,
    status_of,
)
from shared.app.records import again
from shared.cluster.failures.errors import ReconcileError, Retryable, Stale, Unreadable, Withheld
from shared.cluster.failures.retry import wait_before_retry
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.queues.messages import (
    NotifyRequest,
    PlanRequest,
    ReportRequest,
    StatusRequest,
    TryRequest,
)
from shared.frozen import replace
from shared.logs import about
from shared.masking import cut
from shared.ports import CommitStatus, FleetRecord, PlanRecord, Ports
from shared.ports.git_host import Capability, status_line
from shared.ports.state.fleet import Pause
from shared.rollouts.decide import Decision, decide
from shared.rollouts.rollout import RolloutState
from shared.rollouts.waits import Seen

log = logging.getLogger(__name__)

OPEN_PLANS = 20
OVERDUE = timedelta(minutes=1)
"""How long after the end of a try the message about it counts as lost."""


def report(ports: Ports) -> None:
    """Report the progress of the open plans, or ask for a report at the time of the next one."""
    if ports.state.fleet().rules.routes:
        send(NotifyRequest(), ports)
    until, now = ports.state.next_report_at(), ports.clock()
    if until is not None and now < until:
        send(ReportRequest(), ports, after=(until - now).total_seconds())
        return
    report_open_plans(ports)


def report_open_plans(ports: Ports) -> None:
    """Write the commit status of every open plan whose text changed since the last report.

    A status that is refused is abandoned, and the plan records that; when the git host does not answer, or
    not for this repository, the report is requested again for a later time. Neither prevents a plan.
    """
    fleet = ports.state.fleet()
    plan_records = ports.state.open_plans()
    if fleet.origin.other_source:
        return
    if fleet.commit in plan_records.unreadable_names:
        _plan_unfinished(fleet.commit, ports)
    if _planned_since(fleet, ports):
        send(ReportRequest(), ports)
        return
    summaries = ports.state.summaries()
    clusters: Seen = summaries.keyed(attrgetter("name"))
    over = ports.clock() - OVERDUE
    late = {
        trial.pull for found in summaries if (trial := found.trial) and not trial.ended and trial.until < over
    }
    send_all((Envelope(TryRequest(pull=pull)) for pull in sorted(late)), ports)
    rollout = _rollout_progress(fleet, clusters, ports)
    for position, plan_record in enumerate(plan_records):
        if _is_overwritten(plan_record, fleet):
            _plan_unfinished(fleet.commit, ports)
            continue
        now = ports.clock()
        if plan_record.not_before is not None and now < plan_record.not_before:
            send(ReportRequest(), ports, after=(plan_record.not_before - now).total_seconds())
            continue
        pause = interval(now - plan_record.at, len(clusters))
        due = replace(plan_record, not_before=now + pause if position == 0 else None)
        with about(commit=plan_record.plan.commit):
            last_time = position >= OPEN_PLANS
            answered = _report(due, clusters, fleet, ports, last_time=last_time, rollout=rollout)
        if not answered:
            return


def _plan_unfinished(commit: str, ports: Ports) -> None:
    """Request a plan again over which a superseded planner wrote one of its own, which it did not carry out.

    One request a minute gets through.
    """
    message_id = f"unfinished:{commit}:{int(ports.clock().timestamp() // 60)}"
    send(PlanRequest(again=True, reason="unfinished"), ports, message_id=message_id)


def _report(
    plan_record: PlanRecord,
    clusters: Seen,
    fleet: FleetRecord,
    ports: Ports,
    *,
    last_time: bool,
    rollout: Decision | str | None,
) -> bool:
    """Write the status of a plan if it says something new; return whether the git host answered.

    The plan that is being carried out is the newest to itself: no later one has removed a cluster.
    """
    commit, written = plan_record.plan.commit, False
    newest = commit if commit == fleet.planning else fleet.commit
    try:
        of_newest = rollout if commit == fleet.commit else None
        pause = fleet.paused(ports.clock())
        found = _next(
            plan_record, clusters, newest, ports, last_time=last_time, rollout=of_newest, pause=pause
        )
        if found is None:
            return True
        after, status = found
        if status is not None:
            written = True
            if Capability.STATUSES in ports.git_host.capabilities:
                ports.git_host.set_status(commit, status)
        ports.state.save_report(after)
    except Stale:
        log.info("%s was planned again while it was reported", commit[:8])
        if written:  # by a message of its own, which comes again while the state is away
            send_unlike(StatusRequest(commit=commit), ports, after=0)
        else:
            send(ReportRequest(), ports)
    except (Retryable, Withheld) as error:
        log.warning("the commit status waits: %s: %s", error.kind, error)
        wait = (
            wait_before_retry(error, 3, ports.random(), ports.config.timing.retries) or ReportRequest.WINDOW
        )
        if isinstance(error, Withheld):  # until its repository has the name of the settings, or is unblocked
            wait = LONGEST
        again_at = ports.clock() + timedelta(seconds=wait)
        saved = _save(replace(plan_record, not_before=again_at), ports)
        send(ReportRequest(), ports, after=wait)
        if written and not saved:
            send_unlike(StatusRequest(commit=commit), ports, after=0)
        return False
    except ReconcileError as error:
        log.exception("the commit status of %s is abandoned", commit[:8])
        reported = cut(f"not reported: {error.kind}: {error}", 500)
        _save(replace(plan_record, reported=reported, open=False, settled=True), ports)
    return True


@again
def report_again(commit: str, ports: Ports, *, ended: bool = False) -> None:
    """Have the status of a commit written again, which another one may have replaced.

    ``ended``: only where it has ended, as a success that is no longer true.
    """
    plan_record = ports.state.plan(commit)
    if plan_record is not None and not (ended and plan_record.open):
        unknown = replace(plan_record, open=True, settled=False, reported="", not_before=None)
        ports.state.save_report(unknown)
        send(ReportRequest(), ports)


@again
def reopen(commit: str, ports: Ports) -> None:
    """Have the status of a commit reported whose clusters have changed since it ended.

    A cluster that begins to differ from git changes the status only when that has lasted.
    """
    plan_record = ports.state.plan(commit)
    if plan_record is None:
        return
    if not plan_record.open:
        ports.state.save_report(replace(plan_record, open=True, not_before=None))
    send(ReportRequest(), ports)
    send(ReportRequest(), ports, after=ports.config.timing.unhealthy_seconds)


def lasting_since(ports: Ports) -> datetime:
    """Return since when a cluster must have differed from git for its commit to fail."""
    return ports.clock() - timedelta(seconds=ports.config.timing.unhealthy_seconds)


def _save(plan_record: PlanRecord, ports: Ports) -> bool:
    """Save what was reported, unless the commit was planned or reported again; return whether it is saved."""
    try:
        ports.state.save_report(plan_record)
    except Stale:
        log.info("%s was planned or reported again meanwhile", plan_record.plan.commit[:8])
        return False
    return True


def _planned_since(fleet: FleetRecord, ports: Ports) -> bool:
    """Return whether a planner began or ended since: then the plans that were read may not fit the record."""
    now = ports.state.fleet()
    return (now.commit, now.planning, now.at) != (fleet.commit, fleet.planning, fleet.at)


def _is_overwritten(plan_record: PlanRecord, fleet: FleetRecord) -> bool:
    """Return whether a superseded planner has written its plan over that of the newest commit."""
    done = plan_record.plan.applied and plan_record.at == fleet.at
    return plan_record.plan.commit == fleet.commit and not fleet.planning and not done


def _rollout_progress(fleet: FleetRecord, clusters: Seen, ports: Ports) -> Decision | str | None:
    """Return how far the rollout of the newest commit is, or why it cannot be read.

    None where it has none, or nothing waits.
    """
    try:
        rollout = ports.state.rollout(fleet.commit) if fleet.rollout in ("", fleet.commit) else None
    except Unreadable as error:
        return str(error)
    if rollout is None or not (fleet.rollout or rollout.people.skipped):
        return None
    decision = decide(rollout, clusters, ports.clock())
    shown = rollout.state is RolloutState.ABORTED or decision.waits or decision.final
    return decision if shown else None


def _next(
    plan_record: PlanRecord,
    clusters: Seen,
    newest: str,
    ports: Ports,
    *,
    last_time: bool,
    rollout: Decision | str | None,
    pause: Pause | None,
) -> tuple[PlanRecord, CommitStatus | None] | None:
    """Return a plan as it is to be reported, with its status if that says something new and there is room.

    None is for a plan that is being handed over, and of which nothing is known.
    """
    plan, link = plan_record.plan, _link(ports, plan_record.plan.commit)
    if plan.applied:
        progress = progress_of(plan, clusters, newest=plan.commit == newest, differed=lasting_since(ports))
        settled = progress.settled
        ended = plan.commit != newest and (settled or last_time)
        superseded_by = newest if ended else ""
        status = status_of(plan, progress, link=link, superseded_by=superseded_by, rollout=rollout)
        closed = last_time or (status.state == "success" and not progress.count(Standing.DIFFERING))
    elif (fleet := ports.state.fleet()).planning == plan.commit or newest in ("", plan.commit):
        underway = fleet.handed_over if fleet.planning == plan.commit else ""
        if not underway and pause is None:
            return None
        status = CommitStatus("pending", status_line(underway), CONTEXT, link)
        settled = closed = False
    else:
        superseded = f"superseded by {(fleet.planning or newest)[:8]} before all of it was carried out"
        status, settled, closed = CommitStatus("error", superseded, CONTEXT, link), True, True
    if pause is not None and status.state == "pending":
        said = "; ".join(filter(None, (str(pause), status.description)))
        status = CommitStatus("pending", status_line(said), CONTEXT, link)
    reported, reports = f"{status.state}: {status.description}", plan_record.reports
    interim = plan.commit != newest and not settled and plan_record.reported.startswith(f"{status.state}:")
    if interim or not has_room(reports, settled=settled, ended=closed):
        reported = plan_record.reported
    new = reported != plan_record.reported
    after = replace(
        plan_record,
        reported=reported,
        reports=reports + new,
        open=not closed,
        settled=settled,
    )
    return after, status if new else None


def _link(ports: Ports, commit: str) -> str:
    base = ports.config.public_url
    return f"{base}/plans/{commit}" if base else ""
