"""A job of restored tables writes nothing in or around a later life of its cluster."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.recipes import STEPS, Recipe, Step
from shared.cluster.record_parts import Phase
from shared.resource_ids import ObjectRef
from tests.support import attached_clusters, fleet_files
from tests.support.bootstrap_secrets import AGE, SOPS, with_value
from tests.support.identity_access import ACCESS, access_writes, with_identity
from tests.support.lost_tables import go_on_without_a_plan, recovered, with_epoch
from tests.support.one_cluster import (
    ENTRA,
    api,
    files,
)
from tests.support.pipeline_runs import (
    one_step_a_message,
    phases,
    push,
    step_until,
)
from tests.support.policies import POLICIES, policy_writes

pytestmark = pytest.mark.lives

PATH = "  flux: {path: ./an/earlier/path}\n"
AT_PATH = {
    "an/earlier/path/namespaces.yaml": fleet_files.fleet()["platform/namespaces.yaml"],
}
SYNC = ObjectRef("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "flux-system")
INSIDE = [step for step in STEPS[Recipe.PROVISION] if step.inside]


def stopped_at(cloud: MemoryCloud, step: Step) -> MemoryCloud:
    """Deliver messages, with one step each, until a cluster is at a step."""
    step_until(cloud, lambda: {record.job.step.name for record in cloud.state.clusters()} == {step})
    return cloud


def after_a_later_life(cloud: MemoryCloud, later: dict[str, bytes]) -> None:
    """Let the job end; bring the cluster to its next life, and restore the tables."""
    older = cloud.state.backup()
    cloud.run()
    if phases(cloud):
        push(cloud, fleet_files.fleet())
        cloud.run()
    assert phases(cloud) == {}
    push(cloud, later)
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    cloud.clock.advance(3600)
    cloud.restore(older)


@pytest.mark.parametrize("step", [Step.DELETE_IDENTITY_ACCESS, Step.DELETE_POLICIES])
def test_a_restored_tombstone_takes_nothing_from_around_the_cluster_of_a_later_life(step: Step) -> None:
    cloud, manifests = one_step_a_message(with_epoch(with_identity())), files(ACCESS + POLICIES)
    push(cloud, manifests)
    cloud.run()
    push(cloud, fleet_files.fleet())
    after_a_later_life(stopped_at(cloud, step), manifests)
    before = access_writes(cloud), policy_writes(cloud)
    cloud.run()
    assert recovered(cloud)
    assert (access_writes(cloud), policy_writes(cloud)) == before
    assert phases(cloud) == {"one": Phase.READY}


@pytest.mark.parametrize("entra", ["", ENTRA], ids=["certificate", "entra"])
@pytest.mark.parametrize("step", INSIDE)
def test_a_restored_job_writes_nothing_into_the_cluster_of_a_later_life(step: Step, entra: str) -> None:
    cloud = one_step_a_message(with_epoch(with_value()))
    push(cloud, files(entra + AGE + PATH) | AT_PATH)
    after_a_later_life(stopped_at(cloud, step), files(entra))
    before = api(cloud).get(SYNC)
    go_on_without_a_plan(cloud)
    assert (api(cloud).get(SOPS), api(cloud).get(SYNC)) == (None, before)
    cloud.run()
    assert recovered(cloud)
    assert phases(cloud) == {"one": Phase.READY}


def test_a_restored_job_writes_nothing_into_an_existing_cluster_that_was_attached_again() -> None:
    cloud = with_epoch(attached_clusters.cloud_with_harbour())
    with_value(one_step_a_message(cloud))
    push(cloud, attached_clusters.files(extra=AGE))
    after_a_later_life(stopped_at(cloud, Step.BOOTSTRAP_SECRETS), attached_clusters.files())
    go_on_without_a_plan(cloud)
    assert attached_clusters.api(cloud).get(SOPS) is None
    cloud.run()
    assert recovered(cloud)
    assert phases(cloud) == {"harbour": Phase.READY}
    assert attached_clusters.record(cloud).azure.life == attached_clusters.owner(cloud)["roadstead-life"]
