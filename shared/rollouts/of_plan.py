"""The rollout of a plan: which clusters are in which stage, and in which windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from shared.cluster.reporting.summary import summary_of
from shared.frozen import replace
from shared.language.model.rollout import Rollout as Written
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.plan import Plan
from shared.rollouts.begin import Candidate, begin
from shared.rollouts.calendar import Freeze, Start, Window
from shared.rollouts.candidates import (
    Records,
    candidates_of,
    is_own,
    not_held,
    slowest_kind,
    strategy_name,
    updates_of,
)
from shared.rollouts.decide import decide
from shared.rollouts.rollout import Refused, Rollout, State, StrategyChoice
from shared.rollouts.selected import NOTHING, Asked, Choice, choose
from shared.rollouts.shut import Place, calendar_of
from shared.rollouts.strategy import Selection, stages_of

# The change windows and freezes of a rollout, and which of its clusters each of them is for.


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


def rollout_of_plan(
    plan: Plan,
    desired: DesiredFleet,
    written: Written,
    records: Records,
    now: datetime,
    before: Rollout | None = None,
    before_plan: Plan | None = None,
    known: Rollout | None = None,
    asked: Asked = NOTHING,
) -> Rollout:
    """Return the rollout of a plan; ``known`` is the one that it continues with more clusters, or None.

    ``asked`` is what the commit says about its strategy; a rollout that continues keeps the one that it has,
    and one of a commit that changes no cluster has that of the rollout ``before``.
    Where a pause or a failure of the rollout ``before`` would stop it, the clusters that this one does not
    hold back have stages of their own.
    """
    updates = updates_of(plan)
    goes_on = known or (before if not updates else None)
    choice = choose(written.strategies, asked, updates)
    choice = Choice(goes_on.choice.name, goes_on.choice.selected) if goes_on else choice
    stages = stages_of(written, choice.strategy, tuple(desired.environments))
    kind = (goes_on.choice.kind if goes_on else "") or slowest_kind(updates)
    candidates = list(candidates_of(plan, desired.clusters, records, before, before_plan, now))

    def with_stages(ahead: frozenset[str]) -> Rollout:
        rollout = begin(plan.commit, stages, candidates, before, now, ahead=ahead)
        chosen = StrategyChoice(choice.strategy, choice.selected, kind)
        rollout = replace(rollout, choice=chosen, refused=_refused(choice, written, now))
        return _continued(with_windows(rollout, candidates, written), known)

    rollout = with_stages(frozenset())
    names = (each.cluster for each in rollout.members)
    seen = {name: summary_of(records[name]) for name in names if name in records}
    if before is None or decide(rollout, seen, now).block is None:
        return rollout
    ahead = not_held(candidates, records, before, before_plan, plan.commit)
    return with_stages(ahead) if ahead else rollout


def _refused(choice: Choice, written: Written, now: datetime) -> Refused | None:
    if not choice.refused:
        return None
    allowed = tuple(each.name for each in written.strategies if each.may_be_selected)
    return Refused(choice.refused, allowed, now)


def expected_rollout(plan: Plan, desired: DesiredFleet, now: datetime) -> Rollout | None:
    """Return the rollout that files would have, as far as it is known without the records; None for none."""
    if desired.rollout is None or not updates_of(plan):
        return None
    name = strategy_name(desired.rollout.strategies, updates_of(plan))
    stages = stages_of(desired.rollout, name, tuple(desired.environments))
    candidates = list(_from_files(plan, desired))
    rollout = begin(plan.commit, stages, candidates, None, now)
    rollout = replace(rollout, choice=StrategyChoice(name, kind=slowest_kind(updates_of(plan))))
    return with_windows(rollout, candidates, desired.rollout)


def _from_files(plan: Plan, desired: DesiredFleet) -> Iterator[Candidate]:
    for item in updates_of(plan):
        wanted = desired.clusters.get(item.cluster)
        if wanted is None:
            continue
        place = wanted.environment, wanted.document()["spec"]["location"], wanted.labels
        yield Candidate(item.cluster, item.uid, item.generation, *place, at_once=is_own(item))


def _continued(rollout: Rollout, known: Rollout | None) -> Rollout:
    """Return a rollout that begins again for its commit, with what people have decided."""
    if known is None:
        return rollout
    entered = {known.stages[place].name for place in known.entered}
    return replace(
        rollout,
        state=known.state if known.state is State.ABORTED else rollout.state,
        people=known.people,
        refused=known.refused,
        checked=known.checked,
        entered=tuple(place for place, stage in enumerate(rollout.stages) if stage.name in entered),
    )
