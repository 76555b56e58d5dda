"""The notifications of what is wrong with the fleet as a whole now; those of clusters are stored. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from shared.app.notifications import of_dead_letter
from shared.cluster.failures.errors import Unauthenticated, Unreadable
from shared.cluster.failures.fleet_problem import FailedPart
from shared.cluster.failures.remedies import suggested_action
from shared.cluster.reporting.diagnosis import CORRECT_FILE
from shared.json_tree import digest_of
from shared.masking import cut
from shared.notifications.kinds import NotificationKind
from shared.notifications.notification import ACTION_LIMIT, NAMED, Notification, brief
from shared.notifications.record import NotifierRecord
from shared.plan.holds import HoldKind
from shared.plan.plan import Action, Item, Plan
from shared.ports import DeadLetter, FleetRecord, PlanRecord
from shared.ports.git_host import CREDENTIAL_SOON, GitHost
from shared.ports.state import SweepRecord

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
    refused = (item for item in held if item.action is not Action.INVALID)
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
            action=cut(_how_to_correct(plan, names), ACTION_LIMIT),
            commit=plan.commit,
            names=tuple(names[:NAMED]),
        )


def _how_to_correct(plan: Plan, held: Sequence[str]) -> str:
    """Return what to do about manifests, and about records that cannot be read."""
    records = suggested_action(Unreadable.__name__, failed=False) if plan.unreadable else ""
    files = CORRECT_FILE if plan.problems or {*held} - {*plan.unreadable} else ""
    return " ".join(filter(None, (files, records)))


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
        yield known.facts.get(known.open.get(newest.key, ""), newest)  # a new letter is another one
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
    before = known.facts.get(known.open.get("fleet", ""))
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
            yield known.facts.get(known.open.get(problem.key, ""), problem)  # each list has another time
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
