"""What holds of every rollout, whatever happens to its clusters, and in which order."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cluster.record_parts import Phase
from shared.rollouts.rollout import RolloutState
from shared.rollouts.strategy import GroupRule, StageRule
from shared.rollouts.waits import MemberStanding
from tests.support.rollout_fleets import Fleet, stage

NUMBERS = st.sampled_from(["1", "2", "3", "20%", "50%", "100%"])
GROUPS = st.builds(
    GroupRule,
    clusters=st.sampled_from(["", "1", "2", "50%"]),
    max_concurrency=NUMBERS,
    soak=st.sampled_from([timedelta(0), timedelta(minutes=5)]),
    min_success=st.sampled_from(["", "0", "50%", "100%"]),
    failure_budget=st.sampled_from(["", "1", "2", "50%"]),
)


@st.composite
def strategies(draw: st.DrawFn) -> tuple[StageRule, ...]:
    names = ("dev", "test", "prod")[: draw(st.integers(1, 3))]
    return tuple(stage(name, *draw(st.lists(GROUPS, min_size=1, max_size=3))) for name in names)


FLEETS = st.dictionaries(
    st.sampled_from("abcdefghijkl"), st.sampled_from(["dev", "test", "prod"]), min_size=1
)


def check(fleet: Fleet) -> None:
    """Start what may start, and check each rule at this moment."""
    before = fleet.decide()
    passed = {(passage.stage, passage.group) for passage in fleet.rollout.passed}
    started = fleet.start()
    standings = fleet.decide().standings
    for member in fleet.rollout.members:
        place = (member.stage, member.group)
        rule = fleet.rollout.stages[member.stage].groups[member.group]
        own = [member.cluster for member in fleet.rollout.members if (member.stage, member.group) == place]
        flying = [name for name in own if standings[name] is MemberStanding.IN_FLIGHT]
        failed = [name for name in own if standings[name] is MemberStanding.FAILED]
        assert len(flying) <= rule.concurrency
        if member.cluster in started:
            assert len(flying) + len(failed) <= rule.budget
            assert before.block is None
            earlier = [stage_place for stage_place in fleet.rollout.places() if stage_place < place]
            assert all(place in passed for place in earlier)


@pytest.mark.lives
@given(strategies(), FLEETS, st.data())
def test_no_bound_is_exceeded_and_no_stage_comes_before_its_predecessor(
    strategy: tuple[StageRule, ...], environments: dict[str, str], data: st.DataObject
) -> None:
    fleet = Fleet(strategy, environments)
    for _ in range(data.draw(st.integers(0, 30))):
        check(fleet)
        changing = fleet.changing()
        ends = data.draw(st.booleans())
        if changing and ends:
            name = data.draw(st.sampled_from(changing))
            fleet.end(name, data.draw(st.sampled_from([Phase.READY, Phase.FAILED, Phase.STALLED])))
        fleet.wait(timedelta(minutes=data.draw(st.integers(0, 6))))


@pytest.mark.lives
@given(strategies(), FLEETS)
def test_a_rollout_in_which_nothing_fails_ends_with_every_cluster_at_its_generation(
    strategy: tuple[StageRule, ...], environments: dict[str, str]
) -> None:
    fleet = Fleet(strategy, environments)
    for _ in range(20 * len(environments)):
        check(fleet)
        for name in fleet.changing():
            fleet.end(name)
        fleet.wait(timedelta(minutes=5))
    assert fleet.rollout.state is RolloutState.COMPLETED
    assert fleet.rollout.failures == ()
    assert {summary.observed_generation for summary in fleet.seen.values()} == {2}


@given(strategies(), FLEETS)
def test_every_cluster_has_started_or_may_start_or_has_a_reason(
    strategy: tuple[StageRule, ...], environments: dict[str, str]
) -> None:
    fleet = Fleet(strategy, environments)
    for _ in range(3 * len(environments)):
        decision = fleet.decide()
        left = {name for name, summary in fleet.seen.items() if summary.generation == 1}
        assert left == {*decision.start} | {*decision.waits}
        assert not {*decision.start} & {*decision.waits}
        fleet.start()
        for name in fleet.changing():
            fleet.end(name)
        fleet.wait(timedelta(minutes=1))
