"""What is stored of the app's own pull requests and of rollouts, each over the version that was read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.cluster.failures.errors import Stale
from shared.ports import State
from shared.ports.state import (
    FleetRecord,
    FleetRules,
    LiftedHold,
    OmittedField,
    Promotion,
    Proposal,
    SweepRecord,
)
from shared.promotions import EnvironmentValues, Rule, Value, What, Withdrawal
from shared.rollouts import rollout as rollouts
from shared.rollouts.calendar import Freeze, Window
from shared.rollouts.rollout import (
    Decisions,
    Group,
    GroupPass,
    Member,
    Rollout,
    RolloutCalendar,
    Stage,
    StageDecision,
)
from shared.rollouts.strategy import Gate

NOW = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
V1, V2 = Value("flux.tag", "v1"), Value("flux.tag", "v2")
PROMOTION = Promotion(
    "production",
    source="test",
    by="ops",
    asked=NOW,
    values=(V2,),
    number=7,
    url="https://github.example/pull/7",
    commits=("a", "b"),
    merged=(V1,),
    declined=(V1,),
    lifted=(LiftedHold(V1, NOW),),
    digest="d",
    problem="ü",
)
PROPOSAL = Proposal(
    "one",
    digest="d",
    number=7,
    url="https://github.example/pull/7",
    opened=NOW,
    values=("v",),
    commits=("a", "b"),
    declined=("w",),
    left_out=(OmittedField("tags.own", "why"),),
    problem="ü",
    commit="c" * 40,
)
BY = StageDecision("ops@example.com", NOW, "looks wrong", "dev", person=False)
ROLLOUT = Rollout(
    "a" * 40,
    NOW,
    (
        Stage(
            "dev",
            (Group(1, 2, 3, all_able=False, soak=timedelta(minutes=5)),),
            back=True,
            ahead=True,
            gate=Gate(approvers=2, by_others=True, expires=timedelta(hours=1)),
        ),
    ),
    (Member("one", "u", 2, 0, 0, "before", NOW, at_once=True, windows=("w",), freezes=("f",)),),
    passed=(GroupPass(0, 0, NOW),),
    watched=(GroupPass(0, 0, NOW),),
    people=Decisions(BY, True, (NOW,), (BY,), (BY,), BY, BY),
    failures=("one",),
    ended=NOW,
    superseded_by="b" * 40,
    calendar=RolloutCalendar(
        (Window("w", "Europe/Berlin", "FREQ=DAILY", "22:00", timedelta(hours=4)),),
        (Freeze("f", NOW, NOW + timedelta(days=1), "owner", "reason"),),
    ),
    entered=(0,),
)

Find = Callable[[State], Any]
Save = Callable[[State, Any], Any]
Every = Callable[[State], list[Any]]
KINDS: dict[str, tuple[Any, dict[str, str], Find, Save, Every]] = {
    "promotion": (
        *(PROMOTION, {"url": "other"}),
        lambda state: state.promotion("production"),
        lambda state, promotion: state.save_promotion(promotion),
        lambda state: state.promotions(),
    ),
    "proposal": (
        *(PROPOSAL, {"url": "other"}),
        lambda state: state.proposal("one"),
        lambda state, proposal: state.save_proposal(proposal),
        lambda state: state.proposals(),
    ),
    "rollout": (
        *(ROLLOUT, {"superseded_by": "other"}),
        lambda state: state.rollout("a" * 40),
        lambda state, rollout: state.save_rollout(rollout),
        lambda state: state.rollouts(),
    ),
}


@pytest.mark.parametrize(("whole", "change", "find", "save", "every"), KINDS.values(), ids=KINDS)
def test_a_record_is_read_as_it_was_saved_and_written_over_the_version_that_was_read(
    state: State, whole: Any, change: dict[str, str], find: Find, save: Save, every: Every
) -> None:
    assert (find(state), every(state)) == (None, [])
    first = save(state, whole)
    assert (find(state), every(state)) == (whole, [whole])
    with pytest.raises(Stale):
        save(state, whole)
    second = save(state, replace(first, **change))
    with pytest.raises(Stale):
        save(state, first)
    assert (find(state), find(state).etag) == (replace(whole, **change), second.etag)


def test_promotions_and_proposals_come_by_name_and_rollouts_newest_first(state: State) -> None:
    newer = replace(ROLLOUT, commit="b" * 40, began=NOW + timedelta(hours=1))
    for rollout in (ROLLOUT, newer):
        state.save_rollout(rollout)
    for name in ("one", "a"):
        state.save_promotion(Promotion(name))
        state.save_proposal(Proposal(name))
    assert [promotion.target for promotion in state.promotions()] == ["a", "one"]
    assert [proposal.cluster for proposal in state.proposals()] == ["a", "one"]
    assert list(state.rollouts()) == [newer, ROLLOUT]


def test_an_environment_has_a_promotion_and_one_of_each_channel(state: State) -> None:
    for what in (What.VERSION, None, What.IMAGES):
        state.save_promotion(Promotion("production", source=str(what), what=what))
    known = [state.promotion("production", what) for what in (None, What.IMAGES, What.VERSION)]
    assert known == list(state.promotions())
    assert [found and found.source for found in known] == ["None", "images", "version"]


def test_a_proposal_is_removed_in_the_version_that_was_read(state: State) -> None:
    first = state.save_proposal(PROPOSAL)
    second = state.save_proposal(replace(first, number=8))
    with pytest.raises(Stale):
        state.remove_proposal(first)
    state.remove_proposal(second)
    assert state.proposal("one") is None


def test_why_no_pull_request_is_opened_is_stored_with_the_sweeps(state: State) -> None:
    state.save_sweep(SweepRecord(proposals="GitHub refuses"))
    assert state.sweep().proposals == "GitHub refuses"


def test_the_rules_and_what_environments_had_are_stored_with_the_fleet(state: State) -> None:
    rules = (Rule("test", "production", (What.PLATFORM,), timedelta(hours=24)),)
    had = (EnvironmentValues("production", (V2,), (V1, V2), (Withdrawal(V1, NOW),)),)
    saved = state.save_fleet(FleetRecord(rules=FleetRules(promotions=rules, had=had)))
    assert (saved.rules.promotions, saved.rules.had) == (rules, had)
    assert state.fleet() == saved


def test_old_rollouts_are_removed_but_for_one_that_is_active(state: State) -> None:
    for number in range(4):
        kind = rollouts.RolloutState.COMPLETED if number else rollouts.RolloutState.ACTIVE
        began = NOW + timedelta(hours=number)
        state.save_rollout(replace(ROLLOUT, commit=f"{number}" * 40, began=began, state=kind))
    assert state.prune_rollouts(1) == 2
    assert [each.commit[0] for each in state.rollouts()] == ["3", "0"]


@pytest.mark.lives
def test_a_rollout_of_ten_thousand_clusters_is_stored(state: State) -> None:
    members = tuple(
        replace(
            ROLLOUT.members[0], cluster=f"cluster-{n:05}", uid=f"{n * 7919:08x}", before=f"{n * 104729:016x}"
        )
        for n in range(10_000)
    )
    state.save_rollout(replace(ROLLOUT, members=members))
    found = state.rollout("a" * 40)
    assert found is not None
    assert found.members == members
