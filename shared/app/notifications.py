"""Notifications are stored before the record whose change they are: never missing, perhaps twice."""

from __future__ import annotations

from shared.cluster.history import Act
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.notifications.kinds import NotificationKind
from shared.notifications.notification import (
    Notification,
    approved,
    brief,
    certificate_between,
    deleted,
    drift_between,
    outputs_between,
    trouble_between,
)
from shared.ports import DeadLetter, PlanRecord, Ports
from shared.ports.state.app import newest_changes

LETTERS = "`roadstead dead-letters` shows them, and dismisses what was handled."


def notifications_of(before: ClusterRecord, after: ClusterRecord, ports: Ports) -> list[Notification]:
    """Return what the change of a record is to whoever is notified; most changes are nothing."""
    facts = [
        trouble_between(before, after, retries=ports.config.timing.retries),
        drift_between(before, after),
    ]
    facts += [certificate_between(before, after), outputs_between(before, after)]
    return [fact for fact in facts if fact is not None]


def approval_notifications(before: PlanRecord | None, after: PlanRecord) -> list[Notification]:
    """Return that somebody approved deletes of a plan, unless the plan that was saved before says so."""
    if after.approval is None or (before is not None and before.approval == after.approval):
        return []
    return [approved(after.approval)]


def store_act(act: Act, ports: Ports) -> None:
    """Store an act of the program itself, or of a review: once, also after a crash."""
    if not any(known.id == act.id for known in newest_changes(ports.state)):
        ports.state.save_act(act)


def of_dead_letter(letter: DeadLetter) -> Notification:
    """Return the notification that a queue gave up a message which could not be handled."""
    return Notification(
        id=f"{NotificationKind.DEAD_LETTER}:{letter.queue}:{letter.id}",
        kind=NotificationKind.DEAD_LETTER,
        key=f"dead-letters:{letter.queue}",
        subject=letter.queue,
        at=letter.at,
        detail=brief(f"{letter.reason}: {letter.description}"),
        action=LETTERS,
    )


def store_dead_letter(letter: DeadLetter, ports: Ports) -> None:
    """Store that a dead letter was saved; after it, because the problem lasts while a letter is saved."""
    ports.state.add_notice(of_dead_letter(letter))


def store_deletion(record: ClusterRecord, ports: Ports) -> None:
    """Store that a cluster no longer exists, as git asked."""
    last = replace(
        record,
        divergence=replace(record.divergence, drift=None),
        observation=replace(record.observation, inside=None),
        updated=ports.clock(),
    )
    for over in (drift_between(record, last), certificate_between(record, last)):
        if over is not None:
            ports.state.add_notice(over)
    ports.state.add_notice(deleted(record, ports.clock()))
