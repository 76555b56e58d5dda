"""What is stored of rollouts, each over the version that was read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.cluster.failures.errors import Stale
from shared.ports import State
from shared.rollouts import rollout as rollouts
from shared.rollouts.calendar import Freeze, Window
from shared.rollouts.rollout import Decided, Decisions, Group, Member, Passed, Rollout, Stage

NOW = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
BY = Decided("ops@example.com", NOW, "looks wrong", "dev", person=False)
WHOLE = Rollout(
    "a" * 40,
    NOW,
    (
        Stage(
            "dev",
            (Group(1, 2, 3, all_able=False, soak=timedelta(minutes=5)),),
            approval=True,
            back=True,
            ahead=True,
            approvers=2,
            by_others=True,
            expires=timedelta(hours=1),
        ),
    ),
    (Member("one", "u", 2, 0, 0, "before", NOW, at_once=True, windows=("w",), freezes=("f",)),),
    passed=(Passed(0, 0, NOW),),
    watched=(Passed(0, 0, NOW),),
    people=Decisions(BY, True, (NOW,), (BY,), (BY,), BY, BY),
    failures=("one",),
    ended=NOW,
    superseded_by="b" * 40,
    windows=(Window("w", "Europe/Berlin", "FREQ=DAILY", "22:00", timedelta(hours=4)),),
    freezes=(Freeze("f", NOW, NOW + timedelta(days=1), "owner", "reason"),),
    entered=(0,),
)


def test_a_rollout_is_read_as_it_was_saved(state: State) -> None:
    assert (state.rollout("a" * 40), list(state.rollouts())) == (None, [])
    saved = state.save_rollout(WHOLE)
    assert state.rollout("a" * 40) == WHOLE
    assert saved.etag
    newer = replace(WHOLE, commit="b" * 40, began=NOW + timedelta(hours=1))
    state.save_rollout(newer)
    assert list(state.rollouts()) == [newer, WHOLE]


def test_a_rollout_is_written_over_the_version_that_was_read(state: State) -> None:
    first = state.save_rollout(WHOLE)
    with pytest.raises(Stale):
        state.save_rollout(WHOLE)
    state.save_rollout(replace(first, people=Decisions()))
    with pytest.raises(Stale):
        state.save_rollout(replace(first, ended=None))
    assert state.rollout("a" * 40) == replace(WHOLE, people=Decisions())


def test_old_rollouts_are_removed_but_for_one_that_is_active(state: State) -> None:
    for number in range(4):
        kind = rollouts.State.COMPLETED if number else rollouts.State.ACTIVE
        began = NOW + timedelta(hours=number)
        state.save_rollout(replace(WHOLE, commit=f"{number}" * 40, began=began, state=kind))
    assert state.prune_rollouts(1) == 2
    assert [each.commit[0] for each in state.rollouts()] == ["3", "0"]


def test_a_rollout_of_ten_thousand_clusters_is_stored(state: State) -> None:
    members = tuple(
        replace(
            WHOLE.members[0], cluster=f"cluster-{n:05}", uid=f"{n * 7919:08x}", before=f"{n * 104729:016x}"
        )
        for n in range(10_000)
    )
    state.save_rollout(replace(WHOLE, members=members))
    found = state.rollout("a" * 40)
    assert found is not None
    assert found.members == members
