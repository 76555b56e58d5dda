"""Pins that go back: the clusters that an aborted rollout has changed get the commit that they had before.

Each gets it as a new generation of its record, so that a message of the rollout that comes late has no
effect. The planner does that whenever it looks at the rollout, until no cluster is left: so a crash at any
line, and a cluster that a planner which stood still has started since, change nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from shared.app.outbox import send, send_unlike
from shared.app.planner.pin_branches import ensure_branch, names_commits
from shared.app.records import Transition, change
from shared.cluster.envelopes import continuation
from shared.cluster.failures.errors import Unauthorized, Unreadable
from shared.cluster.messages import ReportRequest, RolloutRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import pin_back_event
from shared.cluster.transitions.acceptance import accept_change
from shared.frozen import replace
from shared.language.pin import Pin
from shared.ports import FleetRecord, Ports
from shared.rollouts.pins_back import goes_back, pins_back
from shared.rollouts.rollout import Member, Rollout, StageDecision
from shared.rollouts.waits import Seen

log = logging.getLogger(__name__)

MOST = 200
"""How many clusters go back with a message."""
SOON_SECONDS = 5.0
"""How long after that the head is planned again, or others go back."""


def move_pins_back(rollout: Rollout, seen: Seen, fleet: FleetRecord, ports: Ports) -> None:
    """Have clusters go back, some at a time; the head is planned once more when all have gone.

    The message for that is sent first: nobody else would send it.
    """
    pins = pins_back(rollout, seen)
    if not pins:
        return
    some = dict(sorted(pins.items())[:MOST])
    send_unlike(RolloutRequest(again=len(some) == len(pins)), ports, after=SOON_SECONDS)
    direct = names_commits(fleet, ports) or not _are_branches(some, ports)
    by, members = rollout.people.back, [member for member in rollout.members if member.cluster in some]
    ports.together(partial(_move_back, by=by, direct=direct, ports=ports), members)
    log.info("rollout of %s: %d pins go back", rollout.commit[:8], len(some))
    send(ReportRequest(), ports)


def _are_branches(pins: Mapping[str, Pin], ports: Ports) -> bool:
    """Return whether each of these pins is a branch; False where the app may write none."""
    try:
        for commit in sorted({pin.commit for pin in pins.values()}):
            ensure_branch(Pin(commit, ""), ports.git_host)
    except Unauthorized as error:
        log.warning("a pin is no branch, because the app may write none: %s", error)
        return False
    return True


def _move_back(member: Member, *, by: StageDecision | None, direct: bool, ports: Ports) -> None:
    def decide(record: ClusterRecord | None) -> Transition | None:
        if record is None or record.deleting or record.recovering or by is None or member.earlier is None:
            return None
        if not goes_back(member, record.uid, record.generation):
            return None
        now, present = ports.clock(), record.desired.pin
        pin = replace(member.earlier, before=present.commit if present else "", direct=direct)
        after = accept_change(record, record.desired.with_pin(pin), commit=record.commit, now=now)
        return Transition(
            after, [pin_back_event(after, pin, by.by, by.reason)], then=continuation(after, now)
        )

    try:
        change(member.cluster, decide, ports)
    except Unreadable as error:  # the next message tries it again
        log.warning("the pin of %s does not go back: %s", member.cluster, error)
