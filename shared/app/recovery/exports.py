"""What only tables have is written to blobs once a day, and from there into tables that lost it.

Azure restores no table. Git and Azure have the rest of what is stored: see ``door``.
"""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime, time, timedelta

from shared.ports import Ports, State
from shared.ports.services import Exports, day_of, newest_day
from shared.ports.state.app import LONG_AGO

log = logging.getLogger(__name__)

LATE = timedelta(hours=1)
"""How long after its end a day is exported: clocks differ, and a write may take a while."""


def export_days(ports: Ports) -> str:
    """Write the days that are over and not exported yet, as one file with the name of the last of them."""
    fleet, exports = ports.config.fleet, ports.exports
    last = (ports.clock() - LATE).date() - timedelta(days=1)
    done = newest_day(exports, fleet)
    if done is not None and done >= last:
        return ""
    since = LONG_AGO if done is None else _begin(done + timedelta(days=1))
    name = f"{fleet}/{last.isoformat()}.jsonl"
    exports.write(name, ports.state.lines_written(since, _begin(last + timedelta(days=1))))
    log.info("exported acts, events and plans: %s", name)
    return name


def restore(fleet: str, state: State, exports: Exports, since: date) -> tuple[int, int]:
    """Insert what is missing, from the exports since a day; return how much was missing, and how much not."""
    restored = there = 0
    for name in sorted(exports.names(f"{fleet}/"), reverse=True):
        if day_of(name) >= since:
            for line in exports.lines(name):
                if state.restore_line(line):
                    restored += 1
                else:
                    there += 1
    return restored, there


def _begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
