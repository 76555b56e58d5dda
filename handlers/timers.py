"""The timers: the safety net under webhooks, crashes and lost messages. Schedules are settings."""

from __future__ import annotations

import azure.functions as func

from shared.pipeline import housekeeping, sweep
from shared.ports import Ports


def blueprint(ports: Ports) -> func.Blueprint:
    """Return the timers: missed heads, overdue continuations, and what is old."""
    bp = func.Blueprint()

    @bp.function_name("plan_missed_head")
    @bp.timer_trigger("timer", "%PLAN_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def plan_missed_head(timer: func.TimerRequest) -> None:
        sweep.plan_missed_head(ports)

    @bp.function_name("resend_overdue")
    @bp.timer_trigger("timer", "%RESEND_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def resend_overdue(timer: func.TimerRequest) -> None:
        sweep.resend_overdue(ports)

    @bp.function_name("keep_house")
    @bp.timer_trigger("timer", "%HOUSEKEEPING_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def keep_house(timer: func.TimerRequest) -> None:
        housekeeping.keep_house(ports)

    return bp
