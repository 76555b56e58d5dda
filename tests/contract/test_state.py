"""One suite for the State port: in memory, and in Table Storage (Azurite) through the real client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from shared.adapters.tables import TablesState, table_service
from shared.jobs.acceptance import accept_new
from shared.jobs.acts import Act
from shared.jobs.apply_outcome import apply_outcome
from shared.jobs.failures.errors import ClusterMissing, ReconcileError, Stale, Unavailable
from shared.jobs.failures.fleet_problem import FleetProblem
from shared.jobs.job import Contest, ContestKind, start_step
from shared.jobs.outcomes import Fail, Wait
from shared.jobs.rate_limits import Bucket
from shared.jobs.recipes import Step
from shared.jobs.record import ClusterRecord, Phase
from shared.jobs.summary import summary_of
from shared.ports import DeadLetter, FleetRecord, GroupMember, Source, State
from shared.ports.sweeps import Listing, Orphan, SweepRecord
from shared.ports.timers import TimerRun
from tests.support.azurite import KEY, connect, connection_string
from tests.support.cluster_records import NOW, event, later, plan_record, record
from tests.support.desired_clusters import desired


def fresh(name: str = "one") -> ClusterRecord:
    return accept_new(desired(name), uid="0badcafe", commit="c" * 40, now=NOW)


def test_what_was_never_saved_is_not_there(state: State) -> None:
    assert state.cluster("one") is None
    assert list(state.clusters()) == []
    assert list(state.active_clusters()) == []
    assert list(state.events("one", 5)) == []
    assert state.plan("c" * 40) is None
    assert list(state.open_plans()) == []
    assert state.fleet() == FleetRecord()
    assert not state.delivery_seen("d")


def test_a_saved_record_is_read_back_as_it_was(state: State) -> None:
    waiting = apply_outcome(fresh(), Wait(20, "Azure is creating ünicode"), now=NOW, jitter=0)
    saved = state.save(waiting)
    found = state.cluster("one")
    assert found == saved == waiting
    assert found is not None
    assert found.etag == saved.etag != ""


def test_a_record_is_written_only_over_the_version_that_was_read(state: State) -> None:
    first = state.save(fresh())
    second = state.save(replace(first, commit="d" * 40))
    with pytest.raises(Stale):
        state.save(replace(first, commit="e" * 40))
    found = state.cluster("one")
    assert found is not None
    assert (found.commit, found.etag) == ("d" * 40, second.etag)


def test_a_new_record_is_not_written_over_an_existing_one(state: State) -> None:
    state.save(fresh())
    with pytest.raises(Stale):
        state.save(fresh())


def test_a_deleted_record_cannot_be_saved_again(state: State) -> None:
    saved = state.save(fresh())
    state.delete(saved)
    with pytest.raises(Stale):
        state.save(saved)
    assert state.cluster("one") is None


def test_only_the_version_that_was_read_is_deleted(state: State) -> None:
    first = state.save(fresh())
    second = state.save(replace(first, commit="d" * 40))
    with pytest.raises(Stale):
        state.delete(first)
    state.delete(second)
    state.delete(second)
    assert state.cluster("one") is None


def test_records_are_listed_by_name_and_active_ones_alone(state: State) -> None:
    for name in ("b", "a", "c"):
        state.save(fresh(name))
    idle = state.cluster("b")
    assert idle is not None
    state.save(replace(idle, job=replace(idle.job, active=False)))
    assert [found.name for found in state.clusters()] == ["a", "b", "c"]
    assert [found.name for found in state.clusters_page("", 2)] == ["a", "b"]
    assert [found.name for found in state.clusters_page("b", 2)] == ["c"]
    assert list(state.clusters_page("c", 2)) == []
    assert [found.name for found in state.active_clusters()] == ["a", "c"]


def test_a_record_may_be_larger_than_a_property(state: State) -> None:
    big = fresh()
    document = {
        **big.document,
        "spec": {**big.document["spec"], "tags": {f"t{n}": "v" * 250 for n in range(300)}},
    }
    state.save(replace(big, document=document))
    found = state.cluster("one")
    assert found is not None
    assert found.document == document


def test_an_event_that_is_saved_twice_in_one_call_is_there_once(state: State) -> None:
    state.append([event(1), event(2), event(1), event(1, cluster="two")])
    assert [found.sequence for found in state.events("one", 5)] == [2, 1]
    assert [found.sequence for found in state.events("two", 5)] == [1]


def test_events_come_newest_first_and_bounded(state: State) -> None:
    state.append([event(n) for n in range(1, 8)])
    assert [found.sequence for found in state.events("one", 3)] == [7, 6, 5]
    assert state.events("one", 1)[0] == event(7)


def test_clusters_are_recorded_for_the_group_that_they_delete(state: State) -> None:
    assert state.group_delete_intents("s|rg-one") == []
    one, two, three = (GroupMember(name, "0badcafe") for name in ("one", "two", "three"))
    for intent in (two, one, one):
        state.add_group_delete_intent("s|rg-one", intent)
    state.add_group_delete_intent("s|rg-ones", three)
    assert state.group_delete_intents("s|rg-one") == [one, two]
    state.remove_group_delete_intent("s|rg-one", one)
    state.remove_group_delete_intent("s|rg-one", GroupMember("two", "another"))
    assert state.group_delete_intents("s|rg-one") == [two]
    assert state.clusters() == []


def test_named_records_come_in_the_order_of_their_names_given(state: State) -> None:
    for name in ("a", "b", "c"):
        state.save(fresh(name))
    assert [found.name for found in state.clusters_named(["c", "missing", "a"])] == ["c", "a"]
    assert list(state.clusters_named([])) == []


def test_the_members_of_a_group_are_found_and_those_of_no_other_group(state: State) -> None:
    one, two, again = (
        GroupMember("one", "0badcafe"),
        GroupMember("two", "0badcafe"),
        GroupMember("one", "later"),
    )
    many = [("s|rg-many", GroupMember(f"c{number:03}", "0badcafe")) for number in range(250)]
    assert state.group_members("s|rg-one") == []
    state.add_group_members([])
    state.add_group_members([("s|rg-one", two), ("s|rg-one", one), ("s|rg-ones", one), *many])
    state.add_group_members([("s|rg-one", one)])
    assert state.group_members("s|rg-one") == [one, two]
    assert state.group_members("s|rg-many") == [member for _, member in many]
    state.add_group_members([("s|rg-one", again)])
    state.remove_group_member("s|rg-one", one)
    state.remove_group_member("s|rg-one", one)
    assert state.group_members("s|rg-one") == [again, two]
    assert state.group_members("s|rg-ones") == [one]
    assert state.group_delete_intents("s|rg-one") == []


def test_an_event_that_is_appended_twice_is_stored_once(state: State) -> None:
    state.append([event(1), event(2)])
    state.append([event(2)])
    assert len(state.events("one", 10)) == 2


def test_events_of_one_moment_come_by_sequence_and_belong_to_their_cluster(state: State) -> None:
    state.append([event(1, at=NOW), event(2, at=NOW), event(3, at=NOW, cluster="one-two")])
    assert [found.sequence for found in state.events("one", 10)] == [2, 1]


@pytest.mark.parametrize("items", [1, 5000])
def test_a_plan_is_read_back_as_it_was(state: State, items: int) -> None:
    state.save_plan(plan_record(items=items))
    assert state.plan("c" * 40) == plan_record(items=items)


def test_only_open_plans_are_listed_newest_first(state: State) -> None:
    for number, commit in enumerate(("a" * 40, "b" * 40, "d" * 40)):
        state.save_plan(replace(plan_record(commit), at=NOW + timedelta(minutes=number)))
    state.save_plan(replace(plan_record("b" * 40), open=False))
    assert [one.plan.commit[0] for one in state.open_plans()] == ["d", "a"]


def test_the_fleet_record_is_written_by_compare_and_swap(state: State) -> None:
    state.save_fleet(FleetRecord("a" * 40, NOW))
    read = state.fleet()
    assert read == FleetRecord("a" * 40, NOW)
    problem = FleetProblem("no answer", "Unavailable", "c" * 40)
    state.save_fleet(replace(read, commit="b" * 40, problem=problem))
    with pytest.raises(Stale):
        state.save_fleet(read)
    with pytest.raises(Stale):
        state.save_fleet(FleetRecord("d" * 40, NOW))
    assert state.fleet() == FleetRecord("b" * 40, NOW, problem)


def test_what_distinguishes_two_apps_is_read_back_as_it_was(state: State) -> None:
    found = replace(FleetRecord("a" * 40, NOW), installation="4be0a3f1", contested=("one",))
    found = replace(found, source=Source(42, "main"), other_source=Source(43, "main"))
    state.save_fleet(found)
    assert state.fleet() == found
    contest = Contest(ContestKind.INSTALLATION, ("0a0b0c0d", ""), "0badcafe")
    waiting = apply_outcome(fresh(), Wait(20, "another app", contest=contest), now=NOW, jitter=0)
    known = replace(waiting, installation="4be0a3f1", life="0badcafe", overruled=("",), predecessors=("",))
    state.save(known)
    assert state.cluster("one") == known


def test_events_before_a_time_are_older_by_a_millisecond_at_least(state: State) -> None:
    state.append([event(n) for n in range(1, 6)])
    assert [found.sequence for found in state.events("one", 2, before=later(4))] == [3, 2]
    assert list(state.events("one", 2, before=later(1))) == []


def test_acts_come_newest_first_each_once_with_its_last_result(state: State) -> None:
    acts = [Act(str(n), later(n), "approve", "c0ffee", "ada", reason="why not") for n in range(3)]
    for act in acts:
        state.save_act(act)
    done = replace(acts[1], result="accepted")
    state.save_act(done)
    assert list(state.acts(5)) == [acts[2], done, acts[0]]
    assert list(state.acts(1)) == [acts[2]]
    assert list(state.acts(5, before=acts[2].at)) == [done, acts[0]]
    assert state.prune_acts(acts[2].at) == 2
    assert list(state.acts(5)) == [acts[2]]


def test_the_settings_that_were_seen_last_are_read_again(state: State) -> None:
    assert state.settings_seen() == {}
    state.save_settings_seen({"POLL_SECONDS": "20"})
    state.save_settings_seen({"POLL_SECONDS": "30"})
    assert state.settings_seen() == {"POLL_SECONDS": "30"}
    assert list(state.acts(5)) == []


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


def test_a_token_bucket_is_written_by_compare_and_swap(state: State) -> None:
    assert state.bucket("s|arm-read") is None
    state.save_bucket("s|arm-read", Bucket(NOW))
    with pytest.raises(Stale):
        state.save_bucket("s|arm-read", Bucket(NOW))
    read = state.bucket("s|arm-read")
    assert read == Bucket(NOW)
    assert read is not None
    moment = later(1.000001)
    state.save_bucket("s|arm-read", replace(read, full_at=moment))
    with pytest.raises(Stale):
        state.save_bucket("s|arm-read", replace(read, full_at=later(2)))
    assert state.bucket("s|arm-read") == Bucket(moment)


def test_summaries_have_details_only_where_they_are_asked_for(state: State) -> None:
    saved = state.save(
        replace(fresh(), document={**fresh().document, "class": "small", "labels": {"a": "b"}})
    )
    (plain,), (detailed,) = state.summaries(), state.summaries(details=True)
    assert plain == detailed == summary_of(saved)
    assert plain.details is None
    assert detailed.details == summary_of(saved).details
    assert detailed.details is not None
    assert (detailed.details.cluster_class, detailed.details.labels) == ("small", {"a": "b"})
    assert detailed.details.conditions == {"Ready": False, "Stalled": False}


def test_the_last_run_of_a_timer_is_kept_and_an_expected_one_until_it_has_run(state: State) -> None:
    assert state.timer_runs() == {}
    state.save_timer_run("sweep", NOW)
    state.expect_timers(["sweep", "resend_overdue"], later(5))
    expected = TimerRun(later(5), ran=False)
    assert state.timer_runs() == {"sweep": TimerRun(NOW), "resend_overdue": expected}
    state.expect_timers(["sweep", "resend_overdue"], later(9))
    assert state.timer_runs()["resend_overdue"] == expected
    state.save_timer_run("resend_overdue", later(7))
    state.save_timer_run("sweep", later(8))
    assert state.timer_runs() == {"sweep": TimerRun(later(8)), "resend_overdue": TimerRun(later(7))}


def test_a_delivery_is_seen_once_it_is_remembered(state: State) -> None:
    state.remember_delivery("2f1c/?#\\id", NOW)
    state.remember_delivery("2f1c/?#\\id", NOW)
    assert state.delivery_seen("2f1c/?#\\id")
    assert not state.delivery_seen("other")


def test_a_delivery_remembers_when_the_head_that_it_announced_was_pushed(state: State) -> None:
    head = "c" * 40
    assert state.announced_at(head) is None
    state.remember_delivery("digest-1", later(5), head=head, pushed=NOW)
    assert state.announced_at(head) == NOW
    state.remember_delivery("digest-2", later(6), head=head)
    assert state.announced_at(head) == later(6)
    assert (state.delivery_seen("digest-1"), state.delivery_seen(head)) == (True, False)
    assert state.announced_at("d" * 40) is None
    assert state.prune_deliveries(later(7)) == 3
    assert state.announced_at(head) is None


def test_blobs_are_saved_byte_for_byte(state: State) -> None:
    blobs = {"a" * 40: b"", "b" * 40: bytes(range(256)), "c" * 40: b"x" * 60_000}
    assert dict(state.blobs(blobs)) == {}
    for _ in range(2):
        state.save_blobs(blobs)
    assert dict(state.blobs([*blobs, "d" * 40])) == blobs
    assert dict(state.blobs(["b" * 40])) == {"b" * 40: bytes(range(256))}
    assert dict(state.blobs([])) == {}


def test_many_and_large_blobs_are_saved_at_once(state: State) -> None:
    blobs = {f"{number:040x}": b"%d" % number for number in range(250)}
    blobs |= {f"{number:040x}": b"x" * 60_000 for number in range(1000, 1080)}
    state.save_blobs(blobs)
    assert dict(state.blobs(blobs)) == blobs


def test_the_fingerprints_of_a_large_fleet_are_read_back_as_they_were(state: State) -> None:
    assert dict(state.fingerprints()) == {}
    marks = {f"cluster-{number:05d}": f"{number * 7919:016x}" for number in range(10_000)}
    state.save_fingerprints(marks)
    assert dict(state.fingerprints()) == marks
    state.save_fingerprints({"one": "0"})
    assert dict(state.fingerprints()) == {"one": "0"}
    assert state.fleet() == FleetRecord()


CALLS: list[Callable[[State], object]] = [
    lambda state: state.cluster("one"),
    lambda state: state.clusters(),
    lambda state: state.save(record()),
    lambda state: state.append([event(1)]),
    lambda state: state.save_plan(plan_record()),
]


@pytest.mark.parametrize("call", CALLS)
def test_storage_that_does_not_answer_is_unavailable(call: Callable[[State], object]) -> None:
    with connect(1) as service, pytest.raises(Unavailable):
        call(TablesState(service, "fleet"))


def test_a_refused_key_is_our_error_and_does_not_show_the_key(azurite: int) -> None:
    wrong = connection_string(azurite).replace("Eby8vdM0", "AAAAAAAA")
    with table_service(connection_string=wrong, endpoint=None, credential=None) as service:
        with pytest.raises(ReconcileError) as caught:
            TablesState(service, "fleet").cluster("one")
        assert KEY[8:] not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["", "a/b", "a\\b", "a#b", "a?b", "a'b", "a\x00b", "a\nb", "\x85", "\ud800", "é", "n" * 5000]
)
def test_a_name_that_nothing_can_have_is_not_there(state: State, name: str) -> None:
    state.save(fresh())
    assert state.cluster(name) is None
    assert state.plan(name) is None
    assert not state.delivery_seen(name)
    assert list(state.events(name, 5)) == []
    assert [found.name for found in state.clusters_page(name, 5) if found.name != "one"] == []


def test_the_record_of_the_sweeps_is_written_only_over_the_version_that_was_read(state: State) -> None:
    assert state.sweep() == SweepRecord()
    orphan = Orphan("/subscriptions/s/x", "one", "0a0b@main", NOW)
    first = SweepRecord(NOW, later(60), (Listing("s", NOW, "no answer", (orphan,)),))
    state.save_sweep(first)
    saved = state.sweep()
    assert saved == first
    state.save_sweep(replace(saved, listings=()))
    with pytest.raises(Stale):
        state.save_sweep(saved)
    assert state.sweep().listings == ()


def test_a_summary_says_where_the_cluster_is_and_what_a_sweep_found(state: State) -> None:
    ready = replace(fresh(), observed_generation=1, phase=Phase.READY)
    lost = apply_outcome(
        replace(ready, job=replace(ready.job, step=start_step(Step.VERIFY, NOW))),
        Fail(ClusterMissing("it no longer exists")),
        now=NOW,
        jitter=0,
    )
    state.save(lost)
    (summary,) = state.summaries()
    assert summary == summary_of(lost)
    assert (summary.lost, summary.finding) == (True, "ClusterMissing")
    assert (summary.subscription, summary.resource_group) == (
        lost.desired.id.subscription,
        lost.desired.id.resource_group,
    )
