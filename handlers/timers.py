"""The timers: the safety net under webhooks, crashes and lost messages. Schedules are settings."""

from __future__ import annotations

import azure.functions as func

from shared.pipeline import sweep
from shared.ports import Ports


def blueprint(ports: Ports) -> func.Blueprint:
    """Return the timer that plans missed heads and the one that sends overdue continuations again."""
    bp = func.Blueprint()

    @bp.function_name("plan_missed_head")
    @bp.timer_trigger("timer", "%PLAN_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def plan_missed_head(timer: func.TimerRequest) -> None:
        sweep.plan_missed_head(ports)

    @bp.function_name("resend_overdue")
    @bp.timer_trigger("timer", "%RESEND_SCHEDULE%", run_on_startup=False, use_monitor=False)
    def resend_overdue(timer: func.TimerRequest) -> None:
        sweep.resend_overdue(ports)

    return bp
