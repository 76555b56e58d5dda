"""What of a plan waits for the end of a freeze or for a change window: all that no rollout holds.

Changes of clusters wait in their rollout. Creations and adoptions, deletes and rebuilds, and the retries of
failed jobs are put on hold here, and start by themselves once they may. So do deletes and rebuilds that a
suspension holds, at its end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from shared.language.desired import Desired, is_attached
from shared.plan.holds import NEVER, RETRY, Hold, HoldKind
from shared.plan.plan import Action, Item, Plan, Recorded
from shared.rollouts.calendar import Closed, Start
from shared.rollouts.shut import Calendar, Place, place_in, place_of

_STARTS = {
    Action.CREATE: Start.CREATION,
    Action.ADOPT: Start.CREATION,
    Action.DELETE: Start.DELETE,
    Action.RELEASE: Start.DELETE,
    Action.REBUILD: Start.DELETE,
}
_NAMES = {Action.CREATE: "creation", Action.ADOPT: "adoption", Action.DELETE: "delete", Action.RETRY: RETRY}


@dataclass(frozen=True)
class Held:
    """A plan with what waits, and when the first of it may start by itself; None for never or for nothing."""

    plan: Plan
    opens: datetime | None = None


def with_holds(
    plan: Plan,
    clusters: Mapping[str, Desired],
    recorded: Mapping[str, Recorded],
    calendar: Calendar,
    now: datetime,
    *,
    unheld: Collection[str] = (),
) -> Held:
    """Return the plan with the items on hold that a freeze or a window keeps from starting ``now``.

    ``unheld`` are clusters whose items this does not concern.
    """
    items = list[Item]()
    for item in plan.items:
        shut = None
        if item.cluster not in unheld:
            shut = _shut(item, clusters.get(item.cluster), recorded.get(item.cluster), calendar, now)
        items.append(_on_hold(item, recorded.get(item.cluster), shut) if shut else item)
    ends = (item.hold.until for item in items if item.hold is not None)
    return Held(replace(plan, items=tuple(items)), min((at for at in ends if at is not None), default=None))


def held_now(
    plan: Plan,
    clusters: Mapping[str, Desired],
    recorded: Mapping[str, Recorded],
    calendar: Calendar,
    now: datetime,
) -> tuple[Item, ...]:
    """Return the items that would be on hold if the plan were carried out now."""
    held = with_holds(plan, clusters, recorded, calendar, now).plan
    return tuple(item for item in held.items if item.waits_for_time)


def start_of(record: Recorded) -> Start:
    """Return what the retry of a job starts: what the job does. A cluster that never ran is created."""
    if record.deleting:
        return Start.DELETE
    attached = is_attached(record.document)  # whatever runs there, ran before
    return Start.CHANGE if attached or record.running_version else Start.CREATION


def _shut(
    item: Item, desired: Desired | None, record: Recorded | None, calendar: Calendar, now: datetime
) -> Closed | None:
    """Return what keeps an item from starting, None for nothing.

    The creation that ends a rebuild is part of it: its cluster no longer exists.
    """
    start = _STARTS.get(item.action)
    if item.action is Action.RETRY and record is not None:
        start = start_of(record)
    if start is None or (item.begins and desired is not None and desired.rebuild):
        return None
    place = _place(item.cluster, desired if item.begins else None, record)
    return calendar.closed(start, place, item.uid or item.cluster, now) if place else None


def _place(name: str, desired: Desired | None, record: Recorded | None) -> Place | None:
    if desired is not None:
        return place_of(desired)
    return place_in(name, record.document) if record is not None else None


def _on_hold(item: Item, record: Recorded | None, shut: Closed) -> Item:
    """Return an item on hold, with the values of what holds it."""
    details = {
        "start": _NAMES.get(item.action, item.action.value),
        "name": shut.freeze.name if shut.freeze else shut.window,
        "since": shut.since.isoformat() if shut.since else "",
        "until": shut.until.isoformat() if shut.until else NEVER,
    }
    if item.awaits_deletion:
        details["created again"] = "yes"
    if shut.freeze is not None:
        details |= {"owner": shut.freeze.owner, "reason": shut.freeze.reason}
    hold = Hold(HoldKind.FREEZE if shut.freeze else HoldKind.WINDOW, details)
    hold = hold.of_release() if item.action is Action.RELEASE else hold
    generation = record.generation if record else 0
    return Item(
        item.cluster, Action.ON_HOLD, generation, record.uid if record else "", item.changes, hold=hold
    )
