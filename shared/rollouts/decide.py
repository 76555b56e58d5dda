"""What may start now, and why the others wait.

``decide`` reads the record of a rollout, what is recorded of its clusters, and the time. It starts nothing:
the planner does, and asks again whenever a cluster has ended. In a group, the clusters that change and those
that have failed are never more than its budget, also if all that change fail together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from shared.frozen import dataclass, field, replace
from shared.plan.holds import Closure
from shared.rollouts.rollout import GroupPass, Member, Rollout, RolloutState
from shared.rollouts.rollout_acts import waits_back
from shared.rollouts.waits import (
    CHANGING,
    NOT_STARTED,
    WAITS,
    GroupStanding,
    MemberStanding,
    Seen,
    StartWait,
    WaitReason,
    gate_wait,
    groups_of,
    known_in,
    shut_members,
    shut_wait,
    standing,
)


@dataclass(frozen=True)
class Decision:
    """What a rollout does now: ``rollout`` is its record as it is to be saved.

    ``start`` may start at once, in this order. ``next_at`` is when time alone may change the decision, None
    for never. ``block`` is what keeps the whole rollout from starting anything, None for nothing. ``gated``
    are the stages whose gates wait for checks. ``final`` is what a rollout with a gate after its
    last stage waits for before its end: that gate, or the soak before it; None for nothing.
    """

    rollout: Rollout
    standings: Mapping[str, MemberStanding] = field(default_factory=dict)
    start: tuple[str, ...] = ()
    waits: Mapping[str, StartWait] = field(default_factory=dict)
    next_at: datetime | None = None
    block: StartWait | None = None
    gated: tuple[int, ...] = ()
    final: StartWait | None = None

    @property
    def held(self) -> Mapping[str, StartWait]:
        """The waits without those of clusters that somebody took out: they keep no rollout from its end."""
        return {name: wait for name, wait in self.waits.items() if wait.reason is not WaitReason.SKIPPED}


def decide(rollout: Rollout, seen: Seen, now: datetime) -> Decision:
    """Return what may start now, why the others wait, and the record with the groups that have passed."""
    standings = {member.cluster: standing(member, rollout, seen, now) for member in rollout.members}
    if rollout.state is not RolloutState.ACTIVE:
        return Decision(rollout, standings, waits=_inactive(rollout, standings, seen))
    shut = shut_members(rollout, standings, now)
    busy = {name for name in shut if standings[name] is MemberStanding.BUSY}
    standings |= {name: MemberStanding.ASIDE for name, closure in shut.items() if not closure.staggered}
    groups = groups_of(rollout, standings, seen)
    block = _block(rollout, groups)
    passed, watched, until = list(rollout.passed), list[GroupPass](), None
    since = {(watch.stage, watch.group): watch.at for watch in rollout.watched}
    opened: StartWait | None = None
    begins = {member.stage for member in rollout.members if _is_left(member, standings)}
    gates, opening, gated = list[datetime | None](), list[datetime | None](), list[int]()
    before: dict[tuple[int, int], StartWait | None] = {}
    gate: StartWait | None = None
    waiting: StartWait | None = None
    unready = {member.cluster for member in rollout.members if member.later or _is_unready(member, standings)}
    for part in groups:
        place = (part.stage, part.number)
        gate = gate if part.number else None
        if part.number == 0 and rollout.stages[part.stage].apart:
            opened, waiting = None, waiting or opened
        after_them = rollout.stages[part.stage].after
        if all(standings.get(name) is not MemberStanding.VERIFIED for name in after_them):
            unready |= {*after_them} & shut.keys()
        if others := [name for name in after_them if name in unready or name not in standings]:
            opened = opened or _for_others(rollout, part, others, standings)
        opened = _for_held(rollout, part) or opened
        if opened is None and part.number == 0 and part.stage in begins:
            reached = replace(rollout, passed=tuple(passed)).reached(part.stage) or now
            gate = gate_wait(rollout, part.stage, reached, now)
            stop = _stop(rollout, part, groups, block)
            if gate and gate.reason is WaitReason.CHECK and _is_kept(part, groups, stop):
                own = (member.cluster for member in rollout.members if member.stage == part.stage)
                ends = [shut[name].until for name in own if name in shut]
                opening += ends
                gate = gate if stop or ends else None  # without ends, the stage waits for clusters set aside
            elif gate:
                gates.append(gate.until)
                gated += [part.stage] if gate.reason is WaitReason.CHECK else []
        # The gate of a stage that has passed is for its own clusters: those that catch up.
        opened = opened or (None if rollout.stage_has_passed(part.stage) else gate)
        before[place] = opened or gate
        if rollout.has_passed(*place):
            continue
        unfinished = part.unfinished()
        if unfinished is None:
            watched.append(GroupPass(*place, since.get(place, now)))
        pending = unfinished or part.soaking(watched[-1].at, now)
        opened = opened or pending
        if opened is None:
            passed.append(GroupPass(*place, now))
        elif pending is not None and pending.until is not None:
            until = min(filter(None, (until, pending.until)))
    opened = waiting or opened
    after = replace(rollout, passed=tuple(passed), watched=tuple(watched))
    final = None if rollout.line.lags else _final_wait(after, opened, now)
    gates += [final.until] if final else []
    gated += [len(rollout.stages) - 1] if final and final.reason is WaitReason.CHECK else []
    start, waits = list[str](), dict[str, StartWait]()
    entered = {*rollout.entered}
    at_once = {member.cluster for member in rollout.members if member.at_once}
    for part in groups:
        stops = _stop(rollout, part, groups, block)
        stops = stops or before[part.stage, part.number]
        free, held = _starts(part, stops, shut, busy)
        start += free
        waits |= held
        begun = stops is None and rollout.stages[part.stage].is_gated and not at_once.issuperset(free)
        entered |= {part.stage} if begun else set()
        opening += [shut[name].until for name in held if name in shut and stops is None]
    times = [
        until,
        *gates,
        *opening,
        *(member.suspended_until for member in rollout.members if _aside(member, standings, now)),
    ]
    next_at = min((at for at in times if at is not None and at > now), default=None)
    after = replace(after, entered=tuple(sorted(entered)))
    after = after if start or waits or final else _ended(after, groups, opened, now)
    waits |= _skipped(rollout, seen)
    return Decision(after, standings, tuple(start), waits, next_at, block, tuple(gated), final)


def standing_still(decision: Decision, since: datetime | None) -> Decision:
    """Return what a rollout decides while the fleet.yaml of a newer commit is invalid, ``since`` a time."""
    if decision.rollout.state is not RolloutState.ACTIVE:
        return decision
    wait = StartWait(WaitReason.FLEET_FILE, since=since)
    waits = {**decision.waits, **dict.fromkeys(decision.start, wait)}
    return replace(decision, start=(), waits=waits, block=decision.block or wait)


def _final_wait(rollout: Rollout, opened: StartWait | None, now: datetime) -> StartWait | None:
    """Return what a rollout waits for before its end, None if nothing keeps it from that.

    ``opened`` is what the group after those that have passed waits for, None once every stage has passed.
    """
    last = len(rollout.stages) - 1
    if last < 0 or not rollout.stages[last].is_final:
        return None
    if opened is not None:
        return opened if opened.reason is WaitReason.SOAK else None
    return gate_wait(rollout, last, rollout.reached(last) or now, now)


def _for_others(
    rollout: Rollout, part: GroupStanding, others: Sequence[str], standings: Mapping[str, MemberStanding]
) -> StartWait:
    """Return the wait for clusters of an earlier stage that get the commit with other changes, or later."""
    pin = rollout.stages[part.stage].commit or rollout.commit
    wait = StartWait(WaitReason.STAGE, part.name, 0, tuple(others), since=part.reached, pin=pin)
    members = [member for member in rollout.members if member.cluster in others]
    if not members:
        return wait
    stage, group = members[0].stage, members[0].group
    names = [member.cluster for member in members if (member.stage, member.group) == (stage, group)]
    failed = tuple(name for name in names if standings[name] is MemberStanding.FAILED)
    stuck = MemberStanding.FAILED if failed else None
    wait = replace(wait, stage=rollout.stages[stage].name, group=group, stuck=stuck)
    return replace(wait, clusters=failed or tuple(names))


def _for_held(rollout: Rollout, part: GroupStanding) -> StartWait | None:
    """Return the wait for an earlier stage that does not get the commit at all, None for none."""
    held, pin = rollout.held_before(part.stage), rollout.stages[part.stage].commit or rollout.commit
    if held is None:
        return None
    wait = StartWait(WaitReason.GUARD, held.stage, 0, held.clusters, since=part.reached, pin=pin)
    return replace(wait, guard=held.guard)


def _is_left(member: Member, standings: Mapping[str, MemberStanding]) -> bool:
    """Return whether a member is still to begin with its stage: one without any needs nobody to open it."""
    return standings[member.cluster] in NOT_STARTED and not member.at_once


def _is_unready(member: Member, standings: Mapping[str, MemberStanding]) -> bool:
    """Return whether a member keeps clusters waiting that come after it alone, also by a pin that stays."""
    stays = (MemberStanding.VERIFIED,) if member.stays else ()
    return standings[member.cluster] in (*CHANGING, *WAITS, MemberStanding.FAILED, *stays)


def _aside(member: Member, standings: Mapping[str, MemberStanding], now: datetime) -> bool:
    until = member.suspended_until
    return until is not None and until > now and standings[member.cluster] is MemberStanding.ASIDE


def _inactive(
    rollout: Rollout, standings: Mapping[str, MemberStanding], seen: Seen
) -> Mapping[str, StartWait]:
    """Return the waits of a rollout that is over, for clusters that stay as they are until a commit."""
    if rollout.state is RolloutState.SUPERSEDED:
        return {}
    aborted = rollout.people.aborted
    left = (name for name, standing in standings.items() if aborted and standing in NOT_STARTED)
    since = aborted.at if aborted else None
    waits = {name: StartWait(WaitReason.ABORTED, by=aborted, since=since) for name in left}
    return waits | _skipped(rollout, seen) | dict(waits_back(rollout, seen))


def _block(rollout: Rollout, groups: Iterable[GroupStanding]) -> StartWait | None:
    """Return what keeps the whole rollout from starting anything: its commit, a person, or a spent budget."""
    if rollout.refused is not None:
        return StartWait(WaitReason.STRATEGY, refused=rollout.refused, since=rollout.refused.at)
    if rollout.people.paused is not None:
        return StartWait(WaitReason.PAUSED, by=rollout.people.paused, since=rollout.people.paused.at)
    return _spent(groups)


def _spent(groups: Iterable[GroupStanding]) -> StartWait | None:
    """Return the first failure budget that is spent, None for none."""
    for part in groups:
        failed = part.named(MemberStanding.FAILED)
        if len(failed) >= part.rule.budget:
            return StartWait(WaitReason.BUDGET, part.name, part.number, failed, since=part.spent)
    return None


def _stop(
    rollout: Rollout, part: GroupStanding, groups: Iterable[GroupStanding], block: StartWait | None
) -> StartWait | None:
    """Return what of all that blocks the rollout stops a group; no failure of those from which it is apart.

    A pause of the rollout that was superseded stops neither clusters that go back nor those that it does not
    hold. The former wait for no failure of others, the latter for failures among themselves.
    """
    stage, first = rollout.stages[part.stage], rollout.begins(part.stage)
    if block is not None and block.reason is WaitReason.BUDGET:
        block = _spent(group for group in groups if rollout.begins(group.stage) == first)
    if block is None or not (stage.back or stage.ahead):
        return block
    if block.reason is WaitReason.STRATEGY or (
        block.reason is WaitReason.PAUSED and not rollout.people.inherited
    ):
        return block
    return None if stage.back else _spent(group for group in groups if rollout.stages[group.stage].ahead)


def _is_kept(part: GroupStanding, groups: Iterable[GroupStanding], stop: StartWait | None) -> bool:
    """Return whether nothing of a stage, whose first group this is, can begin now: also not by its checks.

    They are not read then: the answers would be old once it begins.
    """
    parts = (group for group in groups if group.stage == part.stage and group.unfinished() is not None)
    following = next(parts, None)
    return stop is not None or (following is not None and not following.named(*WAITS))


def _starts(
    part: GroupStanding, stop: StartWait | None, shut: Mapping[str, Closure], busy: Collection[str]
) -> tuple[Sequence[str], Mapping[str, StartWait]]:
    """Return the clusters of a group that may start, and why its others wait; ``stop`` keeps all from it.

    A busy cluster takes no room that it does not have already, and has that while it is ``shut`` out, too.
    One that waits for nobody takes room from the others, unless its suspension has it wait afterwards.
    """
    rule, failed = part.rule, part.named(MemberStanding.FAILED)
    flying = [*part.named(MemberStanding.BUSY, *CHANGING)]
    flying += [name for name in part.named(MemberStanding.ASIDE) if name in busy]
    at_once = {member.cluster for member in part.members if member.at_once and member.suspended_until is None}
    flying += [name for name in part.named(MemberStanding.WAITING) if name in at_once]
    room = max(0, min(rule.concurrency - len(flying), rule.budget - len(flying) - len(failed)))
    start, waits = list[str](), dict[str, StartWait]()
    full = StartWait(WaitReason.CONCURRENCY, part.name, part.number, since=part.reached)
    for member in part.members:
        stands = part.standings[member.cluster]
        if stands is MemberStanding.ASIDE:
            found = shut.get(member.cluster)
            if found is None:
                since = max(filter(None, (part.reached, part.failed.get(member.cluster))))
                waits[member.cluster] = StartWait(WaitReason.ASIDE, part.name, part.number, since=since)
            else:
                waits[member.cluster] = shut_wait(part.name, part.number, found, part.reached)
        elif stands not in (MemberStanding.WAITING, MemberStanding.BUSY):
            continue
        elif member.at_once:
            start.append(member.cluster)
        elif stop:
            waits[member.cluster] = stop
        elif member.cluster in shut:
            waits[member.cluster] = shut_wait(part.name, part.number, shut[member.cluster], part.reached)
        elif stands is MemberStanding.BUSY or room:
            room -= stands is not MemberStanding.BUSY
            start.append(member.cluster)
        else:
            waits[member.cluster] = full
    taken = {*flying, *failed, *start}
    full = replace(full, clusters=tuple(member.cluster for member in part.members if member.cluster in taken))
    return start, {
        name: full if wait.reason is WaitReason.CONCURRENCY else wait for name, wait in waits.items()
    }


def _skipped(rollout: Rollout, seen: Seen) -> dict[str, StartWait]:
    """Return the waits of clusters that somebody took out before they started: for a newer commit."""
    by = {decision.subject: decision for decision in rollout.people.skipped}
    left = (member for member in rollout.members if member.cluster in by)
    return {
        member.cluster: StartWait(WaitReason.SKIPPED, by=by[member.cluster], since=by[member.cluster].at)
        for member in left
        if (record := known_in(seen, member.cluster)) and record.generation < member.generation
    }


def _ended(
    rollout: Rollout, groups: Sequence[GroupStanding], opened: StartWait | None, now: datetime
) -> Rollout:
    """Return the rollout as completed once none of its clusters waits or changes, or is watched."""
    if rollout.line.lags or any(part.named(MemberStanding.BUSY, *CHANGING) for part in groups):
        return rollout
    if opened is not None and opened.reason is WaitReason.SOAK:
        return rollout
    failures = tuple(name for part in groups for name in part.named(MemberStanding.FAILED))
    if not failures and len(rollout.passed) < len(groups):
        return rollout
    return replace(rollout, state=RolloutState.COMPLETED, failures=failures, ended=now)
