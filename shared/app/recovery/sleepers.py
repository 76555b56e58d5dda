"""Clusters that are to sleep now: a timer finds them, and reads the records of these alone."""

from __future__ import annotations

import logging
from functools import partial

from shared.app.notifications import notifications_of
from shared.app.records import Transition, change
from shared.cluster.failures.errors import Unreadable
from shared.cluster.queues.envelopes import continuation
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import sleep_event
from shared.cluster.transitions.acceptance import accept_sleep
from shared.frozen import replace
from shared.logs import about
from shared.ports import Ports

log = logging.getLogger(__name__)

MOST = 500
"""So many clusters are put to sleep in a run of the timer; the next one has the others."""


def put_to_sleep(ports: Ports) -> int:
    """Start the job that has a cluster sleep, where it is time for that; return how many there are.

    In a pause none is started, until no clock says that it lasts. A record that cannot be read is left.
    """
    now = ports.clock()
    due = ports.state.due_to_sleep(now)[:MOST]
    if not due or ports.state.fleet().paused(now - ports.config.clocks_differ):
        return 0
    for name in due:
        try:
            change(name, partial(_asleep, ports=ports), ports)
        except Unreadable as error:
            with about(cluster=name):
                log.warning("%s is not put to sleep: %s", name, error)
    return len(due)


def _asleep(record: ClusterRecord | None, *, ports: Ports) -> Transition | None:
    """Return the record with its job; one whose sleep was missed as a whole is due for the next one."""
    now = ports.clock()
    if record is None or not record.ready:
        return None
    after = accept_sleep(record, now)
    if after is None:
        return Transition(replace(record, updated=now))
    events = [sleep_event(after)]
    return Transition(after, events, notifications_of(record, after, ports), then=continuation(after, now))
