"""Records beyond the limits of one entity: split where they may be, refused where they may not."""

from __future__ import annotations

import base64
import random
import uuid
from dataclasses import replace

import pytest

from shared.adapters.tables import storage_tables
from shared.cluster.failures.errors import Stale, TooLarge
from shared.cluster.review_check import ReviewCheck, Verdict
from shared.cluster.transitions.acceptance import accept_new
from shared.plan.plan import Plan
from shared.ports import PlanRecord, State
from shared.ports.state.plans import PLANS
from tests.support.azurite import connect
from tests.support.cluster_records import NOW, large_plan
from tests.support.desired_clusters import desired

pytestmark = pytest.mark.lives


def test_a_plan_beyond_an_entity_is_read_back_as_it_was_and_as_its_newest_version(state: State) -> None:
    for seed, items in ((1, 2500), (2, 2600), (2, 2600)):
        large = large_plan(items, seed)
        state.save_plan(large)
        assert state.plan("c" * 40) == large
        assert list(state.open_plans()) == [large]
    small = PlanRecord(Plan("c" * 40), NOW)
    state.save_plan(small)
    assert list(state.plans_since(NOW)) == [small]


def test_the_parts_of_a_plan_go_with_it(azurite: int) -> None:
    with connect(azurite) as service:
        fleet = f"fleet-{uuid.uuid4().hex[:8]}"
        tables = storage_tables(service)
        state = State(tables, fleet)
        parts = f"parts|{fleet}|{'c' * 40}"
        for seed in (1, 2):
            state.save_plan(replace(large_plan(2500, seed), open=False))
            assert len(list(tables[PLANS].query(parts))) == 3
        assert state.prune_plans(0) == 1
        assert list(tables[PLANS].query(parts)) == []


def test_the_parts_of_a_plan_that_became_small_go_with_it(azurite: int) -> None:
    with connect(azurite) as service:
        fleet = f"fleet-{uuid.uuid4().hex[:8]}"
        tables = storage_tables(service)
        state = State(tables, fleet)
        for plan_record in (large_plan(2500), PlanRecord(Plan("c" * 40), NOW)):
            state.save_plan(replace(plan_record, open=False))
        assert state.prune_plans(0) == 1
        assert list(tables[PLANS].query(f"parts|{fleet}|{'c' * 40}")) == []


def test_the_parts_of_a_plan_that_lost_a_race_are_removed(azurite: int) -> None:
    with connect(azurite) as service:
        fleet = f"fleet-{uuid.uuid4().hex[:8]}"
        tables = storage_tables(service)
        state = State(tables, fleet)
        state.save_plan(large_plan(2500))
        (read,) = state.open_plans()
        state.save_report(replace(read, reported="pending: meanwhile"))
        with pytest.raises(Stale):
            state.save_review(replace(read, review=ReviewCheck(Verdict.NO_PULL, NOW, {"branch": "main"})))
        parts = f"parts|{fleet}|{'c' * 40}"
        assert len(list(tables[PLANS].query(parts))) == 3
        assert state.plan("c" * 40) == replace(read, reported="pending: meanwhile")


@pytest.mark.parametrize("letter", ["x", "\N{GRINNING FACE}", "\N{LATIN SMALL LETTER U WITH DIAERESIS}"])
@pytest.mark.parametrize("length", [29_000, 40_000, 200_000])
def test_a_text_of_any_letters_is_stored(state: State, letter: str, length: int) -> None:
    wordy = PlanRecord(Plan("c" * 40, (), (letter * length,)), NOW)
    state.save_plan(wordy)
    assert state.plan("c" * 40) == wordy


def test_a_record_of_a_cluster_beyond_an_entity_is_too_large_and_changes_nothing(state: State) -> None:
    saved = state.save(accept_new(desired("one"), uid="0badcafe", commit="c" * 40, now=NOW))
    text = base64.b64encode(random.Random(0).randbytes(1 << 21)).decode()
    with pytest.raises(TooLarge):
        state.save(replace(saved, document={**saved.document, "more": text}))
    assert state.cluster("one") == saved
