"""What is notified: what happens to clusters, and what is wrong with the fleet.

Those of clusters are stored before the record whose change they are: never missing, perhaps twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from shared.cluster.failures.errors import Unauthenticated, Unreadable
from shared.cluster.failures.fleet_problem import FailedPart
from shared.cluster.failures.remedies import suggested_action
from shared.cluster.history import Act
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.diagnosis import CORRECT_FILE
from shared.json_tree import digest_of
from shared.language.model.notification_kinds import NotificationKind
from shared.masking import cut
from shared.notifications.notification import (
    ACTION_LIMIT,
    NAMED,
    Notification,
    approved,
    brief,
)
from shared.notifications.of_clusters import deleted, news_between
from shared.notifications.record import NotifierRecord
from shared.plan.holds import HoldKind
from shared.plan.plan import Action, Item, Plan
from shared.ports import DeadLetter, FleetRecord, PlanRecord, Ports
from shared.ports.git_host import CREDENTIAL_SOON, GitHost
from shared.ports.state import SweepRecord
from shared.ports.state.app import newest_changes

LETTERS = "`roadstead dead-letters` shows them, and dismisses what was handled."


def notifications_of(before: ClusterRecord, after: ClusterRecord, ports: Ports) -> list[Notification]:
    """Return what the change of a record is to whoever is notified; most changes are nothing."""
    return news_between(before, after, ports.config.timing.retries)


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
    ports.state.add_notification(of_dead_letter(letter))


def store_deletion(record: ClusterRecord, ports: Ports) -> None:
    """Store that a cluster no longer exists, as git asked."""
    for notification in deleted(record, ports.clock()):
        ports.state.add_notification(notification)


# What is wrong with the fleet as a whole now. It is not stored, and ends by itself.

OF_PLANS = frozenset({NotificationKind.REFUSED, NotificationKind.INVALID})
"""What the plan of the newest commit says; it is read only when there is a new one."""
OTHERS = frozenset(NotificationKind) - OF_PLANS
"""What is looked at each time."""
OUTAGE = timedelta(minutes=2)
"""After so long without a delivery the other routes hear of a route."""
APPROVE = "`roadstead plans` shows what waits; `roadstead approve COMMIT` starts it, a commit takes it back."
SWEEPS = "`roadstead status` has the reason; the next sweep lists the subscription again."
ORPHANS = "`roadstead import RESOURCE_ID` makes a manifest of it, or delete it in Azure."
RESUME = "`roadstead resume` ends the pause."
ROUTE = "Check the app setting with its address; what it missed is delivered once it answers."


def of_plan(plan_record: PlanRecord) -> Iterator[Notification]:
    """Yield what is wrong with the newest plan."""
    plan, at = plan_record.plan, plan_record.at
    waiting = sorted(plan.deletes_needing_approval)
    if waiting:
        causes = {item.hold.cause for item in plan.items if item.needs_approval and item.hold}
        yield Notification(
            id=f"{NotificationKind.REFUSED}:{plan.commit}:{digest_of(waiting)}",
            kind=NotificationKind.REFUSED,
            key="approval",
            subject=_counted(waiting),
            at=at,
            detail=brief("; ".join(sorted(causes))),
            action=APPROVE,
            commit=plan.commit,
            names=tuple(waiting[:NAMED]),
        )
    held = [item for item in plan.items if item.needs_action and not _is_by_approval(item)]
    refused = [item for item in held if item.action is not Action.INVALID]
    problems = [*plan.problems, *(f"{item.cluster}: {item.reason}" for item in refused)]
    if problems:
        names = sorted(item.cluster for item in held)
        yield Notification(
            id=f"{NotificationKind.INVALID}:{plan.commit}",
            kind=NotificationKind.INVALID,
            key="manifests",
            subject=plan.commit[:8],
            at=at,
            detail=brief("; ".join(dict.fromkeys(problems))),
            action=cut(_how_to_correct(plan, [item.cluster for item in refused]), ACTION_LIMIT),
            commit=plan.commit,
            names=tuple(names[:NAMED]),
        )


def _how_to_correct(plan: Plan, held: Sequence[str]) -> str:
    """Return what to do about manifests, about records that cannot be read, and about all else.

    Which change is not carried out because of what exists, no validation of the files says.
    """
    records = suggested_action(Unreadable.__name__, failed=False) if plan.unreadable else ""
    files = CORRECT_FILE if plan.problems else ""
    others = sorted({*held} - {*plan.unreadable})
    return " ".join(
        filter(None, (files, f"`roadstead why {others[0]}` says what to do." if others else "", records))
    )


def present(
    fleet: FleetRecord,
    sweep: SweepRecord,
    letters: Sequence[DeadLetter],
    known: NotifierRecord,
    now: datetime,
    host: GitHost,
) -> Iterator[Notification]:
    """Yield what is wrong with the fleet now, apart from its newest plan. ``letters`` are newest first."""
    yield from _of_fleet(fleet, known, now, host)
    yield from _of_pause(fleet, now)
    yield from _of_token(fleet, known, now, host)
    yield from _of_sweep(sweep, known, now)
    for queue in sorted({letter.queue for letter in letters}):
        newest = of_dead_letter(next(letter for letter in letters if letter.queue == queue))
        yield known.notifications.get(known.open.get(newest.key, ""), newest)  # a new letter is another one
    yield from _of_routes(known, now)


def _of_fleet(
    fleet: FleetRecord, known: NotifierRecord, now: datetime, host: GitHost
) -> Iterator[Notification]:
    problem = fleet.problem
    if problem is None:
        return
    credential = problem.kind == Unauthenticated.__name__ and problem.failed is FailedPart.READ
    kind = NotificationKind.CREDENTIAL if credential else NotificationKind.PLAN
    identifier = f"{kind}:{problem.failed}:{problem.kind}"
    before = known.notifications.get(known.open.get("fleet", ""))
    same = before is not None and before.id.startswith(identifier)
    at = before.at if before is not None and same else now
    yield Notification(
        id=f"{identifier}:{int(at.timestamp())}",
        kind=kind,
        key="fleet",
        subject=host.name if credential else (fleet.planning or fleet.commit)[:8],
        at=at,
        reason=problem.kind,
        detail=brief(str(problem)),
        action=brief(problem.suggested_action, ACTION_LIMIT),
        commit=fleet.planning or fleet.commit,
    )


def _of_pause(fleet: FleetRecord, now: datetime) -> Iterator[Notification]:
    pause = fleet.paused(now)
    if pause is not None:
        yield Notification(
            id=f"{NotificationKind.PAUSED}:{_moment(pause.at)}",
            kind=NotificationKind.PAUSED,
            key="pause",
            subject=pause.by,
            at=pause.at,
            detail=brief(str(pause)),
            action=RESUME,
        )


def _of_token(
    fleet: FleetRecord, known: NotifierRecord, now: datetime, host: GitHost
) -> Iterator[Notification]:
    """Yield that the token ends soon, until there is another one: one that has ended is not replaced."""
    head, key = fleet.reads.last.head if fleet.reads.last else None, "token"
    expires = head.credential_expires if head else None
    if expires is None or expires - now > CREDENTIAL_SOON or (expires <= now and key not in known.open):
        return
    yield Notification(
        id=f"{NotificationKind.TOKEN}:{_moment(expires)}",
        kind=NotificationKind.TOKEN,
        key=key,
        subject=host.credential,
        at=expires - CREDENTIAL_SOON,
        detail=f"{host.name} says that it ends on {expires.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        action=f"Create another token, set it as {host.credential}, and deploy.",
    )


def _of_sweep(sweep: SweepRecord, known: NotifierRecord, now: datetime) -> Iterator[Notification]:
    for listing in sweep.listings:
        if listing.problem:
            problem = Notification(
                id=f"{NotificationKind.SWEEP}:{listing.subscription}:{_moment(listing.at)}",
                kind=NotificationKind.SWEEP,
                key=f"sweep:{listing.subscription}",
                subject=listing.subscription,
                at=listing.at or sweep.started or now,
                detail=brief(listing.problem),
                action=SWEEPS,
            )
            yield known.notifications.get(
                known.open.get(problem.key, ""), problem
            )  # each list has another time
        for orphan in listing.orphans:
            yield Notification(
                id=f"{NotificationKind.ORPHAN}:{orphan.resource}:{_moment(orphan.since)}",
                kind=NotificationKind.ORPHAN,
                key=f"orphan:{orphan.resource}",
                subject=orphan.resource,
                at=orphan.since,
                detail=f"its tags name the cluster {orphan.cluster}",
                action=ORPHANS,
            )


def _of_routes(known: NotifierRecord, now: datetime) -> Iterator[Notification]:
    for name, state in known.routes.items():
        outage = state.outage
        if outage is not None and now - outage.since >= OUTAGE:
            yield Notification(
                id=f"{NotificationKind.ROUTE}:{name}:{_moment(outage.since)}",
                kind=NotificationKind.ROUTE,
                key=f"route:{name}",
                subject=name,
                at=outage.since,
                reason=outage.kind,
                detail=brief(outage.message),
                action=ROUTE,
            )


def _is_by_approval(item: Item) -> bool:
    return item.needs_approval or (item.hold is not None and item.hold.kind is HoldKind.RENAMED)


def _counted(names: Iterable[str]) -> str:
    some = list(names)
    return some[0] if len(some) == 1 else f"{len(some)} clusters"


def _moment(at: datetime | None) -> int:
    return int(at.timestamp()) if at else 0
