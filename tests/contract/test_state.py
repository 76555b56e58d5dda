"""The state: records and plans, and a Table Storage that does not answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from shared.adapters.tables import storage_tables, table_service
from shared.azure.differences import Difference
from shared.cluster.divergence.drift import Drift, DriftedField
from shared.cluster.failures.errors import ClusterMissing, ReconcileError, Stale, Unavailable
from shared.cluster.findings.conditions import with_in_sync
from shared.cluster.job import Contest, ContestKind, start_step
from shared.cluster.outcomes import Fail, Wait
from shared.cluster.queues.continuations import continuations_of
from shared.cluster.recipes import Step
from shared.cluster.record_parts import CompanionState, Phase
from shared.cluster.reporting.summary import SummaryDetails, summary_of
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.language.model.cluster.drift import DriftAction
from shared.ports import FleetRecord, GroupMember, Source, State
from shared.ports.state import AppIdentity
from tests.support.azurite import KEY, connect, connection_string
from tests.support.cluster_records import NOW, event, fresh, plan_record, record


def test_what_was_never_saved_is_not_there(state: State) -> None:
    assert state.cluster("one") is None
    assert list(state.clusters()) == []
    assert list(state.continuations()) == []
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
    assert [found.name for found in state.continuations()] == ["a", "c"]
    assert list(state.continuations()) == continuations_of(state.clusters())


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


@pytest.mark.parametrize("items", [1, 5000])
def test_a_plan_is_read_back_as_it_was(state: State, items: int) -> None:
    state.save_plan(plan_record(items=items))
    assert state.plan("c" * 40) == plan_record(items=items)


def test_only_open_plans_are_listed_newest_first(state: State) -> None:
    for number, commit in enumerate(("a" * 40, "b" * 40, "d" * 40)):
        state.save_plan(replace(plan_record(commit), at=NOW + timedelta(minutes=number)))
    state.save_plan(replace(plan_record("b" * 40), open=False))
    assert [open_plan.plan.commit[0] for open_plan in state.open_plans()] == ["d", "a"]


def test_what_a_list_says_of_plans_is_read_without_their_items(state: State) -> None:
    state.save_plan(plan_record(items=5000))
    saved = state.plan("c" * 40)
    assert saved is not None
    state.save_report(replace(saved, reported="success: all in sync"))
    (brief,) = state.briefs_since(NOW)
    assert brief == replace(saved.brief, reported="success: all in sync")
    assert brief.approval is None or brief.approval.clusters == ()
    assert state.briefs_since(NOW + timedelta(seconds=1)) == []


def test_summaries_have_details_only_where_they_are_asked_for(state: State) -> None:
    saved = state.save(
        replace(fresh(), document={**fresh().document, "class": "small", "labels": {"a": "b"}})
    )
    (plain,), (detailed,) = state.summaries(), state.summaries(details=True)
    assert plain == detailed == summary_of(saved)
    assert plain.details == SummaryDetails()
    assert detailed.details == summary_of(saved).details
    assert detailed.details is not None
    assert (detailed.details.cluster_class, detailed.details.labels) == ("small", {"a": "b"})
    assert detailed.details.conditions == {"Ready": False, "Stalled": False}


def test_what_distinguishes_two_apps_is_read_back_as_it_was(state: State) -> None:
    found = replace(FleetRecord("a" * 40, NOW), app=AppIdentity("4be0a3f1"))
    found = replace(
        found, origin=replace(found.origin, source=Source(42, "main"), other_source=Source(43, "main"))
    )
    state.save_fleet(found)
    assert state.fleet() == found
    contest = Contest(ContestKind.INSTALLATION, ("0a0b0c0d", ""), "0badcafe")
    waiting = apply_outcome(fresh(), Wait(20, "another app", contest=contest), now=NOW, jitter=0)
    known = replace(
        waiting,
        ownership=replace(waiting.ownership, installation="4be0a3f1", overruled=("",), predecessors=("",)),
        azure=replace(waiting.azure, life="0badcafe"),
    )
    state.save(known)
    assert state.cluster("one") == known


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
        call(State(storage_tables(service), "fleet"))


def test_a_refused_key_is_our_error_and_does_not_show_the_key(azurite: int) -> None:
    wrong = connection_string(azurite).replace("Eby8vdM0", "AAAAAAAA")
    with table_service(connection_string=wrong, endpoint=None, credential=None) as service:
        with pytest.raises(ReconcileError) as caught:
            State(storage_tables(service), "fleet").cluster("one")
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
    assert (summary.place.subscription, summary.place.resource_group) == (
        lost.desired.id.subscription,
        lost.desired.id.resource_group,
    )


def test_a_summary_says_since_when_a_cluster_differs_and_what_waits_for_an_approval(state: State) -> None:
    field = DriftedField("tags.cost", '"a"', '"b"', NOW, action=DriftAction.APPROVE, effect="in place")
    ready = replace(fresh(), observed_generation=1, phase=Phase.READY)
    ready = replace(ready, job=replace(ready.job, active=False))
    window = Difference("maintenanceWindows[a].maintenanceWindow.durationHours", 4, 8)
    differs = with_in_sync(ready, Drift((field,), correction="id"), NOW)
    companions = CompanionState((window,))
    differs = replace(differs, observation=replace(differs.observation, companions=companions))
    state.save(differs)
    (summary,) = state.summaries()
    assert summary == summary_of(differs)
    assert (summary.divergence.differs_since, summary.divergence.to_approve) == (NOW, 1)
    found = state.cluster(differs.name)
    assert found is not None
    assert (found.divergence.drift, found.observation.companions.differences) == (
        differs.divergence.drift,
        (window,),
    )
