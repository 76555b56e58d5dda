"""The change windows and freezes of a rollout, and which of its clusters each of them is for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shared.fleet.manifests.rollout import Rollout as Written
from shared.frozen import replace
from shared.rollouts.begin import Candidate
from shared.rollouts.calendar import Freeze, Start, Window
from shared.rollouts.rollout import Rollout
from shared.rollouts.shut.fleet_calendar import Place, calendar_of
from shared.rollouts.strategy import Selection


def with_windows(rollout: Rollout, candidates: Iterable[Candidate], written: Written) -> Rollout:
    """Return a rollout whose members have the windows and freezes of changes that are for them."""
    calendar = calendar_of(written)
    windows = [each for each in calendar.windows if Start.CHANGE in each[1].applies_to]
    freezes = [each for each in calendar.freezes if Start.CHANGE in each[1].applies_to]
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


def _names(found: Sequence[tuple[Selection, Window | Freeze]], of: Candidate) -> tuple[str, ...]:
    place = Place(of.cluster, of.environment, of.location, of.labels)
    return tuple(each.name for selection, each in found if selection.selects(*place))
