"""Two apps of one fleet, each with its own state: both report it, and neither writes until one takes over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import take_over
from shared.app.api.views.clusters import fleet_view
from shared.azure.rate_limits import ARM_READ
from shared.cluster.failures.errors import Obstructed
from shared.cluster.job import ContestKind, Delay
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports import FleetConfig, Timing
from shared.ports.azure import GetCluster, GetGroup, PatchCluster, PutCluster, WriteResponse
from tests.support import fleet_files
from tests.support.limited_clusters import without_tokens
from tests.support.one_cluster import ONE, advice, cluster, files, ready, record
from tests.support.pipeline_runs import (
    accepted,
    deliver_due,
    one_step_a_message,
    phases,
    push,
    status,
    step_until,
)
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import sweep

pytestmark = pytest.mark.lives

TAG = "  tags: {cost: x}\n"


def second(first: MemoryCloud, *, branch: str = "staging") -> MemoryCloud:
    """Return an app of the same fleet on another branch, with a state of its own."""
    config = FleetConfig(
        "example", "example/fleet", branch=branch, timing=Timing(lease_seconds=20, poll_seconds=5)
    )
    other = MemoryCloud(seed=len(branch), config=config, peer=first, throttle=False, timer_seconds=60)
    commit = other.repository.push(files(TAG))
    other.repository.reset(commit, branch)
    return other


def two() -> tuple[MemoryCloud, MemoryCloud]:
    """Return two apps: the second one has met the cluster of the first one, and waits."""
    first = ready()
    other = second(first)
    other.run(seconds=120, until=lambda: False)
    return first, other


def puts(cloud: MemoryCloud) -> int:
    return accepted(cloud)["update", "one"]


def tags(cloud: MemoryCloud) -> dict[str, str]:
    return {key: value for key, value in cluster(cloud)["tags"].items() if key.startswith("roadstead-")}


def installation(cloud: MemoryCloud) -> str:
    return cloud.state.fleet().app.installation


def test_a_second_app_writes_nothing_but_its_mark() -> None:
    first, other = two()
    live = cluster(first)
    assert "cost" not in live["tags"]
    assert tags(first)["roadstead-installation"] == f"{installation(first)}@main"
    assert tags(first)["roadstead-contested-by"] == f"{installation(other)}@staging"
    assert accepted(first)["update", "one"] == 1, "the contest tag"
    assert record(other).contested
    whom = f"the installation {installation(first)} on branch main manages it too"
    assert record(other).job.reason == f"the cluster one is not written to: {whom}"


def test_both_apps_report_each_other_and_neither_writes() -> None:
    first, other = two()
    commit = push(first, files("  tags: {team: shop}\n"))
    first.run(seconds=300, until=lambda: False)
    other.run(seconds=600, until=lambda: False)
    assert "team" not in cluster(first)["tags"]
    assert "cost" not in cluster(first)["tags"]
    for cloud, rival in ((first, other), (other, first)):
        assert record(cloud).contested
        assert installation(rival) in record(cloud).job.reason
        assert "roadstead takeover one" in advice(cloud)
        view = fleet_view(cloud.ports)
        assert view["problem"].startswith("clusters that are not written to")
        assert view["problem"].endswith(": one")
        assert "takeover" in view["fleetSuggestedAction"]
    state, description = status(first, commit)
    assert state == "pending"
    assert "one: the cluster one is not written to" in description


def test_a_contest_of_a_cluster_that_waits_for_an_operator_already_is_reported() -> None:
    first, _ = two()
    one_step_a_message(first)
    push(first, files("  tags: {team: shop}\n"))
    step_until(first, lambda: record(first).job.step.name == Step.CLUSTER and not record(first).contested)
    waiting = record(first)
    next_run = replace(waiting.job.next_run, action_required="move the pods")
    first.state.save(replace(waiting, job=replace(waiting.job, next_run=next_run)))
    reports = first.broker.peek("plans", session="example:reports")
    first.clock.advance(5)  # the time of another report
    deliver_due(first, "changes")
    assert record(first).contested
    assert len(first.broker.peek("plans", session="example:reports")) > len(reports)


def test_a_takeover_by_the_second_app_moves_the_cluster_and_the_first_one_reports_it() -> None:
    first, other = two()
    result = take_over("one", "jo", other.ports)
    assert (result.status, dict(result.body)) == (
        202,
        {"target": "one", "by": "jo"},
    )
    other.run(seconds=600)
    assert phases(other) == {"one": Phase.READY}
    assert cluster(first)["tags"]["cost"] == "x"
    assert tags(first)["roadstead-installation"] == f"{installation(other)}@staging"
    assert "roadstead-contested-by" not in tags(first)
    assert fleet_view(other.ports)["problem"] == ""
    assert [e.message for e in other.state.events("one", 50) if e.reason == "TakenOver"] == [
        f"taken over from the installation {installation(first)} by jo"
    ]
    push(first, files("  tags: {team: shop}\n"))
    first.run(seconds=120, until=lambda: False)
    assert record(first).contested
    assert "team" not in cluster(first)["tags"]


def test_a_takeover_by_the_first_app_removes_the_mark_and_continues() -> None:
    first, _ = two()
    push(first, files("  tags: {team: shop}\n"))
    first.run(seconds=120, until=lambda: False)
    assert take_over("one", "jo", first.ports).status == 202
    first.run(seconds=600)
    assert phases(first) == {"one": Phase.READY}
    assert cluster(first)["tags"]["team"] == "shop"
    assert "roadstead-contested-by" not in tags(first)
    assert record(first).ownership.overruled == ()


def test_a_takeover_overrules_only_the_installations_that_the_operator_saw() -> None:
    first, other = two()
    third = second(first, branch="other")
    third.run(seconds=120, until=lambda: False)
    assert take_over("one", "jo", third.ports).status == 202
    third.run(seconds=600)
    assert phases(third) == {"one": Phase.READY}
    assert take_over("one", "jo", other.ports).status == 202, "it still waits for the first one"
    other.run(seconds=120, until=lambda: False)
    assert record(other).contested
    assert installation(third) in record(other).job.reason
    assert tags(first)["roadstead-installation"] == f"{installation(third)}@other"


def test_there_is_nothing_to_take_over_where_nobody_else_is() -> None:
    cloud = ready()
    refused = take_over("one", "jo", cloud.ports)
    assert refused.status == 409
    assert "does not wait for a takeover" in str(refused.body)
    assert take_over("two", "jo", cloud.ports).status == 404


def test_an_app_that_never_had_the_cluster_leaves_it_when_its_folder_goes() -> None:
    first, other = two()
    before = accepted(first)
    commit = other.repository.push(fleet_files.fleet())
    other.repository.reset(commit, "staging")
    other.run(seconds=900)
    assert phases(other) == {}
    assert accepted(first) == before
    message = other.state.events("one", 1)[0].message
    assert "left the cluster one: another installation of this fleet manages it" in message


def test_an_app_does_not_delete_the_cluster_that_another_one_has_taken_over() -> None:
    first, other = two()
    take_over("one", "jo", other.ports)
    other.run(seconds=600)
    push(first, fleet_files.fleet())
    first.run(seconds=600, until=lambda: False)
    assert first.ports.azure.call(GetCluster(ONE)) is not None
    assert accepted(first)["delete", "one"] == 0
    assert record(first).contested


def test_an_app_that_deletes_does_not_delete_a_contested_cluster() -> None:
    first, _ = two()
    push(first, fleet_files.fleet())
    first.run(seconds=600, until=lambda: False)
    assert accepted(first)["delete", "one"] == 0
    assert take_over("one", "jo", first.ports).status == 202
    first.run(seconds=900)
    assert phases(first) == {}
    assert first.ports.azure.call(GetCluster(ONE)) is None
    assert first.ports.azure.call(GetGroup(ONE.group)) is None


def test_a_mark_that_comes_between_the_read_and_the_write_stops_the_write() -> None:
    first = ready()
    azure, met = first.ports.azure, list[Json]()

    def marked(read: GetCluster) -> Json | None:
        live = azure.call(read)
        if live is not None and not met:
            met.append(live)
            mark = {**live["tags"], "roadstead-contested-by": "0a0b0c0d@staging"}
            azure.call(PatchCluster(ONE, {"tags": mark}, etag=live["eTag"]))
        return live

    on_azure(first, GetCluster, marked)
    push(first, files("  tags: {team: shop}\n"))
    first.run(seconds=120, until=lambda: False)
    assert record(first).contested
    assert "team" not in cluster(first)["tags"]


def test_a_cluster_whose_tags_somebody_removed_stays_with_the_app_whose_record_knows_it() -> None:
    first = ready()
    old = {key: value for key, value in cluster(first)["tags"].items() if key not in _NEW_TAGS}
    live = cluster(first)
    first.ports.azure.call(PutCluster(ONE, {**live, "tags": old}, etag=live["eTag"]))
    first.run(seconds=60, until=lambda: False)
    before = puts(first)
    other = second(first)
    other.run(seconds=120, until=lambda: False)
    assert record(other).contested
    assert "no record of this app has seen it before" in record(other).job.reason
    assert puts(first) == before, "without an installation to name, no mark"
    push(first, files("  tags: {team: shop}\n"))
    first.run(seconds=600)
    assert phases(first) == {"one": Phase.READY}
    assert tags(first)["roadstead-installation"] == f"{installation(first)}@main"
    assert tags(first)["roadstead-life"] == record(first).uid


_NEW_TAGS = ("roadstead-installation", "roadstead-life")


@pytest.mark.parametrize("kind", [PatchCluster, PutCluster])
def test_a_change_of_the_job_alone_is_no_reason_to_write(kind: type[PatchCluster | PutCluster]) -> None:
    cloud = ready()
    written: list[object] = []
    azure = cloud.ports.azure

    def seen(write: PatchCluster | PutCluster) -> object:
        written.append(write)
        return azure.call(write)

    on_azure(cloud, kind, seen)
    push(cloud, files() | {"clusters/one/cluster.yaml": fleet_files.cluster("one", count=2)})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert written == []


def test_the_kind_of_a_contest_is_recorded() -> None:
    _, other = two()
    contest = record(other).job.next_run.contest
    assert contest is not None
    assert contest.kind is ContestKind.INSTALLATION


def test_the_group_of_a_cluster_that_another_app_has_taken_over_is_left_to_it() -> None:
    first, other = two()
    take_over("one", "jo", other.ports)
    other.run(seconds=600)
    push(first, fleet_files.fleet())
    first.run(seconds=600, until=lambda: False)
    assert record(first).contested
    first.azure.delete_cluster(ONE)
    first.run(seconds=900)
    assert phases(first) == {}
    assert first.ports.azure.call(GetGroup(ONE.group)) is not None
    message = first.state.events("one", 1)[0].message
    assert message.endswith("another installation of this fleet manages the cluster one too")


def test_the_group_of_a_cluster_that_a_sweep_found_with_another_app_is_left_to_it() -> None:
    first, other = two()
    take_over("one", "jo", other.ports)
    other.run(seconds=600)
    sweep(first)
    assert record(first).contested
    first.azure.delete_cluster(ONE)
    push(first, fleet_files.fleet())
    first.run(seconds=900)
    assert phases(first) == {}
    assert first.ports.azure.call(GetGroup(ONE.group)) is not None


def test_the_group_of_a_cluster_that_an_operator_took_over_goes_with_it() -> None:
    first, _ = two()
    push(first, fleet_files.fleet())
    first.run(seconds=600, until=lambda: False)
    assert record(first).ownership.has_rival
    assert take_over("one", "jo", first.ports).status == 202
    first.azure.delete_cluster(ONE)
    first.run(seconds=900)
    assert phases(first) == {}
    assert first.ports.azure.call(GetGroup(ONE.group)) is None


def test_a_marked_cluster_whose_creation_was_never_answered_is_not_forgotten() -> None:
    first, _ = two()
    first.state.save(replace(record(first), azure=replace(record(first).azure, was_tagged=False)))
    push(first, fleet_files.fleet())
    first.run(seconds=600, until=lambda: False)
    assert record(first).contested
    assert accepted(first)["delete", "one"] == 0
    assert first.ports.azure.call(GetCluster(ONE)) is not None


def test_a_cluster_that_waits_for_a_takeover_still_does_while_its_step_waits_for_a_token() -> None:
    _, other = two()
    held = record(other)
    other.clock.advance(60)
    without_tokens(other, ARM_READ)
    told = [notification.id for notification in other.state.notifications(9)]
    other.run(seconds=600, until=lambda: record(other).job.next_run.delay is Delay.RATE_LIMIT)
    limited = record(other)
    assert limited.job.next_run.delay is Delay.RATE_LIMIT
    assert (limited.contested, limited.needs_action) == (True, True)
    assert limited.job.reason == held.job.reason
    assert "roadstead takeover one" in advice(other)
    other.run(seconds=7200, until=lambda: record(other).job.next_run.delay is Delay.WAIT)
    assert [notification.id for notification in other.state.notifications(9)] == told
    assert take_over("one", "jo", other.ports).status == 202


def test_a_cluster_of_another_app_is_reported_although_a_lock_keeps_the_mark_away() -> None:
    first = ready()
    other = second(first)

    def locked(_: PatchCluster) -> WriteResponse:
        raise Obstructed("the scope rg-one cannot perform write operation: it is locked", code="ScopeLocked")

    on_azure(other, PatchCluster, locked)
    other.run(seconds=120, until=lambda: False)
    assert record(other).contested
    assert f"the installation {installation(first)} on branch main manages it too" in record(other).job.reason
    assert record(other).job.reason.endswith("it is locked")


def test_what_is_to_be_done_names_the_cluster() -> None:
    _, other = two()
    (shown,) = fleet_view(other.ports)["clusters"]
    assert "`roadstead takeover one`" in shown["actionRequired"]
