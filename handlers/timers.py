"""The timers: the safety net for lost webhooks, crashes and lost messages. Their schedules are settings.

Each records that it came to its end, which the health of the app is about. An instance that handles nothing
leaves its run to the next one. A timer imports what it needs when it runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import azure.functions as func

from shared.app.door import NotReady, enter
from shared.app.outbox import request_whole_check, request_whole_sweep
from shared.app.runs import executed, record_run
from shared.ports import Ports

log = logging.getLogger(__name__)

SWEEP_WITHIN = 600.0
"""Seconds after its time within which a sweep begins: several fleets do not list at the same moment."""

CHECK_WITHIN = 300.0
"""Seconds after its time within which a check of the clusters begins."""


def blueprint(ports: Ports, *, sweep_schedule: str, check_schedule: str) -> func.Blueprint:
    """Return the timers: missed heads, overdue messages, retention of records, costs, sweeps, checks.

    The first one also looks at lifetimes.

    The schedules of the last two are values: apps that were deployed before have no settings for them.
    """
    bp = func.Blueprint()

    @bp.function_name("plan_missed_head")
    @bp.timer_trigger("timer", "%PLAN_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def plan_missed_head(timer: func.TimerRequest) -> None:
        from shared.app.api.acts.issue_requests import find_missed
        from shared.app.followed import plan_moved_sources
        from shared.app.planner.recovery import end_recovery
        from shared.app.proposals.ends import watch_lifetimes
        from shared.app.recovery import housekeeping, missed_work

        _run(
            "plan_missed_head",
            ports,
            housekeeping.record_changed_settings,
            end_recovery,
            missed_work.plan_missed_head,
            missed_work.plan_missed_pulls,
            find_missed,
            plan_moved_sources,
            watch_lifetimes,
            housekeeping.measure_fleet,
            missed_work.wake_notifier,
        )

    @bp.function_name("resend_overdue")
    @bp.timer_trigger("timer", "%RESEND_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def resend_overdue(timer: func.TimerRequest) -> None:
        from shared.app.recovery import missed_work

        _run("resend_overdue", ports, missed_work.resend_overdue, missed_work.put_to_sleep)

    @bp.function_name("purge_expired")
    @bp.timer_trigger("timer", "%RETENTION_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def purge_expired(timer: func.TimerRequest) -> None:
        from shared.app.costs.known_costs import digest_costs, read_costs
        from shared.app.recovery import housekeeping

        parts = (housekeeping.export_days, housekeeping.purge_expired, read_costs, digest_costs)
        _run("purge_expired", ports, *parts)

    @bp.function_name("sweep")
    @bp.timer_trigger("timer", sweep_schedule, run_on_startup=False, use_monitor=False)
    def sweep(timer: func.TimerRequest) -> None:
        _run("sweep", ports, partial(request_whole_sweep, within=SWEEP_WITHIN))

    @bp.function_name("check")
    @bp.timer_trigger("timer", check_schedule, run_on_startup=False, use_monitor=False)
    def check(timer: func.TimerRequest) -> None:
        _run("check", ports, partial(request_whole_check, within=CHECK_WITHIN))

    return bp


def _run(name: str, ports: Ports, *parts: Callable[[Ports], object]) -> None:
    """Run each part of a timer, whatever the others do; raise the first error in the end."""
    with executed(name, ports):
        _run_parts(name, ports, *parts)


def _run_parts(name: str, ports: Ports, *parts: Callable[[Ports], object]) -> None:
    try:
        inside = enter(ports)
    except NotReady as error:
        log.warning("%s: %s", name, error)
        return
    first: Exception | None = None
    for part in parts:
        try:
            part(inside)
        except Exception as error:
            failed = getattr(part, "__name__", name)
            log.exception("%s failed; the other parts of the run go on", failed)
            first = first or error
    if first is not None:
        raise first
    record_run(name, inside)
