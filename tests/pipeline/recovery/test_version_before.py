"""Jobs continue on records of the version before: each record here passes through that stored form."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from localcloud.tables import memory_clusters
from shared.jobs.record import Phase
from shared.jobs.transitions.acceptance import accept_retry
from shared.pipeline.outbox import send_continuation
from shared.ports.azure import DeleteCluster, Written
from simulation.version_before import as_before
from tests.support import fleet_files
from tests.support.one_cluster import blocked_pod, files, pool, pools, ready, record
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import on_azure


@pytest.fixture(autouse=True)
def stored_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save every record in the form of the version before."""
    monkeypatch.setattr(memory_clusters, "to_json", lambda saved: json.dumps(as_before(saved)))


def test_a_cluster_is_created_changed_and_deleted() -> None:
    cloud = ready(pool())
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "appsb"})
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert cloud.state.clusters() == []
    assert cloud.state.events("one", 1)[0].reason == "Deleted"


def test_a_drain_keeps_its_time_limit() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5", upgradeSettings="{drainTimeoutInMinutes: 5}")))
    cloud.run(until=lambda: record(cloud).phase is Phase.FAILED)
    assert set(pools(cloud)) == {"system", "apps", "appsb"}
    assert "could not be drained in 5 minutes: shop/web" in record(cloud).job.reason


def test_a_delete_without_effect_is_sent_twice() -> None:
    cloud, sent = ready(), list[DeleteCluster]()

    def without_effect(write: DeleteCluster) -> Written:
        sent.append(write)
        return Written("a-request")

    on_azure(cloud, DeleteCluster, without_effect)
    push(cloud, fleet_files.fleet())
    cloud.run(24 * 3600)
    assert (len(sent), phases(cloud)) == (2, {"one": Phase.FAILED})


def test_a_spec_that_only_the_version_before_accepted_fails_with_the_field_and_can_still_be_deleted() -> None:
    cloud = ready(pool())
    saved = record(cloud)
    network = {**saved.document["spec"].get("networkProfile", {}), "loadBalancerSku": "basic"}
    document = {**saved.document, "spec": {**saved.document["spec"], "networkProfile": network}}
    retried = accept_retry(replace(saved, document=document), now=cloud.clock())
    send_continuation(cloud.state.save(retried), cloud.ports)
    cloud.run()
    assert record(cloud).phase is Phase.FAILED
    assert record(cloud).job.reason == (
        "InvalidManifest: this version of Roadstead refuses the manifest that an earlier one accepted: "
        "spec.networkProfile.loadBalancerSku: basic is retired by Azure; write standard, or remove this line."
        " Correct it and push"
    )
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert cloud.state.clusters() == []
