"""The timers: the safety net for lost webhooks, crashes and lost messages. Their schedules are settings."""

from __future__ import annotations

import azure.functions as func

from shared.pipeline.recovery import missed_work, retention, settings_seen
from shared.ports import Ports


def blueprint(ports: Ports) -> func.Blueprint:
    """Return the timers: missed heads, overdue messages, and the retention of records."""
    bp = func.Blueprint()

    @bp.function_name("plan_missed_head")
    @bp.timer_trigger("timer", "%PLAN_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def plan_missed_head(timer: func.TimerRequest) -> None:
        settings_seen.record_changed_settings(ports)
        missed_work.plan_missed_head(ports)

    @bp.function_name("resend_overdue")
    @bp.timer_trigger("timer", "%RESEND_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def resend_overdue(timer: func.TimerRequest) -> None:
        missed_work.resend_overdue(ports)

    @bp.function_name("purge_expired")
    @bp.timer_trigger("timer", "%RETENTION_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def purge_expired(timer: func.TimerRequest) -> None:
        retention.purge_expired(ports)

    return bp
