"""Records that cannot be read, in Azurite and in memory: the state names them, and has the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from localcloud.tables.memory_state import MemoryState
from shared.cluster.failures.errors import Stale, Unreadable
from shared.cluster.record import to_json
from shared.ports import DeadLetter, FleetRecord
from shared.ports.state.app import DEAD_LETTERS
from shared.ports.state.clusters import CLUSTERS, EVENTS, FLEETS
from shared.ports.state.plans import PLANS
from tests.support.azurite import connect
from tests.support.cluster_records import NOW, event, fresh, large_plan, plan_record
from tests.support.damaged_records import REPEATED, Entity
from tests.support.sample import sample
from tests.support.unreadable_records import CUT_OFF, FORMS, Stored

pytestmark = pytest.mark.lives


@pytest.mark.parametrize(("damage", "problem"), sample("unreadable in a list", FORMS, 10))
def test_a_list_names_the_record_that_cannot_be_read_and_has_the_others(
    stored: Stored, damage: Callable[[Entity], Entity], problem: str
) -> None:
    state = stored.state
    records = [state.save(fresh(name)) for name in ("one", "three", "two")]
    repair = stored.tables.edit(CLUSTERS, stored.fleet, "three", damage)
    readable = [records[0], records[2]]
    for listed in (
        state.clusters(),
        state.clusters_page("", 5),
        state.clusters_named(["one", "three", "two"]),
    ):
        assert list(listed) == readable
        assert [(record.key, record.problem) for record in listed.unreadable] == [("three", problem)]
    with pytest.raises(Unreadable, match="three"):
        state.cluster("three")
    for repeated in (state.summaries(details=True), state.continuations()):
        named = {read.name for read in repeated} | repeated.unreadable_names
        assert {"one", "two"} <= named <= {"one", "three", "two"}
    (record,) = state.unreadable()
    assert (record.kind, record.table, record.partition, record.key) == (
        "cluster",
        CLUSTERS,
        stored.fleet,
        "three",
    )
    assert record.problem == problem
    assert "sekrit" not in str(record)
    repair()
    assert state.cluster("three") == records[1]
    assert list(state.unreadable()) == []


@pytest.mark.parametrize("damage", REPEATED.values(), ids=REPEATED)
def test_what_only_repeats_the_record_is_read_from_the_record(
    stored: Stored, damage: Callable[[Entity], Entity]
) -> None:
    state = stored.state
    for name in ("one", "three", "two"):
        state.save(fresh(name))
    before = state.summaries(details=True), state.continuations()
    stored.tables.edit(CLUSTERS, stored.fleet, "three", damage)
    assert (state.summaries(details=True), state.continuations()) == before
    assert [summary.name for summary in state.summaries()] == ["one", "three", "two"]
    assert list(state.unreadable()) == []


def test_a_record_that_no_longer_exists_is_no_problem(stored: Stored) -> None:
    saved = stored.state.save(fresh("one"))
    repair = stored.tables.edit(CLUSTERS, stored.fleet, "one", CUT_OFF)
    assert len(stored.state.unreadable()) == 1
    repair()
    (current,) = stored.state.clusters()
    assert current == saved
    stored.state.delete(current)
    assert stored.state.unreadable() == []


def test_events_acts_facts_and_dead_letters_are_listed_without_those_that_cannot_be_read(
    stored: Stored,
) -> None:
    state, fleet = stored.state, stored.fleet
    state.append([event(1), event(2)])
    for number in (1, 2):
        state.save_dead_letter(DeadLetter("jobs", f"m{number}", NOW, "r", "d", "b", 1))
    for table, partition in ((EVENTS, f"{fleet}|one"), (DEAD_LETTERS, fleet)):
        stored.tables.edit(table, partition, stored.tables.keys(table, partition)[0], CUT_OFF)
    events, letters = state.events("one", 5), state.dead_letters(5)
    for listed in (events, letters):
        assert (len(listed), len(listed.unreadable)) == (1, 1)
    assert len(state.events("one", 1)) == len(state.dead_letters(1)) == 1
    assert sorted(record.kind for record in state.unreadable()) == ["dead letter", "event"]


def test_a_plan_that_cannot_be_read_is_none(stored: Stored) -> None:
    state = stored.state
    state.save_plan(plan_record())
    stored.tables.edit(PLANS, stored.fleet, "c" * 40, CUT_OFF)
    assert state.plan("c" * 40) is None
    assert list(state.open_plans()) == []
    assert state.open_plans().unreadable_names == {"c" * 40}
    assert [record.kind for record in state.unreadable()] == ["plan"]
    state.save_plan(plan_record())
    assert state.plan("c" * 40) == plan_record()
    assert list(state.unreadable()) == []


def test_a_plan_in_several_rows_of_which_one_is_missing_is_none(stored: Stored, azurite: int) -> None:
    state, commit = stored.state, "c" * 40
    state.save_plan(large_plan(2500))
    partition = f"parts|{stored.fleet}|{commit}"
    with connect(azurite) as service:
        first, *others = stored.tables.keys(PLANS, partition)
        service.get_table_client(PLANS).delete_entity(partition, first)
    assert others
    assert state.plan(commit) is None
    assert state.open_plans().unreadable_names == {commit}


def test_what_is_stored_again_anyway_begins_anew(stored: Stored) -> None:
    state, fleet = stored.state, stored.fleet
    state.save_sweep(state.sweep())
    state.save_notifier_record(state.notifier_record())
    state.save_fingerprints({"one": "f"})
    for partition, key in (("fleet", f"{fleet} sweep"), ("notifier", fleet), ("marks", fleet)):
        stored.tables.edit(FLEETS, partition, key, CUT_OFF)
    state.save_sweep(state.sweep())
    state.save_notifier_record(state.notifier_record())
    assert state.fingerprints() == {}
    state.save_fingerprints({"one": "f"})
    assert list(state.unreadable()) == []


def test_the_record_of_the_fleet_that_cannot_be_read_is_named(stored: Stored) -> None:
    stored.state.save_fleet(FleetRecord("c" * 40))
    stored.tables.edit(FLEETS, "fleet", stored.fleet, CUT_OFF)
    with pytest.raises(Unreadable, match="partition fleet of the table roadsteadfleets"):
        stored.state.fleet()
    assert [record.kind for record in stored.state.unreadable()] == ["fleet"]


def test_memory_goes_on_without_a_record_that_cannot_be_read() -> None:
    state = MemoryState()
    for name in ("one", "three", "two"):
        state.save(fresh(name))
    whole = state.cluster("three")
    assert whole is not None
    state.damage("three", '{"name": "three"}')
    assert [record.name for record in state.clusters()] == ["one", "two"]
    assert state.clusters().unreadable_names == {"three"}
    assert state.clusters_named(["three"]) == []
    assert [record.name for record in state.clusters_page("one", 1)] == []
    assert state.clusters_page("one", 1).unreadable_names == {"three"}
    assert [record.key for record in state.unreadable()] == ["three"]
    assert list(state.events("three", 5)) == []
    with pytest.raises(Unreadable, match="schema_version is missing"):
        state.cluster("three")
    with pytest.raises(Stale):
        state.save(fresh("three"))
    state.damage("three", to_json(whole))
    assert state.cluster("three") == whole
    assert list(state.unreadable()) == []
