"""The ends that are recorded, which the health of the app is about: of timers, and of what they ask for."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

from shared.cluster.failures.errors import ReconcileError
from shared.ports import Ports

log = logging.getLogger(__name__)

ENDS: Mapping[str, str] = {"sweep": "sweep-end", "check": "check-end", "plan_missed_head": "plan-end"}
"""The timers that only ask for work, and the names under which its last end is stored."""


def expected_names(timers: Collection[str]) -> Sequence[str]:
    """Return the names under which runs of timers are stored, and ends of what they ask for."""
    return [*timers, *(ENDS[name] for name in timers if name in ENDS)]


def record_run(name: str, ports: Ports) -> None:
    """Save that a timer has come to its end, in one write; without it, health says that the timer is late."""
    try:
        ports.state.save_timer_run(name, ports.clock())
    except ReconcileError as error:
        log.warning("the run of %s is not recorded: %s: %s", name, error.kind, error)


def record_end(timer: str, ports: Ports) -> None:
    """Save that what a timer asks for, or a part of that, has come to its end."""
    record_run(ENDS[timer], ports)
