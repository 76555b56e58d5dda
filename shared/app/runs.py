"""What runs of functions leave: the ends of timers, which the health of the app is about, and what was used.

What a process has used is written now and then. A write takes two operations, for ``FEWEST`` to ``MOST``
counted ones. It is not repeated where its answer is lost, and what a process that ends had not written is
lost: so each count is at least so large.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from shared.app.door import NotReady
from shared.cluster.failures.errors import ReconcileError, Stale
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


@contextmanager
def executed(function: str, ports: Ports) -> Iterator[None]:
    """Count an execution of a function while the context lasts, and then write what is due."""
    try:
        with ports.process.tally.execution(function):
            yield
    finally:
        _write(ports.process.tally.due(), ports)


def _write(counts: Mapping[str, float], ports: Ports) -> None:
    if not counts:
        return
    try:
        ports.state.add_used(counts, ports.clock())
    except (Stale, NotReady):  # nothing was written: the next execution tries again
        ports.process.tally.restore(counts)
    except ReconcileError as error:  # it may have been written
        log.warning("%d own operations are not counted: %s", sum(counts.values()), error.kind)
