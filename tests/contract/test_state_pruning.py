"""What the state removes: by age, by number, and a hundred a call."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from azure.data.tables import TableServiceClient

from bench.counting import Call, Watched
from shared.adapters import tables
from shared.adapters.tables import StorageTable, storage_tables
from shared.ports import DeadLetter, State
from shared.ports.state import clusters
from shared.ports.state.app import DEAD_LETTER, DELIVERY
from tests.support.azurite import connect
from tests.support.cluster_records import NOW, event, later, plan_record
from tests.support.replaced_ports import Around


def test_events_are_pruned_by_number_and_of_deleted_clusters_by_age(state: State) -> None:
    state.append([event(n) for n in range(1, 8)] + [event(1, cluster="deleted"), event(2, cluster="deleted")])
    assert state.prune_events("one", 5) == 2
    assert state.prune_events("one", 5) == 0
    assert [found.sequence for found in state.events("one", 10)] == [7, 6, 5, 4, 3]
    state.append([event(1, cluster="deleted-before")])
    assert state.prune_events_before(later(2), living={"one"}) == 1
    assert len(state.events("one", 10)) == 5
    assert [found.sequence for found in state.events("deleted", 10)] == [2, 1]
    assert list(state.events("deleted-before", 10)) == []
    assert state.prune_events_before(later(3), living={"one"}) == 2
    assert list(state.events("deleted", 10)) == []


def test_old_plans_are_pruned_but_for_the_open_ones(state: State) -> None:
    for number, commit in enumerate("abcde"):
        name = replace(plan_record(commit * 40), at=NOW + timedelta(minutes=number), open=commit == "b")
        state.save_plan(name)
    assert state.prune_plans(2) == 2
    remaining = [commit for commit in "abcde" if state.plan(commit * 40)]
    assert remaining == ["b", "d", "e"]


def test_saved_blobs_are_pruned_except_those_in_use(state: State) -> None:
    state.save_blobs({sha * 40: sha.encode() for sha in "abc"})
    assert state.prune_blobs({"b" * 40, "d" * 40}) == 2
    assert state.blobs([sha * 40 for sha in "abc"]) == {"b" * 40: b"b"}


def test_old_deliveries_and_dead_letters_are_pruned(state: State) -> None:
    for number in (1, 5):
        state.remember_delivery(f"d{number}", later(number))
        state.save_dead_letter(DeadLetter("jobs", f"m{number}", later(number), "", "", "a body", 5))
    assert (state.prune(DELIVERY, later(5)), state.prune(DEAD_LETTER, later(5))) == (1, 1)
    assert (state.delivery_seen("d1"), state.delivery_seen("d5")) == (False, True)
    assert [letter.id for letter in state.dead_letters(5)] == ["m5"]


@pytest.mark.lives
def test_old_deliveries_are_pruned_a_hundred_a_call(azurite: int) -> None:
    calls: Counter[str] = Counter()

    def count(call: Call) -> None:
        calls[call.method] += 1

    with connect(azurite) as service:
        counted = Around(
            service, get_table_client=lambda name: Watched(service.get_table_client(name), count)
        )
        fleet = f"fleet-{uuid.uuid4().hex[:8]}"
        for number in range(250):
            State(storage_tables(service), fleet).remember_delivery(f"digest-{number}", NOW)
        state = State(storage_tables(cast(TableServiceClient, counted)), fleet)
        assert state.prune(DELIVERY, later(1)) == 250
        assert calls == {"query_entities": 1, "submit_transaction": 3}
        assert not state.delivery_seen("digest-7")


def test_events_of_clusters_that_exist_are_not_read_to_find_those_of_deleted_ones(
    azurite: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, query = list[str](), StorageTable.query

    def counted(*given: Any, **named: Any) -> Iterator[Any]:
        for entity in query(*given, **named):
            read.append(str(entity["PartitionKey"]).partition("|")[2])
            yield entity

    with connect(azurite) as service:
        state = State(storage_tables(service), f"fleet-{uuid.uuid4().hex[:8]}")
        for name in ("a", "b", "b-2", "b0", "c"):
            state.append([event(n, cluster=name) for n in range(1, 31)])
        monkeypatch.setattr(StorageTable, "query", counted)
        assert state.prune_events_before(later(60), living={"a", "b-2", "c", "none"}) == 60
        assert Counter(read) == {"b": 30, "b0": 30}
        monkeypatch.undo()
        assert [len(state.events(name, 50)) for name in ("a", "b", "b-2", "b0", "c")] == [30, 0, 30, 0, 30]


def test_no_more_events_of_deleted_clusters_are_read_than_are_removed(
    azurite: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, query = list[str](), StorageTable.query

    def counted(*given: Any, **named: Any) -> Iterator[Any]:
        for entity in query(*given, **named):
            read.append(str(entity["RowKey"]))
            yield entity

    for module in (clusters, tables):
        monkeypatch.setattr(module, "MOST_REMOVED", 10)
    with connect(azurite) as service:
        state = State(storage_tables(service), f"fleet-{uuid.uuid4().hex[:8]}")
        for name in ("b", "c"):
            state.append([event(n, cluster=name) for n in range(1, 31)])
        monkeypatch.setattr(StorageTable, "query", counted)
        assert [state.prune_events_before(later(60), living={"a", "d"}) for _ in range(7)] == [*[10] * 6, 0]
        assert len(read) <= 7 * 11
