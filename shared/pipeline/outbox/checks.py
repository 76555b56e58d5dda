"""The requests for checks of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.fleet.desired import digest_of
from shared.jobs.findings.health import needs_check, next_check
from shared.jobs.messages import CheckMessage
from shared.jobs.record import ClusterRecord
from shared.pipeline.outbox.times import later, whole
from shared.ports import Message, Ports

CHECKED_TOGETHER = 20
"""How many clusters one message of a check names."""
CHECK_SESSIONS = 8
"""In how many sessions the messages of a check are, so how many clusters are checked at a time.

A check of the whole fleet has sessions of its own: whoever asks for some clusters does not wait for its end.
"""


def request_whole_check(ports: Ports, *, within: float = 0) -> None:
    """Ask that all clusters are checked, see ``whole``."""
    number, at = whole(within, ports)
    _send_checks([CheckMessage(check=str(number))], at, ports)


def request_checks(names: Sequence[str], check: str, ports: Ports, *, after: float = 0) -> None:
    """Ask that these clusters are checked, so many seconds from now; ``check`` is the id of what asks."""
    parts = [names[first : first + CHECKED_TOGETHER] for first in range(0, len(names), CHECKED_TOGETHER)]
    messages = [CheckMessage(check=check, clusters=tuple(part)) for part in parts]
    _send_checks(messages, later(after, ports), ports)


def request_next_check(record: ClusterRecord, ports: Ports, scheduled: datetime | None = None) -> None:
    """Ask for the next check of a cluster that is not known to be healthy.

    All who ask for one moment ask for one message, which comes when no clock is before that moment any more.
    ``scheduled`` is the moment of the check that asks.
    """
    if not needs_check(record):
        return
    now, patience = ports.clock(), timedelta(seconds=ports.config.unhealthy_seconds)
    at = next_check(record, max(now, scheduled or now), patience + ports.config.clocks_differ)
    message = CheckMessage(check=record.uid, clusters=(record.name,), at=at)
    _send_checks([message], at + ports.config.clocks_differ, ports)


def request_rest(rest: CheckMessage, ports: Ports, after: float = 0) -> None:
    """Ask that another message continues a check, so many seconds from now."""
    _send_checks([rest], later(after, ports), ports)


def _send_checks(checks: Sequence[CheckMessage], at: datetime | None, ports: Ports) -> None:
    """Send checks to the queue of the worker, which alone may enter clusters, in sessions of their own."""
    messages = []
    for check in checks:
        digest = digest_of(check.model_dump(mode="json"))
        kind = "checks" if check.of_fleet else "some-checks"
        session = f"{ports.config.fleet}:{kind}:{int(digest[:8], 16) % CHECK_SESSIONS}"
        messages.append(Message(session, f"check:{check.check}:{digest}", check.model_dump_json(), at))
    if messages:
        ports.jobs.send(*messages)
