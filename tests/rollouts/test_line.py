"""What each stage is to have of the platform: what holds whenever commits come, however slow stages are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import SummaryTimes
from shared.language.pin import UNKNOWN
from shared.rollouts.begin import LineStages, begin
from shared.rollouts.decide import decide
from shared.rollouts.line import line_of, moves, splits
from shared.rollouts.rollout import Rollout, RolloutState
from shared.rollouts.strategy import Gate, GroupRule, Line, StageRule, StageTarget
from tests.support.rollout_fleets import NOW, candidate, stage, summary
from tests.support.sample import DEEP

MINUTE = timedelta(minutes=1)
NAMES = ("dev", "test", "prod")
CLUSTERS = {f"{name}{number}": name for name in NAMES for number in range(2)}
SLOWEST = 7 * MINUTE
"""How long a cluster takes at most from its start until it is Ready."""


class Pipeline:
    """A fleet whose platform changes: each minute the planner decides, and plans again where that is due."""

    def __init__(self, soak: int) -> None:
        rule = GroupRule(soak=soak * MINUTE)
        self.stages: tuple[StageRule, ...] = tuple(stage(name, rule) for name in NAMES)
        self.now, self.seen = NOW, {name: summary(name) for name in CLUSTERS}
        self.has = dict.fromkeys(CLUSTERS, 0)
        self.rollout: Rollout | None = None
        self.ends: dict[str, datetime] = {}
        self.verified: dict[str, set[int]] = {name: {0} for name in CLUSTERS}

    def plan(self, head: int) -> None:
        """Plan a head, whose number is its name."""
        before = self.rollout
        if before is not None and before.state is RolloutState.COMPLETED and before.commit != _name(head):
            before = None
        line = line_of(NAMES, before, self.seen, self.now, _name(head))
        targets = {target.stage: int(target.commit, 16) for target in line.targets}
        members = {member.cluster: member for member in before.members} if before else {}
        candidates = []
        for name, of in CLUSTERS.items():
            known, number = self.seen[name], targets[of]
            assert number >= self.has[name], f"{name} goes back from {self.has[name]} to {number}"
            made = candidate(name, of, generation=known.generation)
            own = replace(made.member, platform=True, earlier=UNKNOWN, before="")
            made = replace(made, member=own, digest=str(number))
            if number != self.has[name]:
                candidates.append(replace(made, member=replace(own, generation=known.generation + 1)))
            elif name in members and known.generation >= members[name].generation:
                candidates.append(replace(made, left=True, touched=True, adds=False))
        split = splits(line, before, _name(head))
        platform = LineStages(self.stages, line)
        self.rollout = begin(
            _name(head), self.stages, candidates, before, self.now, platform=platform, split=split
        )

    def step(self, takes: Iterator[int]) -> None:
        """Let a minute pass."""
        self.now += MINUTE
        for name in [name for name, at in self.ends.items() if at <= self.now]:
            del self.ends[name]
            known = self.seen[name]
            self.verified[name].add(self.has[name])
            self.seen[name] = replace(
                known,
                phase=Phase.READY,
                observed_generation=known.generation,
                times=SummaryTimes(ready_since=self.now),
            )
        if self.rollout is None:
            return
        decision = decide(self.rollout, self.seen, self.now)
        self.rollout = decision.rollout
        if moves(self.rollout, self.seen, self.now):
            self.plan(int(self.rollout.commit, 16))
            decision = decide(self.rollout, self.seen, self.now)
            self.rollout = decision.rollout
        for name in decision.start:
            self._start(name, next(takes))

    def _start(self, name: str, minutes: int) -> None:
        assert self.rollout is not None
        member = next(member for member in self.rollout.members if member.cluster == name)
        releases = self.rollout.stages[member.stage].commit or self.rollout.commit
        number = self.has[name] = int(releases, 16)
        for other, of in CLUSTERS.items():
            if NAMES.index(of) < NAMES.index(CLUSTERS[name]):
                newest = max(self.verified[other])
                assert newest >= number, f"{name} gets {number}, and {other} was Ready with {newest}"
        self.ends[name] = self.now + minutes * MINUTE
        self.seen[name] = replace(
            self.seen[name], generation=member.generation, phase=Phase.UPDATING, times=SummaryTimes()
        )


def _name(number: int) -> str:
    return f"{number:040x}"


@pytest.mark.lives
@settings(max_examples=100 if DEEP else 8)
@given(st.integers(5, 40), st.lists(st.integers(8, 60), min_size=30, max_size=60), st.data())
def test_every_stage_goes_on_however_fast_commits_come(
    soak: int, gaps: list[int], data: st.DataObject
) -> None:
    """A round of a stage takes its soak and what its clusters take, and it may have just missed an offer."""
    takes = iter(lambda: data.draw(st.integers(1, SLOWEST // MINUTE)), None)
    pipeline, number = Pipeline(soak), 0
    round_of_a_stage = soak + 2 * (SLOWEST // MINUTE) + 8
    since, had = dict.fromkeys(CLUSTERS, 0), dict(pipeline.has)
    minutes = 0
    for gap in (min(gap, 15) for gap in gaps):
        number += 1
        pipeline.plan(number)
        for _ in range(gap):
            pipeline.step(takes)
            minutes += 1
            for name, of in CLUSTERS.items():
                if pipeline.has[name] != had[name]:
                    since[name], had[name] = minutes, pipeline.has[name]
                most = round_of_a_stage * (2 + NAMES.index(of) * 2)
                assert minutes - since[name] <= most, f"{name} has {had[name]} for {most} minutes"
    for _ in range(round_of_a_stage * 8):
        pipeline.step(takes)
    assert pipeline.has == dict.fromkeys(CLUSTERS, number)
    assert pipeline.rollout is not None
    assert pipeline.rollout.state is RolloutState.COMPLETED


def test_a_cluster_that_pulls_another_source_keeps_no_commit_for_its_stage() -> None:
    """``prod`` gives up what ``test`` has dropped, though a cluster of it is Ready with what it pulls."""
    own = candidate("prod1", "prod")
    own = replace(own, member=replace(own.member, earlier=replace(UNKNOWN, source="oci://platform")))
    made = [candidate(name, of) for name, of in CLUSTERS.items() if name != "prod1"]
    moved = [
        replace(cluster, member=replace(cluster.member, platform=True, earlier=UNKNOWN)) for cluster in made
    ]
    targets = (StageTarget("dev", _name(2), _name(1)), *(StageTarget(of, _name(1)) for of in NAMES[1:]))
    rules = tuple(stage(of, GroupRule()) for of in NAMES)
    platform = LineStages(rules, Line(_name(2), targets))
    rollout = begin(_name(2), rules, [*moved, own], None, NOW, platform=platform, split=True)
    ready = {"dev0", "dev1", "prod1"}
    seen = {name: summary(name, generation=2 if name in ready else 1) for name in CLUSTERS}
    line = line_of(NAMES, decide(rollout, seen, NOW).rollout, seen, NOW, _name(2))
    assert line.commits == [_name(2)] * 3


@pytest.mark.parametrize("approved", [False, True])
def test_the_time_of_a_stage_begins_again_where_an_approval_lets_a_cluster_before_it_start(
    approved: bool,
) -> None:
    """``dev0`` waited for an approval, so nothing of ``dev`` was to start and ``prod`` was reached."""
    rules = (stage("dev"), replace(stage("prod"), gate=Gate(after=timedelta(hours=12))))
    line = LineStages(rules, Line(_name(2), tuple(StageTarget(rule.name, _name(2)) for rule in rules)))
    approval = NOW + timedelta(days=1)

    def of(generation: int, before: Rollout | None, now: datetime) -> Rollout:
        every = [candidate("dev0", "dev", generation=generation), candidate("prod0", "prod")]
        moved = [replace(own, member=replace(own.member, platform=True, earlier=UNKNOWN)) for own in every]
        return begin(_name(2), rules, moved, before, now, platform=line, split=True)

    def decided(rollout: Rollout, generation: int, now: datetime) -> Rollout:
        seen = {"dev0": summary("dev0", generation=generation), "prod0": summary("prod0")}
        return decide(rollout, seen, now).rollout

    before = decided(of(1, None, NOW), 1, NOW)
    assert before.reached(1) == NOW
    generation = 2 if approved else 1
    later = decided(of(generation, before, approval), generation, approval)
    assert later.reached(1) == (approval if approved else NOW)
