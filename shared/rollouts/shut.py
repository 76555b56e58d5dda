"""The windows and freezes of a fleet, and the jobs that they keep from starting.

The planner stores them with the fleet's record, as of the last plan with a valid fleet.yaml: so a sweep and
the replay of an operator are bound by them, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass, replace
from shared.language.desired import Desired
from shared.language.model import change_windows as manifest
from shared.language.model.change_windows import span_of
from shared.language.model.rollout import RolloutSpec as Written
from shared.plan.holds import Closure
from shared.rollouts.calendar import Freeze, Start, Window, closed
from shared.rollouts.strategy import Selection, selection_of


class ClusterPlace(NamedTuple):
    """What a window selects a cluster by."""

    cluster: str
    environment: str
    location: str
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Calendar:
    """The windows and freezes of a fleet, each with the clusters that it is for."""

    windows: tuple[tuple[Selection, Window], ...] = ()
    freezes: tuple[tuple[Selection, Freeze], ...] = ()

    def closed(self, start: Start, place: ClusterPlace, uid: str, now: datetime) -> Closure | None:
        """Return why something may not start on a cluster now, None if it may."""
        windows = [window for of, window in self.windows if start in window.applies_to and of.selects(*place)]
        freezes = [freeze for of, freeze in self.freezes if start in freeze.applies_to and of.selects(*place)]
        return closed(windows, freezes, uid, now) if windows or freezes else None


NOTHING = Calendar()


def calendar_of(written: Written | None) -> Calendar:
    """Return the windows and freezes of fleet.yaml; a fleet that starts everything at once has none."""
    if written is None:
        return NOTHING
    return Calendar(
        tuple(
            (selection_of(change_window.select), _window(change_window))
            for change_window in written.change_windows
        ),
        tuple((selection_of(freeze.select), _freeze(freeze)) for freeze in written.freezes),
    )


def place_of(desired: Desired) -> ClusterPlace:
    """Return the place of a cluster that git has; the model does not read its spec for that."""
    location = desired.document()["spec"]["location"]
    return ClusterPlace(desired.name, desired.environment, location, desired.labels)


def place_in(name: str, document: Mapping[str, Any]) -> ClusterPlace:
    """Return the place of a cluster by the stored form of its spec."""
    location = document["spec"].get("location", "")
    return ClusterPlace(name, document.get("environment", ""), location, document.get("labels", {}))


def _window(written: manifest.ChangeWindow) -> Window:
    starts = tuple(map(Start, written.applies_to))
    duration = span_of(written.duration)
    return Window(
        written.name, written.time_zone, written.recurrence, written.start, duration, applies_to=starts
    )


def _freeze(written: manifest.FreezeSpec) -> Freeze:
    begins, ends = datetime.fromisoformat(written.starts), datetime.fromisoformat(written.ends)
    applies_to = tuple(map(Start, written.applies_to))
    return Freeze(written.name, begins, ends, written.owner, written.reason, applies_to)


# The job of a cluster that a freeze or a change window keeps from starting.


def held_start(record: ClusterRecord, start: Start, calendar: Calendar, now: datetime) -> Closure | None:
    """Return what keeps a job from starting now, None for nothing.

    It is so for as long as the record says, if that has the same name.
    """
    shut = calendar.closed(start, place_in(record.name, record.document), record.uid, now)
    held = record.divergence.held
    return shut and replace(shut, since=held.since if held and held.name == shut.name else now)
