"""Git removes a cluster that is not in Azure: it is released, nothing on it is deleted, also over crashes."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.crashes import Counter
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import SOURCE
from tests.support.attached_clusters import SECRET, api, attached, cloud_with_harbour, files, owner, record
from tests.support.calls_inside import counted
from tests.support.crash_points import run_with_crashes, wire
from tests.support.fleet_files import fleet
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import around


def test_release_removes_what_marks_the_cluster_and_leaves_what_runs() -> None:
    cloud = attached()
    deployments = {document["metadata"]["name"] for document in api(cloud).list("apps/v1", "Deployment")}
    push(cloud, fleet())
    with counted(cloud) as calls:
        cloud.run()
    assert phases(cloud) == {}
    assert calls.written == ["delete"]
    assert owner(cloud) == {}
    assert {
        document["metadata"]["name"] for document in api(cloud).list("apps/v1", "Deployment")
    } == deployments
    assert api(cloud).get(SOURCE) is not None


def test_release_makes_no_call_to_azure() -> None:
    cloud = attached()
    calls: list[Any] = []
    around(cloud, "azure", call=calls.append)
    push(cloud, fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert calls == []


def test_the_guards_of_a_delete_hold_a_release() -> None:
    cloud = attached(extra="  deletionProtection: true\n")
    push(cloud, fleet())
    cloud.run()
    assert phases(cloud) == {"harbour": Phase.READY}
    assert owner(cloud) != {}


def test_a_released_cluster_is_attached_again() -> None:
    cloud = attached()
    push(cloud, fleet())
    cloud.run()
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"harbour": Phase.READY}
    assert owner(cloud)["roadstead-life"] == record(cloud).uid


def test_a_cluster_that_is_gone_is_released_once_its_secret_is_deleted() -> None:
    cloud = attached()
    cloud.vault.set(SECRET, cloud.kubernetes.start_outside("quay"))
    cloud.vault.delete(SECRET)
    push(cloud, fleet())
    cloud.run()
    assert phases(cloud) == {}
    (event,) = [event for event in cloud.state.events("harbour", 50) if event.reason == "Released"]
    assert "left the cluster as it is" in event.message


def test_another_cluster_behind_the_kubeconfig_is_left_alone() -> None:
    cloud = attached()
    cloud.vault.set(SECRET, cloud.kubernetes.start_outside("quay"))
    push(cloud, fleet())
    with counted(cloud) as calls:
        cloud.run()
    assert phases(cloud) == {}
    assert calls.written == []


def whole_run(counter: Counter) -> None:
    """Attach the cluster, change it, and release it, while the host dies once."""
    cloud = cloud_with_harbour()
    wire(cloud, counter, "kubernetes", "vaults", "state")
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"harbour": Phase.READY}
    assert owner(cloud)["roadstead-life"] == record(cloud).uid
    push(cloud, files(extra="  deletionProtection: false\n  drift: {fluxObjects: correct}\n"))
    cloud.run()
    assert phases(cloud) == {"harbour": Phase.READY}
    push(cloud, fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert owner(cloud) == {}


@pytest.mark.lives
def test_a_crash_at_any_call_leaves_nothing_marked_twice_or_for_ever() -> None:
    run_with_crashes(whole_run, "steps/attached.py", least=10)
