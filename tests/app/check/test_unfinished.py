"""Checks of clusters that were Ready, and whose later job failed or is suspended: a check only reads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.tree import tree_view
from shared.cluster.findings.health import HealthCondition
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import NAMESPACE, SOURCE
from shared.resource_ids import ObjectRef
from tests.support.bootstrap_secrets import AGE, NEXT, VALUE, value_of, with_value
from tests.support.calls_inside import counted
from tests.support.checks import check, condition, pass_time
from tests.support.one_cluster import ONE, api, branch_files, live, pool, record, suspended
from tests.support.pipeline_runs import phases, push
from tests.support.sweeps import delete_by_hand, sweep

pytestmark = pytest.mark.lives

CONTROLLER = ObjectRef("apps/v1", "Deployment", "source-controller", NAMESPACE)
CORRECT = "  drift: {fluxObjects: correct}\n"
SECRETS = HealthCondition.SECRETS


def healthy(extra: str) -> MemoryCloud:
    """Return a cloud whose cluster is Ready, and healthy by a check."""
    cloud = with_value()
    push(cloud, branch_files(extra))
    cloud.run()
    check(cloud)
    assert (phases(cloud), condition(record(cloud)).status) == ({"one": Phase.READY}, True)
    return cloud


def failed(extra: str = "") -> MemoryCloud:
    """Return a cloud whose cluster was Ready and healthy, and whose next generation has failed."""
    cloud = healthy(extra)
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs")
    push(cloud, branch_files(pool(count=2) + extra))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    return cloud


def in_suspension(extra: str = "") -> MemoryCloud:
    """Return a cloud whose cluster was Ready and healthy, and is suspended."""
    cloud = healthy(extra)
    push(cloud, branch_files(extra + suspended(cloud, 24)))
    cloud.run(seconds=60)
    assert phases(cloud) == {"one": Phase.SUSPENDED}
    return cloud


each_of_both = pytest.mark.parametrize("unfinished", [failed, in_suspension])


def checked(cloud: MemoryCloud) -> ClusterRecord:
    """Return the record after a check, which has written nothing in the cluster."""
    with counted(cloud) as calls:
        check(cloud)
    assert not calls.applied
    return record(cloud)


@each_of_both
def test_a_check_says_what_is_so_and_what_keeps_the_cluster_from_being_ready_stays(
    unfinished: Callable[..., MemoryCloud],
) -> None:
    cloud = unfinished(CORRECT)
    before = record(cloud)
    api(cloud).delete(live(cloud, CONTROLLER))
    found = condition(checked(cloud))
    assert (found.status, found.reason) == (False, "ObjectMissing")
    assert found.message.startswith(f"the {CONTROLLER}: it does not exist, and the job that applies it ")
    pass_time(cloud, 7200)
    after = checked(cloud)
    assert (after.phase, after.job.reason, after.finding) == (before.phase, before.job.reason, "")
    assert api(cloud).get(CONTROLLER) is None


@each_of_both
def test_what_somebody_puts_back_is_healthy_again(unfinished: Callable[..., MemoryCloud]) -> None:
    cloud = unfinished()
    controller = live(cloud, CONTROLLER)
    api(cloud).delete(controller)
    assert condition(checked(cloud)).status is False
    metadata = {key: controller["metadata"][key] for key in ("name", "namespace", "labels", "annotations")}
    api(cloud).apply({**controller, "metadata": metadata})
    assert condition(checked(cloud)).status is True


@each_of_both
def test_a_new_version_of_a_secret_is_left_to_the_job_and_reported(
    unfinished: Callable[..., MemoryCloud],
) -> None:
    cloud = unfinished(AGE)
    cloud.vault.set("fleet-age", NEXT)
    found = condition(checked(cloud), SECRETS)
    assert (found.status, found.reason) == (False, "ObjectChanged")
    assert "it is not as git has it, and the job that applies it" in found.message
    assert value_of(cloud) == VALUE


@each_of_both
def test_a_cluster_that_no_longer_exists_is_unknown_and_not_healthy(
    unfinished: Callable[..., MemoryCloud],
) -> None:
    cloud = unfinished()
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    found = condition(checked(cloud))
    assert found.status is None
    assert "a sweep found ClusterMissing: " in found.message


@each_of_both
def test_the_tree_does_not_say_either_that_somebody_changed_what_the_job_may_not_have_applied(
    unfinished: Callable[..., MemoryCloud],
) -> None:
    cloud = unfinished(AGE)
    api(cloud).delete(live(cloud, CONTROLLER))
    source = live(cloud, SOURCE)
    api(cloud).replace({**source, "spec": {**source["spec"], "ref": {"branch": "other"}}})
    checked(cloud)
    tree = tree_view("one", cloud.ports)
    assert tree is not None
    said = {
        unhealthy["kind"]: unhealthy["message"] for group in tree["flux"] for unhealthy in group["unhealthy"]
    }
    assert said["Deployment"].startswith("it does not exist, and the job that applies it ")
    assert said["GitRepository"].startswith("it is not as git has it, and the job that applies it ")
