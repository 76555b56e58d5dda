"""Records that cannot be read, in Azurite through the adapter of production: each stops nobody."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import azure.functions as func
import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.tables.memory_state import MemoryState
from shared.adapters.tables import CLUSTERS, TablesState
from shared.adapters.tables.acts import ACTS
from shared.adapters.tables.clusters import FLEETS
from shared.adapters.tables.plans import PLANS
from shared.adapters.tables.state import DEAD_LETTERS, EVENTS
from shared.app.health import Health, health_view
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.app.recovery.housekeeping import purge_expired
from shared.app.recovery.missed_work import plan_missed_head, resend_overdue
from shared.cluster.failures.errors import Stale, Unreadable
from shared.cluster.record import Phase
from shared.cluster.stored_record import to_json
from shared.ports import DeadLetter, FleetRecord, State
from tests.support import fleet_files
from tests.support.azurite import connect
from tests.support.cluster_records import NOW, event, fresh, plan_record
from tests.support.damaged_records import DAMAGED, REPEATED, Entity, Tables, text, without
from tests.support.function_calls import ADMIN, functions
from tests.support.pipeline_runs import push, status

FORMS = [pytest.param(damage, problem, id=name) for name, (damage, problem) in DAMAGED.items()]
CUT_OFF = text(lambda whole: whole[:-5])


@dataclass(frozen=True)
class Stored:
    """A fleet in Azurite, and somebody who edits its records."""

    fleet: str
    state: TablesState
    tables: Tables


@pytest.fixture
def stored(azurite: int) -> Iterator[Stored]:
    fleet = f"records-{uuid.uuid4().hex[:8]}"
    with connect(azurite) as service:
        yield Stored(fleet, TablesState(service, fleet), Tables(service))


@pytest.mark.parametrize(("damage", "problem"), FORMS)
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
        named = {each.name for each in repeated} | repeated.unreadable_names
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
    state.save_plan(plan_record(items=5000))
    partition = f"parts|{stored.fleet}|{commit}"
    with connect(azurite) as service:
        client = service.get_table_client(PLANS)
        for key in stored.tables.keys(PLANS, partition)[:1]:
            client.delete_entity(partition, key)
    if stored.tables.keys(PLANS, partition):
        assert state.plan(commit) is None
        assert state.open_plans().unreadable_names == {commit}


def test_what_is_stored_again_anyway_begins_anew(stored: Stored) -> None:
    state, fleet = stored.state, stored.fleet
    state.save_sweep(state.sweep())
    state.save_announced(state.announced())
    state.save_fingerprints({"one": "f"})
    for partition in ("sweeps", "notifier", "marks"):
        stored.tables.edit(FLEETS, partition, fleet, CUT_OFF)
    state.save_sweep(state.sweep())
    state.save_announced(state.announced())
    assert state.fingerprints() == {}
    state.save_fingerprints({"one": "f"})
    assert list(state.unreadable()) == []


def test_the_record_of_the_fleet_that_cannot_be_read_is_named(stored: Stored) -> None:
    stored.state.save_fleet(FleetRecord("c" * 40))
    stored.tables.edit(FLEETS, "fleet", stored.fleet, CUT_OFF)
    with pytest.raises(Unreadable, match="partition fleet of the table roadsteadfleets"):
        stored.state.fleet()
    assert [record.kind for record in stored.state.unreadable()] == ["fleet"]


def cloud_on(stored: Stored) -> MemoryCloud:
    """Return the app on tables in Azurite, and everything else in memory."""
    cloud = MemoryCloud(state=cast("MemoryState", stored.state))
    push(cloud, fleet_files.fleet("one", "three", "two"))
    cloud.run()
    assert {record.phase for record in cloud.state.clusters()} == {Phase.READY}
    return cloud


def ask(cloud: MemoryCloud, function: str, method: str = "GET", **route: str) -> tuple[int, Any]:
    headers = {**ADMIN, "Content-Type": "application/json"}
    request = func.HttpRequest(method, f"/api/{function}", body=b"{}", headers=headers, route_params=route)
    reply = functions(cloud.ports)[function].get_user_function()(request)
    return reply.status_code, json.loads(reply.get_body())


def in_health(cloud: MemoryCloud) -> Any:
    """Return the records that health names; a busy machine may take longer than one answer waits."""
    return health_view(Health(cloud.ports, answer_seconds=60).read()).body["unreadable"]


def larger(*names: str) -> dict[str, bytes]:
    """Return the fleet with another number of nodes in some clusters."""
    files = fleet_files.fleet("one", "three", "two")
    return files | {f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, count=4) for name in names}


@pytest.mark.parametrize(("damage", "problem"), FORMS)
def test_one_unreadable_record_stops_nobody_and_everybody_says_it(
    stored: Stored, damage: Callable[[Entity], Entity], problem: str
) -> None:
    cloud = cloud_on(stored)
    repair = stored.tables.edit(CLUSTERS, stored.fleet, "three", damage)
    http, fleet = ask(cloud, "clusters")
    assert (http, [each["name"] for each in fleet["clusters"]]) == (200, ["one", "two"])
    assert [(record["key"], problem in record["problem"]) for record in fleet["unreadable"]] == [
        ("three", True)
    ]
    http, recorded = ask(cloud, "recorded")
    assert (http, [record["key"] for record in recorded["unreadable"]]) == (200, ["three"])
    assert [(record["key"], record["table"]) for record in in_health(cloud)] == [("three", CLUSTERS)]
    http, detail = ask(cloud, "cluster", name="three")
    assert (http, problem in detail["error"]) == (503, True)

    accepted = len(cloud.azure.accepted)
    commit = push(cloud, larger("one", "three"))
    cloud.run()
    assert cloud.dead_letters == []
    assert cloud.state.fleet().commit == commit
    state, description = status(cloud, commit)
    assert (state, description.startswith("three: ")) == ("failure", True)
    changed = {write["resource"].rsplit("/", 1)[-1] for write in cloud.azure.accepted[accepted:]}
    assert "three" not in " ".join(changed)
    one = cloud.state.cluster("one")
    assert one is not None
    assert (one.phase, one.observed_generation) == (Phase.READY, 2)
    assert ask(cloud, "sync", "POST")[1]["queued"] is False

    repair()
    assert ask(cloud, "sync", "POST")[1]["queued"] is True
    cloud.clock.advance(60)
    cloud.run()
    assert status(cloud, commit)[0] == "success"
    three = cloud.state.cluster("three")
    assert three is not None
    assert (three.phase, three.observed_generation) == (Phase.READY, 2)


def test_an_unreadable_cluster_that_git_no_longer_has_is_neither_deleted_nor_created_again(
    stored: Stored,
) -> None:
    cloud = cloud_on(stored)
    before = len(cloud.azure.accepted)
    repair = stored.tables.edit(CLUSTERS, stored.fleet, "three", without("uid"))
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    assert status(cloud, commit)[0] == "failure"
    assert cloud.azure.accepted[before:] == []
    push(cloud, fleet_files.fleet("one", "three", "two"))
    cloud.run()
    assert cloud.azure.accepted[before:] == []
    repair()
    cloud.clock.advance(60)
    assert plan_missed_head(cloud.ports)
    cloud.run()
    assert {record.name: record.phase for record in cloud.state.clusters()} == dict.fromkeys(
        ("one", "three", "two"), Phase.READY
    )


def test_a_job_whose_record_cannot_be_read_waits_and_goes_on_by_itself(stored: Stored) -> None:
    cloud = cloud_on(stored)
    push(cloud, larger("one", "three"))
    while not cloud.state.continuations():
        assert cloud.step()
    repair = stored.tables.edit(CLUSTERS, stored.fleet, "three", without("uid"))
    for _ in range(200):
        if not cloud.step():
            cloud.clock.advance(5)
    assert cloud.dead_letters == []
    resend_overdue(cloud.ports)
    repair()
    cloud.run()
    three = cloud.state.cluster("three")
    assert three is not None
    assert (three.phase, three.observed_generation) == (Phase.READY, 2)


def test_the_timers_go_on_without_a_record_that_cannot_be_read(stored: Stored) -> None:
    cloud = cloud_on(stored)
    stored.tables.edit(
        CLUSTERS, stored.fleet, "three", lambda record: {**without("uid")(record), "summary": "{"}
    )
    events = len(stored.tables.keys(EVENTS, f"{stored.fleet}|three"))
    for timer in ("sweep", "check", "resend_overdue"):
        functions(cloud.ports)[timer].get_user_function()(func.timer.TimerRequest())
    cloud.clock.advance(86400 * 60)
    purge_expired(cloud.ports)
    cloud.run()
    assert cloud.dead_letters == []
    assert len(stored.tables.keys(EVENTS, f"{stored.fleet}|three")) == events
    assert not [orphan for listing in cloud.state.sweep().listings for orphan in listing.orphans]


def test_the_record_of_the_fleet_that_cannot_be_read_is_said_on_the_commit(stored: Stored) -> None:
    cloud = cloud_on(stored)
    repair = stored.tables.edit(FLEETS, "fleet", stored.fleet, without("commit"))
    repair_again = stored.tables.edit(FLEETS, "fleet", stored.fleet, CUT_OFF)
    http, body = ask(cloud, "clusters")
    assert (http, "roadsteadfleets" in body["error"]) == (503, True)
    commit = push(cloud, larger("one"))
    for _ in range(300):
        if not cloud.step():
            cloud.clock.advance(10)
    assert cloud.dead_letters == []
    state, description = status(cloud, commit)
    assert (state, "roadsteadfleets" in description or "Unreadable" in description) == ("error", True)
    del repair_again
    repair()
    cloud.run()
    assert status(cloud, commit)[0] == "success"


def test_a_plan_that_cannot_be_read_is_made_again(stored: Stored) -> None:
    cloud = cloud_on(stored)
    commit = cloud.state.fleet().commit
    stored.tables.edit(PLANS, stored.fleet, commit, CUT_OFF)
    assert ask(cloud, "clusters")[0] == 200
    assert ask(cloud, "sync", "POST")[1]["queued"] is True
    cloud.run()
    assert cloud.state.plan(commit) is not None
    assert in_health(cloud) == []


def test_the_audit_has_the_acts_that_can_be_read(stored: Stored) -> None:
    cloud = cloud_on(stored)
    for _ in range(2):
        cloud.clock.advance(1)
        ask(cloud, "sync", "POST")
    stored.tables.edit(ACTS, stored.fleet, stored.tables.keys(ACTS, stored.fleet)[0], CUT_OFF)
    http, audit = ask(cloud, "audit")
    assert (http, len(audit["acts"])) == (200, 1)
    assert [record["kind"] for record in in_health(cloud)] == ["act"]


@pytest.fixture(params=["memory", "tables"])
def edited(request: pytest.FixtureRequest) -> tuple[State, Callable[[str], object]]:
    """Return a state with the clusters one, three and two, and what puts a text in the record of three."""
    if request.param == "memory":
        memory = MemoryState()
        state: State = memory
        edit: Callable[[str], object] = partial(memory.damage, "three")
    else:
        stored: Stored = request.getfixturevalue("stored")
        state = stored.state

        def edit(new: str) -> object:
            return stored.tables.edit(CLUSTERS, stored.fleet, "three", lambda record: record | {"body0": new})

    for name in ("one", "three", "two"):
        state.save(fresh(name))
    return state, edit


def test_both_states_go_on_without_a_record_that_cannot_be_read(
    edited: tuple[State, Callable[[str], object]],
) -> None:
    state, edit = edited
    whole = state.cluster("three")
    assert whole is not None
    edit('{"name": "three"}')
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
    edit(to_json(whole))
    assert state.cluster("three") == whole
    assert list(state.unreadable()) == []


def test_a_fleet_of_unreadable_records_alone_creates_nothing() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    text_before, before = cloud.state.damage("one", "["), len(cloud.azure.accepted)
    commit = push(cloud, larger("one"))
    cloud.run()
    assert cloud.azure.accepted[before:] != []  # of the two others, which are new
    assert not [
        each for each in cloud.azure.accepted[before:] if "one" in each["resource"].rsplit("/", 1)[-1]
    ]
    assert status(cloud, commit)[0] == "failure"
    assert cloud.state.fleet().unreadable == ("one",)
    cloud.state.damage("one", text_before)
    cloud.clock.advance(60)
    assert plan_missed_head(cloud.ports)
    cloud.run()
    assert cloud.state.fleet().unreadable == ()
    assert status(cloud, commit)[0] == "success"


def test_the_dead_letter_of_a_job_whose_record_cannot_be_read_does_not_come_back() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    while not cloud.state.clusters():
        assert cloud.step()
    cloud.state.damage("one", "[")
    body = b'{"cluster": "one", "uid": "u", "generation": 1, "sequence": 1}'
    received = ReceivedDeadLetter("jobs", "m1", cloud.clock(), body, body.decode())
    handle_dead_letter(received, cloud.ports)


def test_a_rollout_that_cannot_be_read_starts_nothing_more_and_goes_on_once_it_can(stored: Stored) -> None:
    cloud = cloud_on(stored)
    commit = push(cloud, larger("one", "three", "two"))
    while cloud.state.fleet().rollout != commit or not cloud.state.continuations():
        assert cloud.step()
    repair = stored.tables.edit(FLEETS, f"rollouts|{stored.fleet}", commit, CUT_OFF)
    for _ in range(300):
        if not cloud.step():
            cloud.clock.advance(10)
    assert cloud.dead_letters == []
    assert [record["kind"] for record in in_health(cloud)] == ["rollout"]
    assert ask(cloud, "clusters")[0] == 200
    assert status(cloud, commit)[0] == "failure"
    assert "roadsteadfleets" in status(cloud, commit)[1]
    assert sorted(record.generation for record in cloud.state.clusters()) == [1, 1, 2]
    repair()
    resend_overdue(cloud.ports)
    cloud.run()
    assert status(cloud, commit)[0] == "success"
    assert {record.observed_generation for record in cloud.state.clusters()} == {2}
