"""Pins that go back: clusters that an aborted rollout has changed, and their systems, get what they had.

Each gets it as a new generation of its record, so that a message of the rollout that comes late has no
effect. The planner does that whenever it looks at the rollout, until no cluster is left: so a crash at any
line, and a cluster that a planner which stood still has started since, change nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain

from shared.app.outbox import send, send_unlike
from shared.app.planner.pins.pin_branches import ensure_branch, names_commits
from shared.app.planner.reporter import report_again
from shared.app.records import Transition, change
from shared.cluster.failures.errors import ReconcileError, Retryable, Unreadable
from shared.cluster.queues.envelopes import continuation
from shared.cluster.queues.messages import ReportRequest, RolloutRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import pin_back_event
from shared.cluster.transitions.acceptance import accept_change
from shared.frozen import dataclass, replace
from shared.language.pin import Pin
from shared.ports import FleetRecord, Ports
from shared.rollouts.pins_back import goes_back, pins_back
from shared.rollouts.rollout import Member, Rollout
from shared.rollouts.waits import Seen

log = logging.getLogger(__name__)

MOST = 200
"""How many clusters go back with a message."""
SOON_SECONDS = 5.0
"""How long after that the head is planned again, or others go back."""


def move_pins_back(rollout: Rollout, seen: Seen, fleet: FleetRecord, ports: Ports) -> None:
    """Have clusters go back, some at a time; the head is planned once more when all have gone.

    The message for that is sent first: nobody else would send it. One that is recovering waits for its end.
    """
    pins, members = pins_back(rollout, seen), {member.cluster: member for member in rollout.members}
    names = sorted(pins)
    for start in range(0, len(names), MOST):
        records = ports.state.clusters_named(names[start : start + MOST])
        able = [record for record in records if _goes_back(record, members[record.name])]
        if able:
            send_unlike(RolloutRequest(again=start + MOST >= len(names)), ports, after=SOON_SECONDS)
            running = {found.name for found in ports.state.continuations() if found.small_change}
            job = _Back(
                rollout,
                direct=names_commits(fleet, ports) or not _are_branches(chain(*pins.values()), ports),
                small=len(running.union(names)) <= ports.config.limits.small_change,
            )
            report_again(rollout.commit, ports, ended=True)
            ports.together(partial(_move_back, job=job, ports=ports), [members[r.name] for r in able])
            log.info("rollout of %s: %d pins go back", rollout.commit[:8], len(able))
            send(ReportRequest(), ports)
            return


@dataclass(frozen=True)
class _Back:
    """How pins go back: in which form, and whether in small changes."""

    rollout: Rollout
    direct: bool
    small: bool


def _goes_back(record: ClusterRecord, member: Member) -> bool:
    able = not (record.deleting or record.recovering)
    return able and goes_back(member, record.uid, record.generation)


def _are_branches(pins: Iterable[Pin], ports: Ports) -> bool:
    """Return whether each of these pins is a branch; where one cannot be, Flux names its commit."""
    try:
        for commit in sorted({pin.commit for pin in pins if not pin.source}):
            ensure_branch(Pin(commit, ""), ports.git_host)
    except Retryable:
        raise
    except ReconcileError as error:
        log.warning("a pin is no branch, because that could not be written: %s: %s", error.kind, error)
        return False
    return True


def _pins_back(record: ClusterRecord, member: Member, *, direct: bool) -> Mapping[str, Pin]:
    """Return the pins to which a cluster, as "", and its systems go back, by their names."""
    present = record.desired.pins
    moved = {
        name: replace(pin, before=now.commit)
        for name, pin in member.systems.items()
        if (now := present.get(name)) and now.commit != pin.commit
    }
    own, now = member.earlier, present.get("")
    if own and own.commit:
        moved[""] = replace(own, before=now.commit if now else "", direct=direct)
    return moved


def _move_back(member: Member, *, job: _Back, ports: Ports) -> None:
    by = job.rollout.people.back

    def decide(record: ClusterRecord | None) -> Transition | None:
        if record is None or by is None or not _goes_back(record, member):
            return None
        now, moved = ports.clock(), _pins_back(record, member, direct=job.direct)
        desired = record.desired.with_pins(moved)
        after = accept_change(record, desired, commit=record.commit, now=now)
        after = replace(after, job=replace(after.job, small_change=job.small))
        event = pin_back_event(after, moved, by.by, by.reason)
        return Transition(after, [event], then=continuation(after, now))

    try:
        change(member.cluster, decide, ports)
    except Unreadable as error:  # the next message tries it again
        log.warning("the pin of %s does not go back: %s", member.cluster, error)
