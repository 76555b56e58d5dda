"""Rollouts: which clusters of a plan start now, and what changes that between two plans.

What of a plan no rollout has, and a freeze or a change window keeps from starting, is an item on hold.

The planner decides whenever it hands a plan over: from the record of the rollout, and from the records of
clusters that it has read after the last check for another planner. Who has started is in the cluster's record
alone. So a crash at any line leaves nothing that counts a cluster twice, or not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import Enum
from operator import attrgetter

from shared.app.outbox import send
from shared.app.planner.gate_checks import read_selection, with_checks
from shared.app.planner.pins import move_pins_back
from shared.app.planner.plan_problems import answer_act
from shared.app.records import again
from shared.app.repository import PlanInputs
from shared.cluster.forms import RecordList
from shared.cluster.queues.message_parts import RolloutAct
from shared.cluster.queues.messages import PromoteRequest, ReportRequest, RolloutRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.summary import summary_of
from shared.frozen import dataclass, replace
from shared.plan.plan import Action, Item, Plan
from shared.plan.retained import with_versions_that_run
from shared.ports import FleetRecord, Ports
from shared.ports.state import Override
from shared.rollouts.begin import UNDER_WAY, superseded
from shared.rollouts.candidates import NOTHING, seen_in, updates_of
from shared.rollouts.decide import Decision, decide
from shared.rollouts.estimate import with_completed
from shared.rollouts.line import is_to_split, moves
from shared.rollouts.of_plan import rollout_of_plan, with_holds
from shared.rollouts.rollout import (
    Decisions,
    Rollout,
    RolloutState,
    StageDecision,
)
from shared.rollouts.rollout_acts import ActKind, act_on, is_as_asked
from shared.rollouts.shut import NOTHING as ALWAYS_OPEN
from shared.rollouts.shut import calendar_of
from shared.rollouts.waits import Seen

log = logging.getLogger(__name__)

MOST_AT_A_TIME = 200
"""How many clusters are planned by themselves; their records and manifests are read one by one."""
READ_ALONE = 20
"""Up to so many clusters of a rollout are read by themselves, and not with the whole fleet."""
LATER = timedelta(seconds=30)
"""How long after an act that meets a hand-over, which is nearly over then, pins go back."""
_CURRENT = (RolloutState.ACTIVE, RolloutState.ABORTED)


@dataclass(frozen=True)
class StagedPlan:
    """What of a plan starts now: the plan with what waits on hold, and the fleet's record with what holds it.

    The changes of the ``held`` clusters do not start. ``changed`` are the rollouts to save, in their order,
    and ``times`` are when what may start is decided again.
    """

    plan: Plan
    fleet: FleetRecord
    held: frozenset[str] = frozenset()
    changed: tuple[Rollout, ...] = ()
    times: tuple[datetime, ...] = ()


def stage(
    plan: Plan, earlier: Plan | None, inputs: PlanInputs, fleet: FleetRecord, ports: Ports, *, continues: bool
) -> StagedPlan:
    """Return what of a plan starts now; it reads what is stored, and writes nothing.

    ``earlier`` is the plan of this commit that was saved before: where a rollout ``continues``, it starts the
    failed jobs again that waited for that in this one, and no others. The records in ``inputs`` were read
    after the check that no other planner has started.
    """
    known = inputs.desired.guards is not None  # an invalid fleet.yaml ends no freeze
    calendar = calendar_of(inputs.desired.rollout) if known else fleet.rules.calendar
    fleet = replace(fleet, rules=replace(fleet.rules, calendar=calendar))
    if fleet.closed.override is not None and fleet.closed.override.commit == plan.commit:
        calendar = ALWAYS_OPEN
    retried = _retried(plan, earlier) if continues else frozenset[str]()
    clusters, now = inputs.desired.clusters, ports.clock()
    shut = with_holds(plan, clusters, inputs.records, calendar, now, unheld=retried)
    ends = (item.hold.until for item in shut.items if item.hold is not None)
    opens = min((at for at in ends if at is not None), default=None)
    fleet = replace(fleet, closed=replace(fleet.closed, opens=opens))
    resumed = with_versions_that_run(shut.resume(earlier), inputs.records)
    staged = _of_rollout(StagedPlan(resumed, fleet), inputs, ports)
    held = staged.held | (_retried(staged.plan, earlier) if continues else frozenset())
    return replace(staged, held=held, times=(*filter(None, [opens]), *staged.times))


def _retried(plan: Plan, earlier: Plan | None) -> frozenset[str]:
    """Return the clusters whose failed jobs a commit starts again, but for those that waited for that.

    The next part of a rollout does not start them.
    """
    waited = (
        {item.cluster for item in earlier.items if item.hold and item.hold.is_of_retry} if earlier else ()
    )
    retries = (item.cluster for item in plan.items if item.action is Action.RETRY)
    return frozenset(name for name in retries if name not in waited)


def _of_rollout(staged: StagedPlan, inputs: PlanInputs, ports: Ports) -> StagedPlan:
    """Return what starts now with the rollout of the plan, which begins or goes on."""
    plan, fleet, desired = staged.plan, staged.fleet, inputs.desired
    written, now = desired.rollout, ports.clock()
    earlier = ports.state.rollout(fleet.rollout) if fleet.rollout else None
    if desired.guards is None:  # fleet.yaml is invalid, so that no cluster changes
        return replace(staged, fleet=replace(fleet, last_valid=fleet.last_valid or fleet.commit))
    updates = updates_of(plan)
    sources = tuple(f"{known.key} {known.pulls}" for known in fleet.origin.followed)
    stored = ports.state.rollout(plan.commit) if written else None
    known = _of_sources(stored, sources, updates)
    current = known if known is not None and known.state is not RolloutState.SUPERSEDED else None
    valid = replace(fleet, rollout="", last_valid="")
    if written is None or not (updates or current or (earlier and earlier.state in UNDER_WAY)):
        return replace(staged, fleet=valid, changed=_superseded(earlier, plan.commit, now))
    changed: tuple[Rollout, ...] = ()
    same = known is not None and known.line.commits == inputs.line.commits
    same = same and known is not None and known.line.refused == inputs.line.refused
    same = same and known is not None and not is_to_split(known)
    if known is not None and same and _covers(known, updates):
        rollout = known
    else:
        asked = read_selection(plan.commit, written, fleet, ports) if updates and not current else NOTHING
        before = earlier or current
        changed, its_plan = _superseded(before, plan.commit, now), _plan_of(before, ports)
        rollout = rollout_of_plan(
            plan,
            desired,
            written,
            inputs.records,
            now,
            before,
            its_plan,
            current,
            asked,
            inputs.line,
            inputs.platform.earlier.later,
        )
        if not (rollout.members or current):  # nothing that the one before has started is left
            return replace(staged, fleet=valid, changed=changed)
        since = current.since if current else _since(before, inputs.records, fleet, ports)
        etag = known.etag if known else ""
        rollout = replace(rollout, since=since, sources=sources, etag=etag)
    decision = decide(rollout, seen_in(rollout, inputs.records, inputs.unreadable), now)
    after = decision.rollout
    log.info("rollout of %s: %d start, %d wait", plan.commit[:8], len(decision.start), len(decision.waits))
    return replace(
        staged,
        fleet=replace(valid, rollout=plan.commit if after.state in _CURRENT else ""),
        held=frozenset(item.cluster for item in updates) - {*decision.start},
        changed=changed if after == stored else (*changed, after),
        times=tuple(filter(None, (decision.next_at, now if is_to_split(after) else None))),
    )


def _of_sources(known: Rollout | None, sources: tuple[str, ...], updates: Collection[Item]) -> Rollout | None:
    """Return the rollout of a commit without what people and checks said of what a source had before.

    A pause and an abort stay: nobody knows that what moved is what they were about.
    """
    if known is None or known.sources == sources or not updates:
        return known
    said = known.people
    people = Decisions(said.paused, said.inherited, aborted=said.aborted, back=said.back)
    return replace(known, people=people, checked=(), entered=(), passed=(), watched=(), sources=sources)


def _since(
    before: Rollout | None, records: Mapping[str, ClusterRecord], fleet: FleetRecord, ports: Ports
) -> str:
    """Return after which commit what a new rollout brings begins; ``before`` is the one that it supersedes.

    The newest commit may have left clusters as they were: its rollout did not complete, or without them.
    """
    newest = fleet.last_valid or fleet.commit
    last = before or (ports.state.rollout(newest) if newest else None)
    if last is not None and (last.state is not RolloutState.COMPLETED or _waits_for(last, records)):
        return last.since or newest
    return newest


def _superseded(earlier: Rollout | None, commit: str, now: datetime) -> tuple[Rollout, ...]:
    """Return the rollout that a commit ends, nothing where it ends none."""
    ends = earlier is not None and earlier.commit != commit and earlier.state is RolloutState.ACTIVE
    return (superseded(earlier, commit, now),) if ends and earlier else ()


def _waits_for(rollout: Rollout, records: Mapping[str, ClusterRecord]) -> bool:
    """Return whether a rollout has one of these clusters, and has not given it its generation."""
    own = ((member, records[member.cluster]) for member in rollout.members if member.cluster in records)
    return any(record.uid == member.uid and record.generation < member.generation for member, record in own)


def _covers(rollout: Rollout, updates: Collection[Item]) -> bool:
    """Return whether a rollout has every update of its plan; one that was superseded has none any more."""
    members = {(member.cluster, member.uid, member.generation) for member in rollout.members}
    same = all((item.cluster, item.uid, item.generation) in members for item in updates)
    return same and rollout.state is not RolloutState.SUPERSEDED


def _plan_of(rollout: Rollout | None, ports: Ports) -> Plan | None:
    found = ports.state.plan(rollout.commit) if rollout else None
    return found.plan if found else None


@dataclass(frozen=True)
class RolloutStart:
    """What a rollout starts now; ``records`` are those of the clusters that it starts."""

    known: Rollout
    decision: Decision
    records: Mapping[str, ClusterRecord]


def starting_of(commit: str, ports: Ports) -> RolloutStart | None:
    """Return which clusters of a rollout start now; None for none, and for more than ``MOST_AT_A_TIME``.

    Called after the check that no other planner has started. What starts is decided by its record itself.
    """
    known = ports.state.rollout(commit)
    if known is None:
        return None
    seen = _read_members(known, ports)
    decision = decide(known, seen, ports.clock())
    if len(decision.start) > MOST_AT_A_TIME:
        return None
    records = {record.name: record for record in ports.state.clusters_named(decision.start)}
    newer = {name: summary_of(record) for name, record in records.items()}
    if any(seen.get(name) != summary for name, summary in newer.items()):
        decision = decide(known, {**seen, **newer}, ports.clock())
    if not decision.start or not records.keys() >= {*decision.start}:
        return None
    return RolloutStart(known, decision, {name: records[name] for name in decision.start})


def _read_members(rollout: Rollout, ports: Ports) -> Seen:
    """Return what is recorded of the clusters of a rollout; where they are many, also of all others."""
    if len(rollout.members) > READ_ALONE:
        return ports.state.summaries().keyed(attrgetter("name"))
    listed = ports.state.clusters_named([member.cluster for member in rollout.members])
    return RecordList(map(summary_of, listed), listed.unreadable).keyed(attrgetter("name"))


# What lets clusters start between two plans: an act, a time, or the end of a job.
#
# The end of a job asks for the next decision by a message in the planner's session, and so does the end of a
# soak; a timer asks too, for messages that were lost.


class PlanDue(Enum):
    """Which plan is due: none, that of the clusters that may start, or the whole one."""

    NONE = 0
    SOME = 1
    WHOLE = 2


def advance(act: RolloutAct | None, ports: Ports) -> PlanDue:
    """Carry out what a person decided, and return which plan is due.

    In a pause none may, and no pin goes back. A plan that is being handed over decides by itself. Checks of
    gates are read here alone.
    """
    fleet = ports.state.fleet()
    if act is not None:
        fleet = _act(act, fleet, ports)
    if fleet.paused(ports.clock()):
        return PlanDue.NONE
    if fleet.planning:
        _ask_at(ports.clock() + LATER if act is not None and act.kind == ActKind.BACK.value else None, ports)
        return PlanDue.NONE
    opened = PlanDue.SOME if _lets_items_start(act, fleet, ports) else PlanDue.NONE
    rollout = ports.state.rollout(fleet.rollout) if fleet.rollout else None
    if rollout is None:
        return opened
    seen = _read_members(rollout, ports)
    move_pins_back(rollout, seen, fleet, ports)
    decision = decide(rollout, seen, ports.clock())
    checked = decision.rollout
    for gated in decision.gated:
        checked = with_checks(checked, gated, ports)
    if decision.gated:
        decision = decide(checked, seen, ports.clock())
    if decision.rollout != rollout:
        ports.state.save_rollout(decision.rollout)
        send(ReportRequest(), ports)
        if fleet.rules.proposes:
            send(PromoteRequest(), ports)
    if decision.rollout.state not in _CURRENT:
        durations = with_completed(fleet.durations, decision.rollout, seen)
        ports.state.save_fleet(replace(fleet, rollout="", durations=durations))
    _ask_at(decision.next_at, ports)
    if decision.start and fleet.stands_still:
        log.info("%s starts nothing: fleet.yaml of %s is invalid", fleet.rollout[:8], fleet.commit[:8])
        return opened
    if not fleet.stands_still and moves(decision.rollout, seen, ports.clock()):
        return PlanDue.WHOLE
    return PlanDue.SOME if decision.start else opened


def _lets_items_start(act: RolloutAct | None, fleet: FleetRecord, ports: Ports) -> bool:
    """Return whether what a freeze, a window or a suspension holds may start; ask again at its end."""
    if act is not None and act.kind == ActKind.OVERRIDE.value:
        return fleet.closed.override is not None and fleet.closed.override.commit == fleet.commit
    opened = fleet.closed.lets_start(ports.clock())
    if not opened:
        _ask_at(fleet.closed.opens, ports)
    return opened


def _act(act: RolloutAct, fleet: FleetRecord, ports: Ports) -> FleetRecord:
    """Save what a person decided; a planner that stands still meanwhile then starts nothing more.

    An override is of the items of its commit, too, which may have no rollout.
    """
    overrides = ActKind(act.kind) is ActKind.OVERRIDE
    overridden = (
        overrides and fleet.closed.override is not None and fleet.closed.override.commit == act.commit
    )
    if overrides and not overridden and act.commit in (fleet.planning, fleet.commit):
        override = Override(act.commit, act.by, act.at, act.reason)
        fleet, overridden = (
            ports.state.save_fleet(replace(fleet, closed=replace(fleet.closed, override=override))),
            True,
        )
    if not _act_on_rollout(act, ports, answered=overridden):
        return fleet
    send(ReportRequest(), ports)
    return ports.state.save_fleet(fleet)


@again
def _act_on_rollout(act: RolloutAct, ports: Ports, *, answered: bool) -> bool:
    """Return whether a rollout is as an act asks for; ``answered``: one without effect needs no answer."""
    kind, decided = ActKind(act.kind), StageDecision(act.by, act.at, act.reason, act.subject, act.person)
    rollout = ports.state.rollout(act.commit)
    after = act_on(rollout, kind, decided, act.lifts) if rollout else None
    if after is not None and after != rollout:
        ports.state.save_rollout(after)
        return True
    as_asked = rollout is not None and is_as_asked(rollout, kind, decided, act.lifts)
    if not (as_asked or answered):
        answer_act(act, rollout, ports)
    return as_asked


def _ask_at(at: datetime | None, ports: Ports) -> None:
    if at is not None:
        send(RolloutRequest(), ports, at=at)
