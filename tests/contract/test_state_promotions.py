"""What is stored of promotions, each over the version that was read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.cluster.failures.errors import Stale
from shared.ports import State
from shared.ports.state import FleetRecord, FleetRules, Lifted, Promotion
from shared.promotions import Had, Rule, Value, What, Withdrawal

NOW = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
V1, V2 = Value("flux.tag", "v1"), Value("flux.tag", "v2")
WHOLE = Promotion(
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
    lifted=(Lifted(V1, NOW),),
    digest="d",
    problem="ü",
)


def test_a_promotion_is_read_as_it_was_saved(state: State) -> None:
    assert (state.promotion("production"), list(state.promotions())) == (None, [])
    assert state.save_promotion(WHOLE).etag
    assert state.promotion("production") == WHOLE
    state.save_promotion(Promotion("load"))
    assert [each.target for each in state.promotions()] == ["load", "production"]


def test_a_promotion_is_written_over_the_version_that_was_read(state: State) -> None:
    first = state.save_promotion(WHOLE)
    with pytest.raises(Stale):
        state.save_promotion(WHOLE)
    state.save_promotion(replace(first, number=8))
    with pytest.raises(Stale):
        state.save_promotion(replace(first, number=9))
    assert state.promotion("production") == replace(WHOLE, number=8)


def test_the_rules_and_what_environments_had_are_stored_with_the_fleet(state: State) -> None:
    rules = (Rule("test", "production", (What.PLATFORM,), timedelta(hours=24)),)
    had = (Had("production", (V2,), (V1, V2), (Withdrawal(V1, NOW),)),)
    saved = state.save_fleet(FleetRecord(rules=FleetRules(promotions=rules, had=had)))
    assert (saved.rules.promotions, saved.rules.had) == (rules, had)
    assert state.fleet() == saved
