"""The state: events, acts, deliveries and dead letters."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from shared.cluster.history import Act
from shared.ports import DeadLetter, State
from shared.ports.state.app import ACT
from tests.support.cluster_records import NOW, event, later, record


def test_an_event_that_is_saved_twice_in_one_call_is_there_once(state: State) -> None:
    state.append([event(1), event(2), event(1), event(1, cluster="two")])
    assert [found.sequence for found in state.events("one", 5)] == [2, 1]
    assert [found.sequence for found in state.events("two", 5)] == [1]


def test_events_come_newest_first_and_bounded(state: State) -> None:
    state.append([event(n) for n in range(1, 8)])
    assert [found.sequence for found in state.events("one", 3)] == [7, 6, 5]
    assert state.events("one", 1)[0] == event(7)


def test_an_event_that_is_appended_twice_is_stored_once(state: State) -> None:
    state.append([event(1), event(2)])
    state.append([event(2)])
    assert len(state.events("one", 10)) == 2


def test_an_event_that_a_crash_had_somebody_append_again_is_there_once(state: State) -> None:
    first = [event(1), event(2, reason="Ready"), event(2, reason="Drifted")]
    again = [event(2, at=later(9), reason="Ready"), event(3, at=later(10))]
    state.append(first)
    state.append(again)
    found = [(stored_event.sequence, stored_event.reason) for stored_event in state.events("one", 10)]
    assert found == [(3, "Waiting"), (2, "Ready"), (2, "Drifted"), (1, "Waiting")]
    assert [stored_event.sequence for stored_event in state.events("one", 4)] == [3, 2, 2, 1]


def test_events_of_one_moment_come_by_sequence_and_belong_to_their_cluster(state: State) -> None:
    state.append([event(1, at=NOW), event(2, at=NOW), event(3, at=NOW, cluster="one-two")])
    assert [found.sequence for found in state.events("one", 10)] == [2, 1]


def test_events_before_a_time_are_older_by_a_millisecond_at_least(state: State) -> None:
    state.append([event(n) for n in range(1, 6)])
    assert [found.sequence for found in state.events("one", 2, before=later(4))] == [3, 2]
    assert list(state.events("one", 2, before=later(1))) == []


@pytest.mark.parametrize("past", ["0001-01-01T00:00+23:59", "1969-12-31T23:59:59.999Z", "1970-01-01T00:00Z"])
def test_nothing_is_before_a_time_in_the_distant_past(state: State, past: str) -> None:
    state.append([event(n) for n in range(1, 4)])
    state.save_act(Act("1", NOW, "approve", "c0ffee", "ada"))
    assert list(state.events("one", 5, before=datetime.fromisoformat(past))) == []
    assert list(state.acts(5, before=datetime.fromisoformat(past))) == []


@pytest.mark.parametrize("future", ["2286-11-20T17:46:40Z", "2286-11-21T00:00Z", "9999-12-31T23:59:59-23:59"])
def test_everything_is_before_a_time_in_the_distant_future(state: State, future: str) -> None:
    state.append([event(n) for n in range(1, 4)])
    state.save_act(Act("1", NOW, "approve", "c0ffee", "ada"))
    assert len(state.events("one", 5, before=datetime.fromisoformat(future))) == 3
    assert len(state.acts(5, before=datetime.fromisoformat(future))) == 1


def test_acts_come_newest_first_each_once_with_its_last_result(state: State) -> None:
    acts = [Act(str(n), later(n), "approve", "c0ffee", "ada", reason="why not") for n in range(3)]
    for act in acts:
        state.save_act(act)
    done = replace(acts[1], result="accepted")
    state.save_act(done)
    assert list(state.acts(5)) == [acts[2], done, acts[0]]
    assert list(state.acts(1)) == [acts[2]]
    assert list(state.acts(5, before=acts[2].at)) == [done, acts[0]]
    assert state.prune(ACT, acts[2].at) == 2
    assert list(state.acts(5)) == [acts[2]]


def test_dead_letters_come_newest_first_and_once(state: State) -> None:
    def letter(number: int) -> DeadLetter:
        name = f"{number}:an id/?#\\id"
        return DeadLetter("jobs", name, later(number), "reason", "description", "ünreadable" * 3000, 33_000)

    assert list(state.dead_letters(5)) == []
    for number in (1, 3, 2, 3):
        state.save_dead_letter(letter(number))
    assert list(state.dead_letters(2)) == [letter(3), letter(2)]
    assert state.count_dead_letters() == 3


def test_a_dead_letter_is_deleted_and_a_missing_one_is_success(state: State) -> None:
    first, second = (DeadLetter("jobs", f"{n}:an id/?#\\id", later(n), "", "", "a body", 5) for n in (1, 2))
    state.save_dead_letter(first)
    state.delete_dead_letter(second)
    state.save_dead_letter(second)
    for _ in range(2):
        state.delete_dead_letter(second)
    assert list(state.dead_letters(5)) == [first]


def test_an_event_is_read_back_with_its_start_and_request_ids(state: State) -> None:
    whole = event(1, started=NOW, request_ids=("r-1", "r-2"))
    state.append([whole])
    assert list(state.events("one", 1)) == [whole]


def test_a_delivery_is_seen_once_it_is_remembered(state: State) -> None:
    state.remember_delivery("2f1c/?#\\id", NOW)
    state.remember_delivery("2f1c/?#\\id", NOW)
    assert state.delivery_seen("2f1c/?#\\id")
    assert not state.delivery_seen("other")


def test_events_that_a_record_has_are_found_with_those_in_the_table_each_once(state: State) -> None:
    state.append([event(1), event(2)])
    state.save(replace(record(), etag="", recent_events=(event(2), event(3))))
    assert list(state.events("one", 5)) == [event(3), event(2), event(1)]
    assert list(state.events("one", 2)) == [event(3), event(2)]
    assert list(state.events("one", 5, before=later(3))) == [event(2), event(1)]
