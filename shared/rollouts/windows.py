"""The change windows and freezes of a fleet, and which clusters each of them is for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from shared.fleet.manifests import change_windows as manifest
from shared.fleet.manifests.change_windows import span_of
from shared.fleet.manifests.rollout import Rollout as Written
from shared.rollouts.begin import Candidate
from shared.rollouts.calendar import Freeze, Window
from shared.rollouts.rollout import Rollout
from shared.rollouts.strategy import Selection, selection_of

T = TypeVar("T", Window, Freeze)


def with_windows(rollout: Rollout, candidates: Iterable[Candidate], written: Written) -> Rollout:
    """Return a rollout whose members have the windows and freezes that are for them."""
    windows = [(selection_of(each.select), _window(each)) for each in written.change_windows]
    freezes = [(selection_of(each.select), _freeze(each)) for each in written.freezes]
    known = {each.cluster: each for each in candidates}
    members = (
        replace(
            each,
            windows=_names(windows, known[each.cluster]),
            freezes=_names(freezes, known[each.cluster]),
        )
        for each in rollout.members
    )
    return replace(
        rollout,
        members=tuple(members),
        windows=tuple(window for _, window in windows),
        freezes=tuple(freeze for _, freeze in freezes),
    )


def _names(found: Sequence[tuple[Selection, T]], of: Candidate) -> tuple[str, ...]:
    place: tuple[str, str, str, Mapping[str, str]] = (of.cluster, of.environment, of.location, of.labels)
    return tuple(each.name for selection, each in found if selection.selects(*place))


def _window(written: manifest.ChangeWindow) -> Window:
    duration = span_of(written.duration)
    return Window(written.name, written.time_zone, written.recurrence, written.start, duration)


def _freeze(written: manifest.Freeze) -> Freeze:
    starts, ends = datetime.fromisoformat(written.starts), datetime.fromisoformat(written.ends)
    return Freeze(written.name, starts, ends, written.owner, written.reason)
