"""A pause: an operator stops what the app starts by itself, until a time or a resume.

The planner plans, and hands nothing over. A worker takes no job up: its message has no effect, because the
record says what is due, and the timer of overdue jobs sends it again after the end. What reads goes on:
sweeps, checks, plans of pull requests, reports and notifications. The pause stands in the fleet's record, so
a planner that hands over meanwhile loses that record, and plans again.
"""

from __future__ import annotations

import logging

from shared.app.outbox import send, send_all
from shared.cluster.queues.envelopes import Envelope, continuation
from shared.cluster.queues.messages import NotifyRequest, PlanRequest, ReportRequest, RolloutRequest
from shared.ports import FleetRecord, Ports
from shared.ports.state.fleet import Pause

log = logging.getLogger(__name__)

NOTICED_SECONDS = 10.0
"""For how long an instance that found no pause takes that for granted."""
AGAIN_SECONDS = 60.0
"""How long a request waits that a pause stops, and that nobody would send again."""


def pause_now(ports: Ports) -> Pause | None:
    """Return the pause that lasts, None for none; raise Unreadable."""
    found, elapsed = ports.process.compared.unpaused_at, ports.elapsed()
    if found is not None and elapsed - found <= NOTICED_SECONDS:
        return None
    pause = ports.state.fleet().paused(ports.clock())
    ports.process.compared.unpaused_at = elapsed if pause is None else None
    return pause


def announce(fleet: FleetRecord, ports: Ports) -> None:
    """Have a pause, or its end, shown on the commits and sent to the routes of notifications."""
    send(ReportRequest(), ports)
    if fleet.rules.routes:
        send(NotifyRequest(), ports)


def wake(fleet: FleetRecord, ports: Ports) -> None:
    """Start what waited for the end of a pause; what is not sent here, the timers find."""
    again = PlanRequest(again=True, reason="resumed")
    send_all([Envelope(again, f"resumed:{fleet.etag}"), Envelope(RolloutRequest())], ports)
    now = ports.clock()
    due = [job.name for job in ports.state.continuations() if job.due(now) <= now]
    for record in ports.state.clusters_named(due) if due else ():
        send_all(continuation(record, now, f"resumed{int(now.timestamp())}"), ports)
