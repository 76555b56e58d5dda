"""Fleets whose changes go through stages, and operators who approve, pause, abort and take clusters out.

At the end they let everything continue: only they can.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from urllib.parse import urlsplit

from shared.app.api.acts.rollout import act_on_rollout
from shared.cluster.failures.errors import ReconcileError, Unavailable
from shared.rollouts.rollout import Rollout, RolloutCalendar, RolloutState
from shared.rollouts.rollout_acts import ActKind
from shared.rollouts.strategy import CheckKind
from shared.rollouts.waits import spent_checks
from simulation.actors.blocked_upgrades import BlockedUpgrades
from simulation.actors.kinds import ROLLOUTS
from simulation.actors.monitor_answers import ALARMS, KINDS, alarm, alerted, answer, measured
from simulation.actors.shut_starts import ShutStarts
from simulation.actors.stage_approvers import StageApprovers
from simulation.actors.stopped_members import StoppedMembers
from simulation.desired_state import DesiredCluster, RequestedFleet
from simulation.event_loop import EventLoop
from simulation.operators import Operators
from simulation.staging import (
    CHECK,
    ENDPOINT,
    FINAL,
    MISTYPED,
    SELECTED,
    USUAL,
    Shut,
    StagedGroup,
    StagedStage,
    Staging,
)

ACTS = (4, 10)
DEFAULT_SHARE = 0.1
"""In how many seeds the fleets have no stages of their own, and so the default."""
SOAKS = (0, 0, 20, 120)
PEOPLE = ("somebody", "another one")
SUCCEEDING, SUCCESSES = 0.3, ("0", "1", "2", "50%", "67%", "100%")
"""How many groups say how many of their clusters must be Ready, and what they say."""
CHECKED = 0.15
"""How many stages wait for a check run or an endpoint."""
ASKED = 0.5
"""How many of these wait for an endpoint."""
ANSWERS = (200, 200, 500, Unavailable("shop.example.com does not answer"))
LAST, AFTER_ALL = 0.4, (0, 2, 10)
"""How many fleets with stages have a gate after the last one, and for how many minutes it waits."""
GATED, MINUTES = 0.3, (1, 3, 15)
"""How many stages wait for a time, and for how many minutes."""
SELECTING = 0.4
"""In how many fleets without windows commits may select other stages."""
SOON, SOON_MINUTES = 0.6, (3, 9)
"""How many stages that are shut at a time are so within minutes, and within which."""
APPLIES_TO = (USUAL, USUAL, (*USUAL, "creations"), ("deletes",), ("creations", "corrections"))
CONCLUSIONS = ("success", "failure", "neutral")
TRAILERS = ("", SELECTED, SELECTED, MISTYPED)


class RolloutActor:
    """They act on all fleets, in one seed of some, from a random stream of their own."""

    def __init__(
        self, seed: int, everybody: Iterable[Operators], loop: EventLoop, replaced: Mapping[str, int]
    ) -> None:
        self._chance = random.Random(f"{seed} {ROLLOUTS}")  # noqa: S311
        self._everybody, self._loop = [*everybody], loop
        default = random.Random(f"{seed} default stages").random() < DEFAULT_SHARE  # noqa: S311
        self._staging = {
            operators.fleet: () if default else self._drawn(operators.names) for operators in self._everybody
        }
        gates = random.Random(f"{seed} gates")  # noqa: S311
        self._staging = {fleet: _gated(staging, gates) for fleet, staging in self._staging.items()}
        limits = random.Random(f"{seed} what windows are for")  # noqa: S311
        self._staging = {fleet: _for_some(staging, limits) for fleet, staging in self._staging.items()}
        soon = random.Random(f"{seed} shut soon")  # noqa: S311
        self._staging = {fleet: self._shut_soon(staging, soon) for fleet, staging in self._staging.items()}
        self._endpoints = random.Random(f"{seed} endpoints")  # noqa: S311
        self._staging = {fleet: _asked(staging, self._endpoints) for fleet, staging in self._staging.items()}
        self._monitors = random.Random(f"{seed} monitors")  # noqa: S311
        self._staging = {fleet: measured(staging, self._monitors) for fleet, staging in self._staging.items()}
        self._alerts = random.Random(f"{seed} alerts")  # noqa: S311
        self._staging = {fleet: alerted(staging, self._alerts) for fleet, staging in self._staging.items()}
        for operators in self._everybody:
            operators.cloud.endpoints.hosts.add(urlsplit(ENDPOINT).netloc)
        self._approvers = StageApprovers(seed, loop)
        self._staging = {fleet: self._approvers.ruled(staging) for fleet, staging in self._staging.items()}
        enough = random.Random(f"{seed} enough successes")  # noqa: S311
        self._staging = {fleet: _succeeding(staging, enough) for fleet, staging in self._staging.items()}
        last = random.Random(f"{seed} final gates")  # noqa: S311
        self._final = {fleet: _final_gate(last) for fleet in self._staging}
        self._of_strategies = random.Random(f"{seed} strategies")  # noqa: S311
        self._selectable = self._other_stages(self._of_strategies)
        self._in_shut_stages = ShutStarts(seed, self._everybody, self._staging, loop)
        self._stopped = StoppedMembers(seed, self._everybody, loop, replaced)
        self._blocked = BlockedUpgrades(seed, self._everybody, loop, replaced)
        self._own_acts = 0

    @property
    def acts(self) -> int:
        """How often they acted."""
        late = self._stopped.acts + self._blocked.acts
        return self._own_acts + self._in_shut_stages.acts + late + self._approvers.acts

    def staged(self, operators: Operators, wanted: RequestedFleet) -> RequestedFleet:
        """Return a fleet with its strategy."""
        fleet = operators.fleet
        staging, selectable = self._staging[fleet], self._selectable[fleet]
        return replace(wanted, staging=staging, selectable=selectable, final=self._final[fleet])

    def _other_stages(self, chance: random.Random) -> dict[str, Staging]:
        """Return the stages that the commits of some fleets may select: one for all of their clusters.

        Windows and freezes are the same for every strategy, so these fleets have none.
        """
        found = dict[str, Staging]()
        for operators in self._everybody:
            staging = self._staging[operators.fleet] or ()
            drawn = chance.random() < SELECTING and staging and not any(stage.shut for stage in staging)
            group = StagedGroup(0, 2, 2)
            found[operators.fleet] = (StagedStage("all", tuple(operators.names), (group,)),) if drawn else ()
        return found

    def _drawn(self, names: tuple[str, ...]) -> Staging:
        chance, stages = self._chance, list[StagedStage]()
        left = [*names]
        chance.shuffle(left)
        for name in ("first", "second")[: chance.randint(1, 2)]:
            some, left = left[: (size := chance.randint(1, 2))], left[size:]
            groups = tuple(self._group(numbers) for numbers in ((0,), (1, 0))[chance.randint(0, 1)])
            if some:
                approvers = chance.randint(1, 2) if chance.random() < 0.2 else 0
                stages.append(StagedStage(name, tuple(some), groups, approvers, shut=self._shut()))
        return tuple(stages)

    def _shut(self) -> Shut | None:
        """Return a freeze, or the part of a day in which no window is open, or None; in whole minutes."""
        chance, now = self._chance, self._loop.clock().replace(second=0, microsecond=0)
        starts = now + timedelta(minutes=chance.randint(-30, 90))
        ends = starts + timedelta(minutes=chance.randint(5, 60))
        return Shut(starts, ends, freeze=chance.random() < 0.5) if chance.random() < 0.4 else None

    def _shut_soon(self, staging: Staging, chance: random.Random) -> Staging:
        """Return stages of which some that are shut at a time are so within minutes, while people act."""
        now = self._loop.clock().replace(second=0, microsecond=0)
        found = list[StagedStage]()
        for stage in staging or ():
            soon, starts = chance.random() < SOON, now + timedelta(minutes=chance.randint(*SOON_MINUTES))
            if stage.shut is not None and soon:
                length = stage.shut.ends - stage.shut.starts
                stage = replace(stage, shut=replace(stage.shut, starts=starts, ends=starts + length))  # noqa: PLW2901
            found.append(stage)
        return staging and tuple(found)

    def _group(self, size: int) -> StagedGroup:
        chance = self._chance
        return StagedGroup(size, chance.randint(1, 2), chance.randint(1, 3), chance.choice(SOAKS))

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds; an alert that counts fires from the beginning."""
        for operators in self._everybody:
            if any(stage.alerted for stage in self._staging[operators.fleet] or ()):
                self._alarm(operators, "severe")
        for _ in range(self._chance.randint(*ACTS)):
            self._loop.schedule(self._chance.uniform(0, seconds), self._act)
        self._in_shut_stages.schedule(seconds)
        self._stopped.schedule(seconds)
        self._approvers.schedule(seconds, self._everybody)

    def check(self) -> None:
        """Let a rollout meet a stopped cluster and a blocked upgrade, when all else has ended."""
        self._stopped.check(self.resolve)
        self._blocked.check(self.resolve)

    def _act(self) -> None:
        self._own_acts += 1
        operators = self._chance.choice(self._everybody)
        if self._chance.random() < 0.6:
            self._change_all(operators)
        elif (rollout := under_way(operators)) is not None:
            self._conclude(operators, rollout, self._of_strategies.choice(CONCLUSIONS))
            self._answer(operators, self._endpoints.choice(ANSWERS))
            self._measure(operators, self._monitors.choice(KINDS))
            self._alarm(operators, self._alerts.choice(ALARMS))
            kinds = [
                *(ActKind.APPROVE, ActKind.PAUSE, ActKind.RESUME) * 3,
                ActKind.SKIP,
                ActKind.ABORT,
                ActKind.OVERRIDE,
            ]
            self._on(operators, rollout, self._chance.choice(kinds))

    def _change_all(self, operators: Operators) -> None:
        """Push a change of every cluster, in some commits with the clusters that the fleet does not have."""
        desired, tag = operators.now, self._chance.choice("uvw")
        if self._chance.random() < 0.5:
            for name in operators.names:
                desired = desired.with_cluster(desired.clusters.get(name, DesiredCluster(name)))
        for cluster in desired.clusters.values():
            desired = desired.with_cluster(replace(cluster, tag=tag))
        if desired.selectable:
            desired = replace(desired, trailer=self._of_strategies.choice(TRAILERS))
        operators.push(desired)

    def _conclude(self, operators: Operators, rollout: Rollout, conclusion: str) -> None:
        """Write a check run of the commits that a rollout releases, as their tests do."""
        body = {"name": CHECK, "status": "completed", "conclusion": conclusion}
        for commit in sorted({rollout.commit, *(stage.commit or rollout.commit for stage in rollout.stages)}):
            self._loop.log("%s: the check run of %s: %s", operators.fleet, commit[:8], conclusion)
            operators.cloud.repository.pulls.write_check(commit, body)

    def _answer(self, operators: Operators, answer: int | ReconcileError) -> None:
        """Let the endpoint answer so from now on."""
        self._loop.log("%s: the endpoint answers %s from now on", operators.fleet, answer)
        operators.cloud.endpoints.statuses[ENDPOINT] = answer

    def _measure(self, operators: Operators, kind: str) -> None:
        """Let the workspace answer so from now on."""
        self._loop.log("%s: the workspace answers from now on: %s", operators.fleet, kind)
        answer(operators.cloud, kind)

    def _alarm(self, operators: Operators, kind: str) -> None:
        """Let an alert fire, or none that is severe."""
        self._loop.log("%s: the alerts of the shop from now on: %s", operators.fleet, kind)
        alarm(operators.cloud, kind)

    def _on(self, operators: Operators, rollout: Rollout, kind: ActKind) -> None:
        subject = ""
        if kind is ActKind.APPROVE:
            waiting = [
                stage.name
                for place, stage in enumerate(rollout.stages)
                if rollout.missing_approvals(place, self._loop.clock())
            ]
            subject = waiting[0] if waiting else ""
        elif kind is ActKind.SKIP:
            if not rollout.members:  # only a final gate is left
                return
            subject = self._chance.choice(rollout.members).cluster
        by = self._chance.choice(PEOPLE)
        if kind is ActKind.APPROVE and subject:
            self._approvers.approve(operators, rollout, subject, by)
            return
        self._loop.log("%s: %s: rollout %s %s", operators.fleet, by, kind, subject)
        act = partial(act_on_rollout, rollout.commit, kind, subject, by, reason="an emergency")
        self._loop.run_function(operators.cloud, act)

    def resolve(self) -> None:
        """Approve, override and resume everything; a commit takes along what was aborted or taken out."""
        for operators in self._everybody:
            rollout, commit = under_way(operators), operators.cloud.state.fleet().commit
            if holds_items(operators):
                override = partial(act_on_rollout, commit, ActKind.OVERRIDE, "", PEOPLE[0], reason="an end")
                self._loop.log("%s: override of what %s has on hold", operators.fleet, commit[:8])
                self._loop.run_function(operators.cloud, override)
            if _left(operators) or (rollout is not None and rollout.state is RolloutState.ABORTED):
                operators.push(replace(operators.now, note=operators.now.note + 1))
                continue
            if rollout is None:
                continue
            places = range(len(rollout.stages))
            spent = any(spent_checks(rollout, place) for place in places)
            if (rollout.calendar != RolloutCalendar() or spent) and not rollout.people.overridden:
                self._on(operators, rollout, ActKind.OVERRIDE)
            self._answer(operators, 200)
            self._measure(operators, "well")
            self._alarm(operators, "quiet")
            if any(check.kind is CheckKind.RUN for stage in rollout.stages for check in stage.gate.checks):
                self._conclude(operators, rollout, "success")
            if rollout.people.paused or rollout.refused:
                self._on(operators, rollout, ActKind.RESUME)
            for place in sorted(places, key=rollout.stage_has_passed):
                if rollout.missing_approvals(place, self._loop.clock()):
                    self._approvers.approve_all(operators, rollout, rollout.stages[place].name)
                    break

    @property
    def content(self) -> bool:
        """Whether no rollout waits for them, and none has left a cluster as it was."""
        return all(
            under_way(operators) is None and not _left(operators) and not holds_items(operators)
            for operators in self._everybody
        )


def _for_some(staging: Staging, chance: random.Random) -> Staging:
    """Return stages whose windows and freezes are for other starts than usual in some of them."""
    return staging and tuple(
        replace(stage, shut=replace(stage.shut, of=chance.choice(APPLIES_TO)) if stage.shut else None)
        for stage in staging
    )


def _gated(staging: Staging, chance: random.Random) -> Staging:
    """Return stages of which some wait for a time after those before them."""
    timed = tuple(
        replace(stage, after=chance.choice(MINUTES)) if chance.random() < GATED else stage
        for stage in staging or ()
    )
    return staging and tuple(replace(stage, checked=chance.random() < CHECKED) for stage in timed)


def _succeeding(staging: Staging, chance: random.Random) -> Staging:
    """Return stages of which some groups pass once so many of their clusters are Ready."""
    return staging and tuple(
        replace(
            stage,
            groups=tuple(
                replace(group, success=chance.choice(SUCCESSES)) if chance.random() < SUCCEEDING else group
                for group in stage.groups
            ),
        )
        for stage in staging
    )


def _asked(staging: Staging, chance: random.Random) -> Staging:
    """Return stages of which some that wait for a check run wait for an endpoint instead."""
    drawn = ((stage, stage.checked and chance.random() < ASKED) for stage in staging or ())
    return staging and tuple(replace(e, checked=e.checked and not asked, asked=asked) for e, asked in drawn)


def _final_gate(chance: random.Random) -> StagedStage | None:
    """Return the gate after the last stage, None for none."""
    drawn, after, checked = chance.random() < LAST, chance.choice(AFTER_ALL), chance.random() < ASKED
    asked = chance.random() < ASKED
    if not drawn or not (after or checked or asked):
        return None
    return StagedStage(FINAL, (), (), after=after, checked=checked, asked=asked)


def under_way(operators: Operators) -> Rollout | None:
    """Return the rollout of a fleet that has not ended; one that somebody aborted has not."""
    commit = operators.cloud.state.fleet().rollout
    return operators.cloud.state.rollout(commit) if commit else None


def holds_items(operators: Operators) -> bool:
    """Return whether a freeze or a window holds an item of the newest plan of a fleet."""
    commit = operators.cloud.state.fleet().commit
    newest = operators.cloud.state.plan(commit) if commit else None
    return newest is not None and any(item.waits_for_time for item in newest.plan.items)


def _left(operators: Operators) -> bool:
    """Return whether the newest rollout has ended without a cluster that somebody took out of it."""
    rollout = operators.cloud.state.rollout(operators.cloud.state.fleet().commit)
    return rollout is not None and bool(rollout.people.skipped)
