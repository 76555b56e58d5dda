"""Rollouts: how far each is, what every cluster waits for, and what people decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from operator import attrgetter

from shared.app.api import schema
from shared.app.api.access import Role
from shared.app.api.parts import FIRST_PAGE, ClusterPage
from shared.app.api.projection import iso, projected
from shared.cluster.failures.errors import Unreadable
from shared.cluster.forms import RecordList
from shared.cluster.reporting.summary import ClusterSummary
from shared.ports import FleetRecord, Ports
from shared.rollouts.begin import as_now
from shared.rollouts.decide import Decision, decide, standing_still
from shared.rollouts.estimate import Estimate, GroupWork, describe_estimate, estimate
from shared.rollouts.report import describe, describe_wait, remedy, state_of
from shared.rollouts.rollout import CheckState, Rollout, RolloutState
from shared.rollouts.rollout_acts import ActKind
from shared.rollouts.strategy import CheckKind
from shared.rollouts.waits import MemberStanding, StartWait, WaitReason, checks_due

_OF_A_GROUP = (
    WaitReason.STAGE,
    WaitReason.SOAK,
    WaitReason.CONCURRENCY,
    WaitReason.BUDGET,
    WaitReason.ASIDE,
    WaitReason.NEXT,
    WaitReason.WINDOW,
    WaitReason.FREEZE,
)

FAILURES_SHOWN = 100
PACE_PARTS = 30
"""In so many parts of equal length it is shown when clusters became ready."""
_UNFINISHED = (MemberStanding.WAITING, MemberStanding.BUSY, MemberStanding.IN_FLIGHT, MemberStanding.UNKNOWN)


def rollouts_view(ports: Ports) -> schema.RolloutsView:
    """Return the rollouts that are stored, newest first."""
    fleet, summaries = ports.state.fleet(), ports.state.summaries()
    decided = (_decided(rollout, fleet, summaries, ports.clock()) for rollout in ports.state.rollouts())
    return {"rollouts": [_summary(decision, fleet.rollout) for decision in decided]}


def shown(rollout: Rollout, fleet: FleetRecord) -> Rollout:
    """Return a rollout as it is now by the record of its fleet."""
    return as_now(rollout, (fleet.rollout, fleet.planning), fleet.planning or fleet.commit)


def rollout_view(commit: str, ports: Ports, page: ClusterPage = FIRST_PAGE) -> schema.RolloutView | None:
    """Return a rollout with a page of the clusters that do not start now; None for an unknown one."""
    stored = ports.state.rollout(commit)
    if stored is None:
        return None
    fleet, now = ports.state.fleet(), ports.clock()
    summaries = ports.state.summaries()
    decision = _decided(stored, fleet, summaries, now)
    rollout = decision.rollout
    known = {summary.name: summary for summary in summaries}
    part = _part_of(rollout, now)
    names = [name for name in sorted(decision.waits) if name > page.after][: page.limit]
    return {
        **_summary(decision, fleet.rollout),
        "estimate": _estimate(decision, fleet, now),
        "paceSeconds": int(part.total_seconds()),
        "stages": [
            _stage(decision, number, now, _pace(decision, _members(rollout, number), known, part))
            for number in range(len(rollout.stages))
        ],
        "failures": _failures(decision, known),
        "failureClasses": _failure_classes(decision, known, part),
        "decisions": list(_decisions(rollout)),
        "waiting": [waiting_cluster(name, decision.waits[name], commit) for name in names],
        "next": page.next(names),
    }


def waits_now(fleet: FleetRecord, ports: Ports) -> tuple[str, Decision] | None:
    """Return the commit of the rollout that is under way and what it decides now; None for none.

    Where none is, it is that of the newest commit, if somebody took clusters out of it. Of one whose record
    cannot be read nothing is known here: the health of the app names it.
    """
    try:
        rollout = ports.state.rollout(fleet.rollout or fleet.commit)
    except Unreadable:
        return None
    if rollout is None or not (fleet.rollout or rollout.people.skipped):
        return None
    return rollout.commit, _decided(rollout, fleet, ports.state.summaries(), ports.clock())


def wait_of(name: str, decision: Decision) -> StartWait | None:
    """Return why a cluster has not started, None for one that has, or that the rollout does not change."""
    if name not in decision.start:
        return decision.waits.get(name)
    rollout = decision.rollout
    member = next(member for member in rollout.members if member.cluster == name)
    since = rollout.follows(member.stage, member.group)
    return StartWait(WaitReason.NEXT, rollout.stages[member.stage].name, member.group, since=since)


def waiting_cluster(name: str, wait: StartWait, commit: str) -> schema.WaitingCluster:
    """Return why a cluster does not start now."""
    return projected(
        schema.WaitingCluster,
        wait,
        cluster=name,
        group=wait.group + 1 if wait.reason in _OF_A_GROUP else None,
        waits=describe_wait(wait, commit),
        suggestedAction=remedy(wait),
        owner=wait.by.by if wait.by else "",
        because=wait.by.reason if wait.by else "",
    )


def waiting_now(name: str, fleet: FleetRecord, ports: Ports) -> schema.WaitingCluster | None:
    """Return why the rollout that is under way has not changed a cluster yet."""
    now = waits_now(fleet, ports)
    wait = wait_of(name, now[1]) if now else None
    return waiting_cluster(name, wait, now[0]) if now and wait else None


def _decided(
    rollout: Rollout, fleet: FleetRecord, summaries: RecordList[ClusterSummary], now: datetime
) -> Decision:
    """Return what a rollout decides now; nothing is saved, and nothing starts."""
    decision = decide(shown(rollout, fleet), summaries.keyed(attrgetter("name")), now)
    stands_still = fleet.stands_still and rollout.commit == fleet.rollout
    return standing_still(decision, fleet.at) if stands_still else decision


def _summary(decision: Decision, under_way: str) -> schema.RolloutSummary:
    """Return how far a rollout is now: the planner stores a few seconds later that it has ended."""
    rollout = decision.rollout
    return projected(
        schema.RolloutSummary,
        rollout,
        rollout.choice,
        strategy=rollout.choice.name,
        state=state_of(rollout, decision),
        progress=describe(rollout, decision),
        underWay=rollout.commit == under_way,
    )


def _part_of(rollout: Rollout, now: datetime) -> timedelta:
    """Return how long the parts of the time since the beginning are, in full minutes; 0 for an ended one."""
    if rollout.state is not RolloutState.ACTIVE:
        return timedelta(0)
    return (now - rollout.began) // timedelta(minutes=PACE_PARTS) * timedelta(minutes=1) + timedelta(
        minutes=1
    )


def _failure_classes(
    decision: Decision, known: Mapping[str, ClusterSummary], part: timedelta
) -> list[schema.RolloutFailureClass]:
    """Return the failed clusters by the class of their error, the most frequent one first."""
    classes: dict[str, list[str]] = {}
    for name, standing in sorted(decision.standings.items()):
        if standing is MemberStanding.FAILED:
            found = known.get(name)
            kind = (found.cause.kind or found.finding) if found else ""
            classes.setdefault(kind or "unknown", []).append(name)
    return [
        {"name": kind, "clusterCount": len(names), "pace": _pace(decision, names, known, part)}
        for kind, names in sorted(classes.items(), key=lambda item: -len(item[1]))
    ]


def _members(rollout: Rollout, stage: int) -> list[str]:
    return [member.cluster for member in rollout.members if member.stage == stage]


def _pace(
    decision: Decision, names: Iterable[str], known: Mapping[str, ClusterSummary], part: timedelta
) -> list[schema.RolloutPace]:
    """Return when some clusters became ready or failed, by what their records have of it now."""
    rollout, ready, failed = decision.rollout, Counter[int](), Counter[int]()
    for name in names if part else ():
        found = known.get(name)
        if found is None:
            continue
        standing = decision.standings[name]
        for counts, wanted, at in (
            (ready, MemberStanding.VERIFIED, found.times.ready_since),
            (failed, MemberStanding.FAILED, found.times.failed_since),
        ):
            if standing is wanted and at is not None and at >= rollout.began:
                counts[(at - rollout.began) // part] += 1
    if not ready and not failed:
        return []
    return [{"ready": ready[place], "failed": failed[place]} for place in range(PACE_PARTS)]


def _stage(
    decision: Decision, number: int, now: datetime, pace: list[schema.RolloutPace]
) -> schema.RolloutStage:
    rollout = decision.rollout
    stage = rollout.stages[number]
    missing = decision.rollout.missing_approvals(number, now)
    approval = ("needed" if missing else "given") if stage.gate.approvers else ""
    groups = [_group(rollout, decision, number, group) for group in range(len(stage.groups))]
    return {
        "name": stage.name,
        "approval": approval,
        "approvalsMissing": missing,
        "gate": _gate(decision, number, now) if stage.is_gated else None,
        "groups": groups,
        "pace": pace,
    }


def _estimate(decision: Decision, fleet: FleetRecord, now: datetime) -> schema.RolloutEstimate | None:
    """Return how long what is left takes, as far as nothing but the clusters and soaks is waited for."""
    rollout = decision.rollout
    if rollout.state is not RolloutState.ACTIVE:
        return None
    return as_object(estimate(rollout.choice.kind, _left(decision, now), fleet.durations))


def as_object(found: Estimate) -> schema.RolloutEstimate:
    """Return an estimate as the API and the command show it."""
    return {
        "kind": found.kind,
        "lowSeconds": found.low,
        "likelySeconds": found.likely,
        "highSeconds": found.high,
        "samples": found.samples,
        "text": describe_estimate(found),
    }


def _left(decision: Decision, now: datetime) -> Iterator[GroupWork]:
    rollout = decision.rollout
    watched = {(watch.stage, watch.group): watch.at for watch in rollout.watched}
    for stage, number in rollout.places():
        if rollout.has_passed(stage, number):
            continue
        rule = rollout.stages[stage].groups[number]
        own = (member for member in rollout.members if (member.stage, member.group) == (stage, number))
        left = sum(decision.standings[member.cluster] in _UNFINISHED for member in own)
        soaked = now - watched.get((stage, number), now)
        yield GroupWork(left, rule.bound, max(timedelta(0), rule.soak - soaked))


def _gate(decision: Decision, number: int, now: datetime) -> schema.RolloutGate:
    rollout = decision.rollout
    stage, reached = rollout.stages[number], rollout.reached(number)
    opens = stage.gate.opens(reached) if reached else stage.gate.not_before
    return projected(
        schema.RolloutGate,
        stage.gate,
        reachedAt=reached,
        opensAt=opens,
        role=(stage.gate.role or Role.APPROVER) if stage.gate.approvers else "",
        entered=number in rollout.entered,
        checks=_checks(decision, number, now),
    )


def _checks(decision: Decision, number: int, now: datetime) -> Iterator[schema.RolloutCheck]:
    """Yield the checks of a gate with what each said last."""
    rollout = decision.rollout
    stage, reached = rollout.stages[number], rollout.reached(number)
    said = rollout.said(stage.name)
    times = checks_due(rollout, number, reached, now) if reached and number in decision.gated else {}
    for check in stage.gate.checks:
        found, at = said.get(check.name), times.get(check.name)
        yield {
            "name": check.name,
            "kind": (check.kind if check.asks else CheckKind.RUN).value,
            "state": (found.state if found else CheckState.MISSING).value,
            "answer": found.detail if found else "",
            "expected": check.expected,
            "askedAt": iso(found.at if found else None),
            "nextAt": iso(at),
            "consecutiveSuccesses": found.successes if found else 0,
            "consecutiveSuccessLimit": check.successes if check.asks else None,
            "failures": found.failures if found else 0,
            "failureLimit": check.failures if check.asks else None,
        }


def _group(rollout: Rollout, decision: Decision, stage: int, number: int) -> schema.RolloutGroup:
    rule = rollout.stages[stage].groups[number]
    own = [member.cluster for member in rollout.members if (member.stage, member.group) == (stage, number)]
    counts = Counter(decision.standings[name] for name in own)
    passed = next((p.at for p in decision.rollout.passed if (p.stage, p.group) == (stage, number)), None)
    return {
        "maxConcurrency": rule.concurrency,
        "failureBudget": rule.budget,
        "minSuccess": rule.least,
        "soakSeconds": int(rule.soak.total_seconds()),
        "clusters": len(own) - counts[MemberStanding.OUT],
        "ready": counts[MemberStanding.VERIFIED],
        "changing": counts[MemberStanding.IN_FLIGHT] + counts[MemberStanding.BUSY],
        "failed": [name for name in own if decision.standings[name] is MemberStanding.FAILED],
        "waiting": counts[MemberStanding.WAITING],
        "setAside": [name for name in own if decision.standings[name] is MemberStanding.ASIDE],
        "passedAt": iso(passed),
    }


def _failures(decision: Decision, summaries: Mapping[str, ClusterSummary]) -> list[schema.RolloutFailure]:
    """Return the clusters that have failed, by stage and name, with what their summaries say."""
    stages = decision.rollout.stages
    members = sorted(decision.rollout.members, key=lambda member: (member.stage, member.cluster))
    failed = [m for m in members if decision.standings[m.cluster] is MemberStanding.FAILED]
    return [
        {
            "cluster": member.cluster,
            "stage": stages[member.stage].name,
            "reason": found.reason or found.finding if found else "",
            "since": iso(found.times.failed_since) if found else None,
        }
        for member in failed[:FAILURES_SHOWN]
        for found in [summaries.get(member.cluster)]
    ]


def _decisions(rollout: Rollout) -> Iterator[schema.RolloutDecision]:
    """Yield what people decided and what still holds, oldest first."""
    decided = [(ActKind.APPROVE, decision) for decision in rollout.people.approved]
    decided += [(ActKind.SKIP, decision) for decision in rollout.people.skipped]
    people = rollout.people
    once = {ActKind.PAUSE: people.paused, ActKind.ABORT: people.aborted, ActKind.BACK: people.back}
    once[ActKind.OVERRIDE] = people.overridden
    decided += [(act, decision) for act, decision in once.items() if decision]
    for act, decision in sorted(decided, key=lambda pair: pair[1].at):
        yield projected(schema.RolloutDecision, decision, act=act.value)
