"""The rollout of a plan: which clusters are in which stage, and in which windows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from shared.frozen import replace
from shared.language.desired import Desired, is_attached
from shared.language.model.rollout import RolloutSpec as Written
from shared.language.pin import Pin
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.holds import RETRY, Closure, HoldKind
from shared.plan.plan import Action, Item, Plan, RecordedState
from shared.rollouts.begin import Candidate, Held, LineStages, begin, moves_pin, stages_with
from shared.rollouts.calendar import Freeze, Start, Window
from shared.rollouts.candidates import (
    NOTHING,
    CommitRequest,
    Records,
    candidates_of,
    choose,
    is_own,
    moves_pin_alone,
    not_held,
    seen_in,
    strategy_name,
    updates_of,
)
from shared.rollouts.decide import decide
from shared.rollouts.line import splits
from shared.rollouts.rollout import HeldStage, Member, Rollout, RolloutCalendar, RolloutState
from shared.rollouts.rollout_acts import with_gone_back
from shared.rollouts.shut import Calendar, ClusterPlace, calendar_of, place_in, place_of
from shared.rollouts.strategy import (
    NO_LINE,
    OTHERS,
    Line,
    RefusedStrategy,
    Selection,
    StageRule,
    stages_of,
)

# The change windows and freezes of a rollout, and which of its clusters each of them is for.


def with_windows(rollout: Rollout, candidates: Iterable[Candidate], written: Written) -> Rollout:
    """Return a rollout whose members have the windows and freezes of changes that are for them."""
    calendar = calendar_of(written)
    windows = [window for window in calendar.windows if Start.CHANGE in window[1].applies_to]
    freezes = [freeze for freeze in calendar.freezes if Start.CHANGE in freeze[1].applies_to]
    known = {candidate.cluster: candidate for candidate in candidates}
    members = (
        replace(
            member,
            windows=_names(windows, known[member.cluster].place),
            freezes=_names(freezes, known[member.cluster].place),
        )
        for member in rollout.members
    )
    return replace(
        rollout,
        members=tuple(members),
        calendar=RolloutCalendar(
            tuple(window for _, window in windows), tuple(freeze for _, freeze in freezes)
        ),
    )


def _names(found: Sequence[tuple[Selection, Window | Freeze]], place: ClusterPlace) -> tuple[str, ...]:
    return tuple(rule.name for selection, rule in found if selection.selects(*place))


def rollout_of_plan(
    plan: Plan,
    desired: DesiredFleet,
    written: Written,
    records: Records,
    now: datetime,
    before: Rollout | None = None,
    before_plan: Plan | None = None,
    known: Rollout | None = None,
    asked: CommitRequest = NOTHING,
    line: Line = NO_LINE,
    later: Collection[str] = (),
) -> Rollout:
    """Return the rollout of a plan; ``known`` is the one that it continues with more clusters, or None.

    ``asked`` is what the commit says about its strategy; a rollout that continues keeps the one that it has,
    and one of a commit that changes no cluster has that of the rollout ``before``.
    Where a pause or a failure of the rollout ``before`` would stop it, the clusters that this one does not
    hold back have stages of their own. Where stages are to have an earlier commit in the ``line``, so do the
    clusters of which nothing but the pin moves; the pins of ``later`` ones move after all else.
    """
    split = splits(line, known or before, plan.commit)
    updates = [item for item in updates_of(plan) if not (split and moves_pin_alone(item))]
    goes_on = known or (before if not updates else None)
    choice, wrong = choose(written.strategies, asked, updates)
    if goes_on:
        choice, wrong = replace(goes_on.choice, kind=goes_on.choice.kind or choice.kind), ()
    stages = stages_of(written, choice.name, tuple(desired.environments))
    candidates = list(candidates_of(plan, desired.clusters, records, before, before_plan, now, later))

    rules = platform_stages(written, desired)
    kept = _kept(plan, desired, records)
    held = _held(rules, candidates, kept)
    waiting = {*held, *(stage_in(rules, desired.clusters[name]) for name in later)}
    targets = (replace(target, held=target.stage in waiting) for target in line.targets)
    platform = LineStages(rules, replace(line, targets=tuple(targets)), held)
    own = _held((*stages, StageRule(OTHERS)), candidates, kept)
    allowed = tuple(strategy.name for strategy in written.strategies if strategy.may_be_selected)
    refused = RefusedStrategy(wrong, allowed, now) if wrong else None

    def with_stages(ahead: frozenset[str]) -> Rollout:
        rollout = begin(
            plan.commit, stages, candidates, before, now,
            ahead=ahead, platform=platform, split=split, held=own,
        )  # fmt: skip
        rollout = replace(rollout, choice=choice, refused=refused)
        return _continued(with_windows(rollout, candidates, written), known, records)

    rollout = with_stages(frozenset())
    if before is None or decide(rollout, seen_in(rollout, records), now).block is None:
        return rollout
    ahead = not_held(candidates, records, before, before_plan, plan.commit)
    return with_stages(ahead) if ahead else rollout


def platform_stages(written: Written, desired: DesiredFleet) -> tuple[StageRule, ...]:
    """Return the stages through which the platform goes, whatever else a commit changes."""
    strategy = strategy_name(written.strategies, ())
    rules = stages_of(written, strategy, tuple(desired.environments))
    return (*(rule for rule in rules if rule.groups), StageRule(OTHERS))


def stage_in(rules: Iterable[StageRule], cluster: Desired) -> str:
    """Return the first of these stages that selects a cluster; the last one selects all."""
    place = place_of(cluster)
    return next(rule.name for rule in rules if rule.selects(*place))


def _kept(plan: Plan, desired: DesiredFleet, records: Records) -> Sequence[tuple[Desired, HoldKind]]:
    """Return the clusters that do not get what their stage is to have, and why; other sources have none.

    One whose manifest is invalid is as it is recorded.
    """
    found = list[tuple[Desired, HoldKind]]()
    for item in sorted(plan.items, key=lambda item: item.cluster):
        cluster, record = desired.clusters.get(item.cluster), records.get(item.cluster)
        if item.hold is None or record is None:
            continue
        if item.cluster in desired.missed:
            found.append((record.desired, item.hold.kind))
            continue
        if cluster is None or cluster.pin is None:
            continue
        before = Pin.of(record.document)
        refused = item.action is Action.REFUSED and before is not None
        moves = refused and before is not None and before.pulls != cluster.pin.pulls
        if not cluster.pin.source and (item.keeps_pin or moves):
            found.append((cluster, item.hold.kind))
    return found


def _held(
    rules: Sequence[StageRule], candidates: Sequence[Candidate], kept: Sequence[tuple[Desired, HoldKind]]
) -> Held:
    """Return the stages of which no cluster gets what it is to have: nothing shows there that it works."""
    clusters, guards = defaultdict[str, list[str]](list), dict[str, HoldKind]()
    for cluster, guard in kept:
        stage = stage_in(rules, cluster)
        clusters[stage].append(cluster.name)
        guards.setdefault(stage, guard)
    gets = stages_with(rules, [candidate for candidate in candidates if moves_pin(candidate.member)])
    return {
        stage: HeldStage(stage, tuple(names), guards[stage])
        for stage, names in clusters.items()
        if stage not in gets
    }


def expected_rollout(plan: Plan, desired: DesiredFleet, now: datetime) -> Rollout | None:
    """Return the rollout that files would have, as far as it is known without the records; None for none."""
    if desired.rollout is None or not updates_of(plan):
        return None
    choice, _ = choose(desired.rollout.strategies, NOTHING, updates_of(plan))
    stages = stages_of(desired.rollout, choice.name, tuple(desired.environments))
    candidates = list(_from_files(plan, desired))
    rollout = begin(plan.commit, stages, candidates, None, now)
    return with_windows(replace(rollout, choice=choice), candidates, desired.rollout)


def _from_files(plan: Plan, desired: DesiredFleet) -> Iterator[Candidate]:
    for item in updates_of(plan):
        wanted = desired.clusters.get(item.cluster)
        if wanted is not None:
            member = Member(item.cluster, item.uid, item.generation, 0, 0, at_once=is_own(item))
            yield Candidate(member, place_of(wanted))


def _continued(rollout: Rollout, known: Rollout | None, records: Records) -> Rollout:
    """Return a rollout that begins again for its commit, with what people have decided."""
    if known is None:
        return rollout
    entered = {known.stages[place].name for place in known.entered}
    entered |= {rollout.stages[place].name for place in rollout.entered}
    given = dict.fromkeys((*known.people.approved, *rollout.people.approved))
    if known.people.back is not None:
        generations = {name: record.generation for name, record in records.items()}
        rollout = with_gone_back(rollout, known, generations)
    return replace(
        rollout,
        state=known.state if known.state is RolloutState.ABORTED else rollout.state,
        people=replace(known.people, approved=tuple(given)),
        refused=known.refused,
        checked=tuple(dict.fromkeys((*known.checked, *rollout.checked))),
        entered=tuple(place for place, stage in enumerate(rollout.stages) if stage.name in entered),
    )


# What of a plan waits for the end of a freeze or for a change window: all that no rollout holds.
#
# Changes of clusters wait in their rollout. Creations and adoptions, deletes and rebuilds, and the retries of
# failed jobs are put on hold here, and start by themselves once they may. So do deletes and rebuilds that a
# suspension holds, at its end.

_STARTS = {
    Action.CREATE: Start.CREATION,
    Action.ADOPT: Start.CREATION,
    Action.DELETE: Start.DELETE,
    Action.RELEASE: Start.DELETE,
    Action.REBUILD: Start.DELETE,
}
_NAMES = {Action.CREATE: "creation", Action.ADOPT: "adoption", Action.DELETE: "delete", Action.RETRY: RETRY}


def with_holds(
    plan: Plan,
    clusters: Mapping[str, Desired],
    recorded: Mapping[str, RecordedState],
    calendar: Calendar,
    now: datetime,
    *,
    unheld: Collection[str] = (),
) -> Plan:
    """Return the plan with the items on hold that a freeze or a window keeps from starting ``now``.

    ``unheld`` are clusters whose items this does not concern.
    """
    items = list[Item]()
    for item in plan.items:
        shut = None
        if item.cluster not in unheld:
            shut = _shut(item, clusters.get(item.cluster), recorded.get(item.cluster), calendar, now)
        items.append(_on_hold(item, recorded.get(item.cluster), shut) if shut else item)
    return replace(plan, items=tuple(items))


def held_now(
    plan: Plan,
    clusters: Mapping[str, Desired],
    recorded: Mapping[str, RecordedState],
    calendar: Calendar,
    now: datetime,
) -> tuple[Item, ...]:
    """Return the items that would be on hold if the plan were carried out now."""
    held = with_holds(plan, clusters, recorded, calendar, now)
    return tuple(item for item in held.items if item.waits_for_time)


def start_of(record: RecordedState) -> Start:
    """Return what the retry of a job starts: what the job does. A cluster that never ran is created."""
    if record.deleting:
        return Start.DELETE
    attached = is_attached(record.document)  # whatever runs there, ran before
    return Start.CHANGE if attached or record.running.kubernetes_version else Start.CREATION


def _shut(
    item: Item, desired: Desired | None, record: RecordedState | None, calendar: Calendar, now: datetime
) -> Closure | None:
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


def _place(name: str, desired: Desired | None, record: RecordedState | None) -> ClusterPlace | None:
    if desired is not None:
        return place_of(desired)
    return place_in(name, record.document) if record is not None else None


def _on_hold(item: Item, record: RecordedState | None, shut: Closure) -> Item:
    """Return an item on hold, with the values of what holds it."""
    hold = shut.hold(_NAMES.get(item.action, item.action.value))
    if item.awaits_deletion:
        hold = hold.until_deleted()
    hold = hold.of_release() if item.action is Action.RELEASE else hold
    generation = record.generation if record else 0
    return Item(
        item.cluster, Action.ON_HOLD, generation, record.uid if record else "", item.changes, hold=hold
    )
