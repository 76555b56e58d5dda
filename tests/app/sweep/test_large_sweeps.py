"""Sweeps of many clusters: calls in proportion to pages and to what differs, in several messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.azure.world.azure_world import AzureWorld
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.rate_limiter import TRIES
from shared.app.outbox import request_whole_sweep
from shared.app.sweep import sweep as sweeps
from shared.azure.rate_limits import Bucket
from shared.cluster.failures.errors import Stale, Throttled, Unavailable
from shared.cluster.queues.messages import SweepRequest
from shared.cluster.record_parts import Phase
from shared.ports import Ports
from shared.ports.azure import GetCluster, ListClusters
from shared.ports.azure.calls import DocumentPage
from shared.resource_ids import ClusterId
from tests.support import pipeline_runs
from tests.support.one_cluster import ONE, ready, record
from tests.support.pipeline_runs import phases
from tests.support.replaced_ports import around, on_azure
from tests.support.sweeps import SUBSCRIPTIONS, delete_by_hand, reads_of, several, sweep, use_up_reads

pytestmark = pytest.mark.lives


def etags(cloud: MemoryCloud) -> dict[str, str]:
    """Return the version of each record."""
    return {cluster.name: cluster.etag for cluster in cloud.state.clusters()}


def listed(reads: Sequence[GetCluster | ListClusters]) -> list[str]:
    """Return the subscriptions that were listed, one for each page."""
    return [read.target.subscription for read in reads if isinstance(read, ListClusters)]


def test_a_sweep_lists_each_subscription_once_and_notes_when() -> None:
    cloud = several()
    reads = reads_of(cloud)
    sweep(cloud)
    assert sorted(listed(reads)) == [*SUBSCRIPTIONS]
    assert len(reads) == len(SUBSCRIPTIONS), "no cluster is read by itself"
    found = cloud.state.sweep()
    assert [listing.subscription for listing in found.listings] == [*SUBSCRIPTIONS]
    assert all(listing.at for listing in found.listings)
    assert found.started is not None
    assert found.finished is not None


def test_what_there_is_no_time_for_continues_in_another_message(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = several()
    reads, azure = reads_of(cloud), cloud.ports.azure

    def slow(operation: ListClusters) -> Any:
        cloud.clock.advance(sweeps.SWEEP_SECONDS + 1)
        return azure.call(operation)

    on_azure(cloud, ListClusters, slow)
    delete_by_hand(cloud, ClusterId(SUBSCRIPTIONS[2], "rg-c", "c"))
    parts, handle = list[str](), sweeps.handle

    def noted(request: SweepRequest, ports: Ports) -> None:
        parts.append("a cluster" if request.clusters else request.after)
        handle(request, ports)

    monkeypatch.setattr(sweeps, "handle", noted)
    sweep(cloud)
    assert parts[:3] == ["", *SUBSCRIPTIONS[:2]]
    assert sorted(listed(reads)) == [*SUBSCRIPTIONS]
    assert phases(cloud)["c"] is Phase.FAILED


def test_a_subscription_that_cannot_be_listed_hides_no_other_and_is_tried_again() -> None:
    cloud = several()
    azure, failures = cloud.ports.azure, [Throttled("slow down", retry_after=30), Unavailable("no answer")]

    def sometimes(operation: ListClusters) -> Any:
        if operation.target.subscription == SUBSCRIPTIONS[0] and failures:
            raise failures.pop()
        return azure.call(operation)

    on_azure(cloud, ListClusters, sometimes)
    for name, subscription in zip("ac", SUBSCRIPTIONS[::2], strict=True):
        delete_by_hand(cloud, ClusterId(subscription, f"rg-{name}", name))
    sweep(cloud)
    assert failures == []
    assert phases(cloud) == {"a": Phase.FAILED, "b": Phase.READY, "c": Phase.FAILED}
    assert [listing.problem for listing in cloud.state.sweep().listings] == ["", "", ""]


def test_a_sweep_waits_for_its_tokens_as_a_job_does() -> None:
    cloud = ready()
    cloud.clock.advance(600)
    use_up_reads(cloud, ONE, seconds=900)
    reads = reads_of(cloud)
    request_whole_sweep(cloud.ports)
    cloud.run(seconds=300, until=lambda: False)
    assert reads == []
    assert "waits for Azure's read limit" in cloud.state.sweep().listings[0].problem
    cloud.run(seconds=1200)
    assert listed(reads) == [ONE.subscription]
    assert len(reads) == 1
    assert cloud.state.sweep().listings[0].problem == ""


def test_a_sweep_that_comes_before_its_tokens_by_the_clock_of_its_instance_waits_once_more() -> None:
    cloud = ready()
    cloud.clock.advance(600)
    use_up_reads(cloud, ONE, seconds=60)
    request_whole_sweep(cloud.ports)
    cloud.run(seconds=30, until=lambda: False)
    assert "waits for Azure's read limit" in cloud.state.sweep().listings[0].problem
    behind = timedelta(seconds=2.5)
    cloud.with_ports(lambda ports: replace(ports, clock=lambda: cloud.clock() - behind))
    cloud.run(seconds=300)
    assert cloud.state.sweep().listings[0].problem == ""


@pytest.mark.parametrize("times", [1, 3])
def test_a_sweep_that_gets_no_reservation_because_others_take_them_is_tried_again(times: int) -> None:
    cloud = ready()
    inner, lost = cloud.state, [Stale("another worker was first")] * (2 * TRIES * times)

    def save_bucket(key: str, bucket: Bucket) -> None:
        if lost:
            raise lost.pop()
        inner.save_bucket(key, bucket)

    cloud.clock.advance(600)
    around(cloud, "state", save_bucket=save_bucket)
    request_whole_sweep(cloud.ports)
    cloud.run(seconds=600)
    assert lost == []
    assert cloud.state.sweep().listings[0].problem == ""


def test_the_reads_of_missing_clusters_wait_for_their_tokens_too() -> None:
    cloud = ready()
    delete_by_hand(cloud, ONE)
    now = cloud.clock()
    use_up_reads(cloud, ONE, seconds=900)
    sweeps.handle(SweepRequest(clusters=("one",)), cloud.ports)
    assert record(cloud).finding == ""
    cloud.run(seconds=1200, until=lambda: bool(record(cloud).finding))
    assert cloud.clock() - now > timedelta(seconds=900)
    assert record(cloud).finding == "ClusterMissing"


def test_a_list_that_lacks_very_many_clusters_costs_a_bounded_number_of_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud = pipeline_runs.ready("a", "b", "c")
    monkeypatch.setattr(sweeps, "MOST_LACKING", 2)
    reads = reads_of(cloud)
    on_azure(cloud, ListClusters, lambda _: DocumentPage((), ""))
    sweep(cloud)
    assert {read.target.name for read in reads if isinstance(read, GetCluster)} == {"a", "b"}
    assert set(phases(cloud).values()) == {Phase.READY}


def test_a_list_says_that_clusters_for_which_there_was_no_read_are_left_to_later_sweeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud = pipeline_runs.ready("a", "b", "c")
    monkeypatch.setattr(sweeps, "MOST_LACKING", 2)
    for name in "abc":
        delete_by_hand(cloud, ClusterId(ONE.subscription, f"rg-{name}", name))
    sweep(cloud)
    assert phases(cloud) == {"a": Phase.FAILED, "b": Phase.FAILED, "c": Phase.READY}
    (listing,) = cloud.state.sweep().listings
    assert listing.problem == (
        "its list lacks 3 clusters: only 2 are read by themselves, and the others by later sweeps"
    )
    sweep(cloud)
    assert phases(cloud)["c"] is Phase.FAILED
    assert cloud.state.sweep().listings[0].problem == ""


def test_the_state_that_does_not_answer_postpones_a_sweep() -> None:
    cloud = ready()
    delete_by_hand(cloud, ONE)
    failures = [Unavailable("Table Storage did not answer")] * 2
    summaries = cloud.state.summaries

    def sometimes() -> Any:
        if failures:
            raise failures.pop()
        return summaries()

    around(cloud, "state", summaries=sometimes)
    sweep(cloud)
    assert record(cloud).finding == "ClusterMissing"


@pytest.mark.parametrize("crash", range(12))
def test_a_sweep_that_dies_at_a_call_of_the_state_is_delivered_again_and_completes(crash: int) -> None:
    cloud = ready()
    delete_by_hand(cloud, ONE)
    calls = 0

    class Died(Exception):
        pass

    inner = cloud.ports.state

    class Dying:
        def __getattr__(self, name: str) -> Any:
            def call(*given: Any, **named: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == crash + 1:
                    raise Unavailable("died")
                return getattr(inner, name)(*given, **named)

            return call

    dying: Any = Dying()
    cloud.with_ports(lambda ports: replace(ports, state=dying))
    sweep(cloud)
    assert record(cloud).finding == "ClusterMissing"
    commit = cloud.repository.head("main")
    assert cloud.repository.statuses.latest(commit)[0].status.state == "failure"
    assert isinstance(cloud.azure, AzureWorld)


def test_a_cluster_that_is_not_understood_is_named_and_keeps_no_other_one_from_its_comparison() -> None:
    cloud = several()
    azure = cloud.ports.azure

    def strange(operation: ListClusters) -> Any:
        shown = azure.call(operation)
        documents = [
            {**document, "properties": None} if document["name"] == "a" else document
            for document in shown.documents
        ]
        return replace(shown, documents=documents)

    on_azure(cloud, ListClusters, strange)
    delete_by_hand(cloud, ClusterId(SUBSCRIPTIONS[2], "rg-c", "c"))
    sweep(cloud)
    assert phases(cloud) == {"a": Phase.READY, "b": Phase.READY, "c": Phase.FAILED}
    first, *others = [listing.problem for listing in cloud.state.sweep().listings]
    assert first == "a cannot be compared: the log has the details"
    assert others == ["", ""]
