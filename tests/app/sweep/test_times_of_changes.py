"""Since when somebody may have changed a field: which list showed that, and when the log is asked again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shared.app.outbox import request_whole_sweep
from shared.cluster.failures.errors import FluxUnhealthy
from shared.cluster.outcomes import Fail
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.ports.azure import DocumentPage, ListClusters
from shared.ports.azure.clusters import ListActivity
from tests.support.activity import ANN, BOB, changes, scaled
from tests.support.one_cluster import ONE, files, pool, ready, record
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import sweep, tag_by_hand

EIGHT_HOURS = timedelta(hours=8).total_seconds()
"""The time between sweeps that somebody may set."""


def test_a_change_of_a_cluster_that_is_read_by_itself_has_who_made_it() -> None:
    cloud = ready(pool(count=2))
    sweep(cloud)
    scaled(cloud, 5)
    cloud.clock.advance(EIGHT_HOURS)
    unhealthy = Fail(FluxUnhealthy("a Kustomization is not Ready"))
    cloud.state.save(apply_outcome(record(cloud), unhealthy, now=cloud.clock(), jitter=0))
    request_whole_sweep(cloud.ports)  # its list is about as old as the record
    cloud.run(seconds=60)
    assert cloud.state.sweep().listings[0].undecided == ("one",)
    assert changes(cloud) == {"nodePools[apps].count": ANN}


def test_a_change_of_a_cluster_that_was_listed_during_the_operation_has_who_made_it() -> None:
    cloud = ready(pool(count=2))
    sweep(cloud)
    cloud.clock.advance(EIGHT_HOURS)
    scaled(cloud, 5)
    azure = cloud.ports.azure

    def during(operation: ListClusters) -> Any:
        (one,) = azure.call(operation).documents
        return DocumentPage(
            ({**one, "properties": {**one["properties"], "provisioningState": "Updating"}},), ""
        )

    on_azure(cloud, ListClusters, during)
    sweep(cloud)
    assert changes(cloud) == {}
    assert cloud.state.sweep().listings[0].undecided == ("one",)
    on_azure(cloud, ListClusters, azure.call)
    cloud.clock.advance(EIGHT_HOURS)
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": ANN}
    assert cloud.state.sweep().listings[0].undecided == ()


def test_a_change_before_a_list_that_showed_no_difference_is_not_of_what_differs_later() -> None:
    cloud = ready(pool(count=2))
    sweep(cloud)
    scaled(cloud, 5, BOB)
    scaled(cloud, 2, BOB)
    sweep(cloud)
    cloud.clock.advance(EIGHT_HOURS)
    scaled(cloud, 5)
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": ANN}


def test_a_change_that_the_log_does_not_show_yet_has_who_made_it_however_rare_the_sweeps_are() -> None:
    cloud = ready(pool(count=2))
    sweep(cloud)
    azure = cloud.ports.azure
    on_azure(cloud, ListActivity, lambda _: DocumentPage((), ""))
    scaled(cloud, 5)
    cloud.clock.advance(EIGHT_HOURS)
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": ""}
    on_azure(cloud, ListActivity, azure.call)
    cloud.clock.advance(EIGHT_HOURS)
    with cloud.azure.called_by(BOB):
        tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps].count": ANN, "tags.own": BOB}


def test_a_replaced_pool_that_somebody_deleted_has_who_did_it_also_once_the_log_is_late() -> None:
    cloud = ready(pool(count=2))
    push(cloud, files(pool("Standard_D8s_v5", count=2)))
    cloud.run()
    cloud.clock.advance(600)
    with cloud.azure.called_by(ANN):
        cloud.azure.delete_pool(ONE, "appsb")
    azure = cloud.ports.azure
    on_azure(cloud, ListActivity, lambda _: DocumentPage((), ""))
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps]": ""}
    on_azure(cloud, ListActivity, azure.call)
    sweep(cloud)
    assert changes(cloud) == {"nodePools[apps]": ANN}
    push(cloud, files(pool("Standard_D8s_v5", count=3)))
    cloud.run()
    running = record(cloud).observation.running
    assert running is not None
    assert running.renamed == {}, "the pool was created again under its own name"
