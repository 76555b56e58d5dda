"""How a rollout begins: which clusters it has, and in which stage and group each of them is.

A newer commit supersedes a rollout. What that one had started and the newer commit does not change again
stays a member, at the generation that it has: so what changes and what has failed still counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from shared.frozen import dataclass, field, replace
from shared.rollouts.rollout import Decisions, Group, HeldStage, Member, Rollout, RolloutState, Stage
from shared.rollouts.shut import ClusterPlace
from shared.rollouts.strategy import NO_LINE, OTHERS, GroupRule, Line, StageRule, at_least, at_most

BACK = "back"
"""The first stage of a commit that takes a change back: the clusters that have it already."""
UNDER_WAY = (RolloutState.ACTIVE, RolloutState.SUPERSEDED)
"""What a rollout is whose place another one takes; it is superseded already if a planner ended in between."""
AHEAD = "fix:"
"""What the names of stages begin with whose clusters the paused rollout before does not hold back."""


@dataclass(frozen=True)
class Candidate:
    """A cluster that may be a ``member``, with what stages select by.

    ``digest`` is that of its new spec. ``aside``: it cannot take part now. ``touched``: it has changed or
    failed already, and so comes first. ``left``: the commit leaves it as the earlier rollout changed it, in
    the group of a stage. ``adds``: the commit changes it in another way than the earlier rollout would have.
    """

    member: Member
    place: ClusterPlace
    digest: str = ""
    aside: bool = False
    touched: bool = False
    left: bool = False
    adds: bool = True

    @property
    def cluster(self) -> str:
        """Its name."""
        return self.member.cluster


Held = Mapping[str, HeldStage]
"""Stages of which no cluster gets what the commit gives Flux, because guards keep their pins, by name."""
NONE_HELD: Held = {}


@dataclass(frozen=True)
class LineStages:
    """The stages of the platform as written, and what each of them is to have.

    ``held`` are those of which no cluster gets that, by their names.
    """

    strategy: Sequence[StageRule] = ()
    line: Line = NO_LINE
    held: Held = field(default_factory=dict)


NO_STAGES = LineStages()


def begin(
    commit: str,
    strategy: Sequence[StageRule],
    candidates: Sequence[Candidate],
    earlier: Rollout | None,
    now: datetime,
    *,
    ahead: Collection[str] = frozenset(),
    platform: LineStages = NO_STAGES,
    split: bool = False,
    held: Held = NONE_HELD,
) -> Rollout:
    """Return the rollout of a commit; ``earlier`` is the one that it supersedes, None for none.

    Clusters that no stage selects are in a last one. Those that are ``ahead`` of a pause have the same stages
    before all others. In a ``split`` rollout the clusters of which nothing but the pin moves have stages of
    their own, by the ``platform``, for which no other cluster waits. In any other one a stage that moves pins
    waits for stages of the strategy before it that are ``held``.
    """
    stages, members = list[Stage](), list[Member]()

    def add(stage: Stage, groups: Iterable[tuple[Group, Sequence[Candidate]]]) -> None:
        bounds = list[Group]()
        for number, (group, own) in enumerate(groups):
            bounds.append(group)
            members.extend(replace(taken.member, stage=len(stages), group=number) for taken in own)
        stages.append(replace(stage, groups=tuple(bounds)))

    known = {member.cluster: member for member in earlier.members} if earlier else {}
    returning = [candidate for candidate in candidates if _goes_back(candidate, known.get(candidate.cluster))]
    if returning and earlier:
        bound = max((group.bound for stage in earlier.stages for group in stage.groups), default=1)
        add(Stage(BACK, (), back=True), [(Group(bound, bound, least=0), returning)])
    left = _without(candidates, returning)
    in_line = [candidate for candidate in left if split and candidate.member.platform]
    left = _without(left, in_line)
    first = [candidate for candidate in left if candidate.cluster in ahead]
    names = [rule.name for rule in strategy]
    for some, passing in ((first, True), (_without(left, first), False)):
        for rule, own in _staged(strategy, some):
            moves = not split and any(moves_pin(candidate.member) for candidate in own)
            waits = _held_before(rule.name, names, held) if moves else ()
            name = f"{AHEAD if passing else ''}{rule.name}"
            stage = Stage(name, (), ahead=passing, gate=rule.gate, held=waits)
            add(stage, _grouped(rule.groups, own))
    before, after = "", _after(platform, left) if split else {}
    for rule, own in _staged(platform.strategy, in_line):
        target = next(target.commit for target in platform.line.targets if target.stage == rule.name)
        same = [known.stage for known in platform.line.targets if known.commit == target]
        waits = _held_before(rule.name, same, platform.held)
        stage = Stage(f"{target[:8]}:{rule.name}", (), gate=rule.gate, commit=target, held=waits)
        add(replace(stage, apart=target != before, after=after[rule.name]), _grouped(rule.groups, own))
        before = target
    stages += [Stage(rule.name, (), gate=rule.gate) for rule in strategy if not rule.groups]
    paused = earlier.people.paused if earlier and earlier.state in UNDER_WAY else None
    as_before = {candidate.cluster for candidate in candidates if candidate.left}
    gated = (_with_reached(stage, place, members, as_before, earlier) for place, stage in enumerate(stages))
    people = Decisions(paused, inherited=paused is not None)
    rollout = Rollout(commit, now, tuple(gated), tuple(members), people=people, line=platform.line)
    return _with_what_goes_on(rollout, earlier) if earlier and in_line else rollout


def moves_pin(member: Member) -> bool:
    """Return whether a commit moves the pin of a cluster, or an earlier rollout has moved it there.

    Pins of other sources than the fleet's repository do not count: they have no commit of it.
    """
    return (member.later or member.earlier_in_fleet is not None) and not member.stays


def stages_with(strategy: Sequence[StageRule], candidates: Sequence[Candidate]) -> frozenset[str]:
    """Return the names of the stages that have some of these clusters."""
    return frozenset(rule.name for rule, _ in _staged(strategy, candidates))


def _held_before(stage: str, names: Sequence[str], held: Held) -> tuple[HeldStage, ...]:
    """Return those of the stages before one of which no cluster gets the commit; ``names`` are in order."""
    before = names[: names.index(stage)] if stage in names else names
    return tuple(held[name] for name in before if name in held)


def _after(platform: LineStages, others: Sequence[Candidate]) -> Mapping[str, tuple[str, ...]]:
    """Return which other clusters each stage of the platform waits for, all of its commit and before it.

    They get it with other changes, or later.
    """
    mixed = [candidate for candidate in others if moves_pin(candidate.member)]
    own = {rule.name: some for rule, some in _staged(platform.strategy, mixed)}
    found, targets = dict[str, tuple[str, ...]](), platform.line.targets
    for place, target in enumerate(targets):
        same = [known.stage for known in targets[:place] if known.commit == target.commit]
        found[target.stage] = tuple(candidate.cluster for stage in same for candidate in own.get(stage, ()))
    return found


def _with_what_goes_on(rollout: Rollout, earlier: Rollout) -> Rollout:
    """Return a rollout with what was decided and read of stages that are to have the same as before.

    In the earlier rollout such a stage may have its plain name. The time of one that has not started is
    counted again where a stage before it gets a cluster, such as by an approval.
    """
    same = dict[str, str]()
    for stage in (stage for stage in rollout.stages if stage.commit):
        for before in earlier.stages:
            if (before.plain, before.commit or earlier.commit) == (stage.plain, stage.commit):
                same[before.name] = stage.name
    placed = {member.cluster: rollout.stages[member.stage].name for member in rollout.members}
    numbers = {stage.name: number for number, stage in enumerate(rollout.stages)}
    stages = list(rollout.stages)
    known = {(member.cluster, member.generation) for member in earlier.members}
    added = {member.stage for member in rollout.members if (member.cluster, member.generation) not in known}
    for number, stage in enumerate(earlier.stages):
        if stage.name in same and (at := earlier.reached(number)):
            place = numbers[same[stage.name]]
            if number in earlier.entered or added.isdisjoint(range(rollout.begins(place), place)):
                stages[place] = replace(stages[place], reached=at)
    kept = {earlier.stages[number].name for number in earlier.entered} & same.keys()
    approved = (
        replace(given, subject=same[given.subject])
        for given in earlier.people.approved
        if given.subject in same
    )
    skipped = (given for given in earlier.people.skipped if placed.get(given.subject, "") in same.values())
    people = replace(rollout.people, approved=tuple(approved), skipped=tuple(skipped))
    return replace(
        rollout,
        stages=tuple(stages),
        people=people,
        entered=tuple(sorted(numbers[same[name]] for name in kept)),
        checked=tuple(
            replace(said, stage=same[said.stage]) for said in earlier.checked if said.stage in same
        ),
    )


def _with_reached(
    stage: Stage, place: int, members: Sequence[Member], as_before: Collection[str], earlier: Rollout | None
) -> Stage:
    """Return a stage that is reached since the earlier rollout reached it, if nothing before it has changed.

    So a commit about something else does not begin the time of a gate again.
    """
    before = [member.cluster for member in members if member.stage < place]
    if earlier is None or stage.commit or not before or not all(name in as_before for name in before):
        return stage
    same = (number for number, other in enumerate(earlier.stages) if other.name == stage.name)
    known = next(same, None)
    return stage if known is None else replace(stage, reached=earlier.reached(known))


def _staged(
    strategy: Sequence[StageRule], candidates: Sequence[Candidate]
) -> Iterator[tuple[StageRule, Sequence[Candidate]]]:
    """Yield the stages that have clusters."""
    left = candidates
    for rule in (*(rule for rule in strategy if rule.groups), StageRule(OTHERS)):
        own = [candidate for candidate in left if rule.selects(*candidate.place)]
        left = _without(left, own)
        if own:
            yield rule, own


def superseded(rollout: Rollout, commit: str, now: datetime) -> Rollout:
    """Return a rollout that a newer commit ends."""
    if rollout.state is not RolloutState.ACTIVE:
        return rollout
    return replace(rollout, state=RolloutState.SUPERSEDED, superseded_by=commit, ended=now)


def as_now(rollout: Rollout, under_way: Collection[str], newest: str) -> Rollout:
    """Return a rollout as superseded that no planner goes on with: only those of ``under_way`` commits go on.

    A planner that ended after it had stored a rollout, and before it had stored that it is under way, has
    started nothing, and the next one knows the rollout before: so it ended when it began.
    """
    if rollout.commit in under_way:
        return rollout
    return superseded(rollout, newest, rollout.began)


def _goes_back(candidate: Candidate, earlier: Member | None) -> bool:
    """Return whether a cluster gets again what it had before the earlier rollout changed it."""
    own = candidate.member
    if earlier is None or not earlier.before or own.uid != earlier.uid:
        return False
    return own.generation > earlier.generation and candidate.digest == earlier.before


def _without(candidates: Sequence[Candidate], those: Sequence[Candidate]) -> Sequence[Candidate]:
    names = {candidate.cluster for candidate in those}
    return [candidate for candidate in candidates if candidate.cluster not in names]


def _grouped(
    rules: Sequence[GroupRule], candidates: Sequence[Candidate]
) -> Iterator[tuple[Group, Sequence[Candidate]]]:
    """Yield the groups of a stage that have clusters; the last one has all that are left.

    A cluster that the commit leaves as it is shows nothing of what that adds to others: it stays in its
    group, and does not count as one of the clusters of that.
    """
    adds = any(candidate.adds and not candidate.member.at_once for candidate in candidates)
    stay = [candidate for candidate in candidates if adds and candidate.left]
    left, groups = sorted(_without(candidates, stay), key=_turn), list[tuple[GroupRule, list[Candidate]]]()
    for number, rule in enumerate(rules):
        last = number == len(rules) - 1
        size = len(left) if last or not rule.clusters else at_most(rule.clusters, len(candidates))
        own, left = left[:size], left[size:]
        if own:
            groups.append((rule, [*own]))
    for candidate in stay:
        groups[min(candidate.member.group, len(groups) - 1)][1].append(candidate)
    for number, (rule, own) in enumerate(groups):
        yield _group(rule, own, first=not number), own


def _turn(candidate: Candidate) -> tuple[bool, bool, bool, bool, str]:
    """Return what clusters are sorted by: one that shows nothing of a change is never the first."""
    at_once = candidate.member.at_once
    return candidate.aside, at_once, not candidate.adds, not candidate.touched, candidate.cluster


def _group(rule: GroupRule, own: Sequence[Candidate], *, first: bool) -> Group:
    """Return a group; the ``first`` of a stage has those that can take part, if any of the stage can.

    A stage passes with a cluster that shows the change, so that one without any waits for one. Changes that
    wait for nobody show nothing, and hold nobody.
    """
    size, able = len(own), any(not candidate.aside for candidate in own)
    waits = first and any(not candidate.member.at_once for candidate in own)
    concurrency = at_most(rule.concurrency, size)
    return Group(
        concurrency,
        at_most(rule.failure_budget, size) if rule.failure_budget else concurrency,
        least=at_least(rule.min_success, size) if rule.min_success else int(able or waits),
        all_able=not rule.min_success,
        soak=rule.soak,
    )
