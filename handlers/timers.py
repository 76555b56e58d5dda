"""The timers: the safety net for lost webhooks, crashes and lost messages. Their schedules are settings.

Each records that it came to its end, which the health of the app is about. It imports what it needs when it
runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import azure.functions as func

from shared.app.outbox import request_whole_check, request_whole_sweep
from shared.app.runs import record_run
from shared.ports import Ports

log = logging.getLogger(__name__)

SWEEP_WITHIN = 600.0
"""Seconds after its time within which a sweep begins: several fleets do not list at the same moment."""

CHECK_WITHIN = 300.0
"""Seconds after its time within which a check of the clusters begins."""


def blueprint(ports: Ports, *, sweep_schedule: str, check_schedule: str) -> func.Blueprint:
    """Return the timers: missed heads, overdue messages, the retention of records, sweeps, and checks.

    The first one also has clusters checked whose Flux applies what a commit changed.

    The schedules of the last two are values: apps that were deployed before have no settings for them.
    """
    bp = func.Blueprint()

    @bp.function_name("plan_missed_head")
    @bp.timer_trigger("timer", "%PLAN_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def plan_missed_head(timer: func.TimerRequest) -> None:
        from shared.app.check.changed_paths import check_changed_paths
        from shared.app.recovery import housekeeping, missed_work

        _run_each(
            ports,
            housekeeping.record_changed_settings,
            missed_work.plan_missed_head,
            housekeeping.measure_fleet,
            missed_work.wake_notifier,
            check_changed_paths,
        )
        record_run("plan_missed_head", ports)

    @bp.function_name("resend_overdue")
    @bp.timer_trigger("timer", "%RESEND_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def resend_overdue(timer: func.TimerRequest) -> None:
        from shared.app.recovery import missed_work

        missed_work.resend_overdue(ports)
        record_run("resend_overdue", ports)

    @bp.function_name("purge_expired")
    @bp.timer_trigger("timer", "%RETENTION_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def purge_expired(timer: func.TimerRequest) -> None:
        from shared.app.recovery import housekeeping

        housekeeping.purge_expired(ports)
        record_run("purge_expired", ports)

    @bp.function_name("sweep")
    @bp.timer_trigger("timer", sweep_schedule, run_on_startup=False, use_monitor=False)
    def sweep(timer: func.TimerRequest) -> None:
        request_whole_sweep(ports, within=SWEEP_WITHIN)
        record_run("sweep", ports)

    @bp.function_name("check")
    @bp.timer_trigger("timer", check_schedule, run_on_startup=False, use_monitor=False)
    def check(timer: func.TimerRequest) -> None:
        request_whole_check(ports, within=CHECK_WITHIN)
        record_run("check", ports)

    return bp


def _run_each(ports: Ports, *parts: Callable[[Ports], object]) -> None:
    """Run each part, whatever the others do; raise the first error in the end."""
    first: Exception | None = None
    for part in parts:
        try:
            part(ports)
        except Exception as error:
            log.exception("%s failed; the other parts of the run go on", part.__name__)
            first = first or error
    if first is not None:
        raise first
