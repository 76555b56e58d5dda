"""Who deleted or stopped a cluster: a sweep names the caller of exactly that, as the activity log has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.parts import FIRST_PAGE
from shared.app.api.views.drift import drift_of_cluster, drift_view
from shared.app.api.views.why import why_view
from shared.cluster.failures.errors import Unauthorized
from shared.ports.azure.clusters import ListActivity
from tests.support.activity import ANN, BOB, asked
from tests.support.one_cluster import ONE, pool, ready, record
from tests.support.pipeline_runs import status
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import sweep, tag_by_hand


def reason(cloud: MemoryCloud) -> str:
    return record(cloud).job.reason


def test_a_deleted_cluster_has_who_deleted_it_and_when_wherever_it_is_shown() -> None:
    cloud = ready(pool(count=2))
    with cloud.azure.called_by(BOB):
        tag_by_hand(cloud, ONE, own="x")
    with cloud.azure.called_by(ANN):
        cloud.azure.delete_cluster(ONE)
    reads = asked(cloud)
    sweep(cloud)
    assert "; deleted 2026-01-01 00:" in reason(cloud)
    assert reason(cloud).endswith(f" UTC by {ANN}")
    assert len(reads) == 1
    why = why_view("one", cloud.ports)
    assert why is not None
    assert ANN in why["doing"]
    (shown,) = drift_view(cloud.ports, FIRST_PAGE)["clusters"]
    assert (shown["fields"], shown["finding"]) == ([], reason(cloud))
    assert status(cloud, cloud.state.fleet().commit)[0] == "failure"
    sweep(cloud)
    assert len(reads) == 1, "a finding that stays is not asked again"


def test_a_stopped_cluster_has_who_stopped_it_last() -> None:
    cloud = ready()
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    assert "somebody stopped the cluster; stopped 2026-01-01 00:" in reason(cloud)
    (shown,) = (view for view in (drift_of_cluster("one", cloud.ports),) if view)
    assert shown["clusters"][0]["finding"] == reason(cloud)


def test_who_deleted_or_stopped_is_not_guessed_from_other_writes() -> None:
    cloud = ready()
    with cloud.azure.called_by(BOB):
        tag_by_hand(cloud, ONE, own="x")
    azure = cloud.ports.azure

    def late(operation: Any) -> Any:
        answer = azure.call(operation)
        kept = [document for document in answer.documents if "stop" not in document["operationName"]["value"]]
        return replace(answer, documents=tuple(kept))

    on_azure(cloud, ListActivity, late)
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    assert reason(cloud) == "ClusterStopped: somebody stopped the cluster"


def test_a_log_that_cannot_be_read_leaves_the_finding_as_it_is() -> None:
    cloud = ready()
    asked(cloud, refuse=Unauthorized("no right"))
    cloud.azure.delete_cluster(ONE)
    sweep(cloud)
    assert reason(cloud).endswith("and no commit asks for that")
