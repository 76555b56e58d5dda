"""The timers: the safety net for lost webhooks, crashes and lost messages. Their schedules are settings."""

from __future__ import annotations

import azure.functions as func

from shared.pipeline.outbox import request_whole_sweep
from shared.pipeline.recovery import missed_work, retention, settings_seen
from shared.ports import Ports

SWEEP_WITHIN = 600.0
"""Seconds after its time within which a sweep begins: several fleets do not list at the same moment."""


def blueprint(ports: Ports, *, sweep_schedule: str) -> func.Blueprint:
    """Return the timers: missed heads, overdue messages, sweeps, and the retention of records.

    The schedule of sweeps is a value, because apps that were deployed before have no setting for it.
    """
    bp = func.Blueprint()

    @bp.function_name("plan_missed_head")
    @bp.timer_trigger("timer", "%PLAN_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def plan_missed_head(timer: func.TimerRequest) -> None:
        settings_seen.record_changed_settings(ports)
        missed_work.plan_missed_head(ports)
        missed_work.wake_notifier(ports)

    @bp.function_name("resend_overdue")
    @bp.timer_trigger("timer", "%RESEND_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def resend_overdue(timer: func.TimerRequest) -> None:
        missed_work.resend_overdue(ports)

    @bp.function_name("purge_expired")
    @bp.timer_trigger("timer", "%RETENTION_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def purge_expired(timer: func.TimerRequest) -> None:
        retention.purge_expired(ports)

    @bp.function_name("sweep")
    @bp.timer_trigger("timer", sweep_schedule, run_on_startup=False, use_monitor=False)
    def sweep(timer: func.TimerRequest) -> None:
        request_whole_sweep(ports, within=SWEEP_WITHIN)

    return bp
