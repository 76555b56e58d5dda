"""Records of an earlier life, out of restored tables: their jobs change nothing in or around a later life."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.missed_work import resend_overdue
from shared.azure.ownership import FLEET_TAG
from shared.cluster.recipes import IN_THE_CLUSTER, STEPS, Recipe, Step
from shared.cluster.record import Phase
from shared.resource_ids import ObjectRef
from tests.support import clusters_elsewhere as elsewhere
from tests.support import fleet_files
from tests.support.bootstrap_secrets import AGE, SOPS, with_value
from tests.support.identity_access import ACCESS, ISSUER, access_writes, with_identity
from tests.support.one_cluster import ENTRA, ONE, api, cluster, files, record
from tests.support.pipeline_runs import deliver_due, one_step_a_message, phases, push, step_until
from tests.support.policies import POLICIES, policy_writes
from tests.support.sweeps import tag_by_hand

PATH = "  flux: {path: ./an/earlier/path}\n"
SYNC = ObjectRef("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "flux-system")
INSIDE = [step for step in STEPS[Recipe.PROVISION] if step in IN_THE_CLUSTER]


def stopped_at(cloud: MemoryCloud, step: Step) -> MemoryCloud:
    """Deliver messages, with one step each, until a cluster is at a step."""
    step_until(cloud, lambda: {each.job.step.name for each in cloud.state.clusters()} == {step})
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
    cloud.state.restore(older)


def go_on_without_a_plan(cloud: MemoryCloud) -> None:
    """Let the restored job go on before the planner has read the branch."""
    resend_overdue(cloud.ports)
    for _ in range(20):
        deliver_due(cloud, "jobs")
        deliver_due(cloud, "changes")
        cloud.clock.advance(2)


@pytest.mark.parametrize("step", [Step.DELETE_IDENTITY_ACCESS, Step.DELETE_POLICIES])
def test_a_restored_tombstone_takes_nothing_from_around_the_cluster_of_a_later_life(step: Step) -> None:
    cloud, manifests = one_step_a_message(with_identity()), files(ACCESS + POLICIES)
    push(cloud, manifests)
    cloud.run()
    push(cloud, fleet_files.fleet())
    after_a_later_life(stopped_at(cloud, step), manifests)
    before = access_writes(cloud), policy_writes(cloud)
    cloud.run()
    assert (access_writes(cloud), policy_writes(cloud)) == before
    assert phases(cloud) == {"one": Phase.READY}
    assert record(cloud).life == cluster(cloud)["tags"]["roadstead-life"]


@pytest.mark.parametrize("step", [Step.DELETE_IDENTITY_ACCESS, Step.DELETE_POLICIES])
def test_a_restored_tombstone_takes_nothing_from_around_a_cluster_that_another_fleet_has_now(
    step: Step,
) -> None:
    cloud, manifests = one_step_a_message(with_identity()), files(ACCESS + POLICIES)
    push(cloud, manifests)
    cloud.run()
    push(cloud, fleet_files.fleet())
    after_a_later_life(stopped_at(cloud, step), manifests)
    tag_by_hand(cloud, ONE, **{FLEET_TAG: "another"})
    before = access_writes(cloud), policy_writes(cloud)
    cloud.run()
    assert (access_writes(cloud), policy_writes(cloud)) == before


@pytest.mark.parametrize("entra", ["", ENTRA], ids=["certificate", "entra"])
@pytest.mark.parametrize("step", INSIDE)
def test_a_restored_job_writes_nothing_into_the_cluster_of_a_later_life(step: Step, entra: str) -> None:
    cloud = one_step_a_message(with_value())
    push(cloud, files(entra + AGE + PATH))
    after_a_later_life(stopped_at(cloud, step), files(entra))
    before = api(cloud).get(SYNC)
    go_on_without_a_plan(cloud)
    assert (api(cloud).get(SOPS), api(cloud).get(SYNC)) == (None, before)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert record(cloud).life == cluster(cloud)["tags"]["roadstead-life"]


def test_a_restored_job_of_a_clock_that_was_ahead_gives_no_access_to_a_later_life() -> None:
    """The tag says that the later job is the older one; the life says whose it is."""
    cloud = one_step_a_message(with_identity())
    push(cloud, files(ACCESS))
    stopped_at(cloud, Step.IDENTITY_ACCESS)
    job = replace(record(cloud).job, started=cloud.clock() + timedelta(days=30))
    cloud.state.save(replace(record(cloud), job=job))
    after_a_later_life(cloud, files(ISSUER))
    before = access_writes(cloud)
    go_on_without_a_plan(cloud)
    assert access_writes(cloud) == before
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_restored_job_writes_nothing_into_an_existing_cluster_that_was_attached_again() -> None:
    cloud = elsewhere.cloud_with_harbour()
    with_value(one_step_a_message(cloud))
    push(cloud, elsewhere.files(extra=AGE))
    after_a_later_life(stopped_at(cloud, Step.BOOTSTRAP_SECRETS), elsewhere.files())
    assert elsewhere.api(cloud).get(SOPS) is None
    go_on_without_a_plan(cloud)
    assert elsewhere.api(cloud).get(SOPS) is None
    cloud.run()
    assert phases(cloud) == {"harbour": Phase.READY}
    assert elsewhere.record(cloud).life == elsewhere.owner(cloud)["roadstead-life"]
