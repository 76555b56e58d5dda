"""A cluster that is not in Azure stays the same one, and has one manifest of one installation."""

from __future__ import annotations

import pytest

from localcloud.keyvault.example_secrets import EXAMPLE_VAULT
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import take_over
from shared.app.api.views.clusters import fleet_view
from shared.cluster.job import ContestKind
from shared.cluster.record_parts import Phase
from shared.frozen import replace
from shared.kubernetes.flux_objects import FACTS
from shared.kubernetes.kubeconfig import OWNER_MAP
from shared.ports import FleetConfig, Timing
from tests.support.attached_clusters import (
    SECRET,
    api,
    attached,
    cloud_with_harbour,
    files,
    manifest,
    owner,
    record,
)
from tests.support.calls_inside import WRITES, counted
from tests.support.checks import check
from tests.support.fleet_files import fleet
from tests.support.lost_tables import APP_GROUP
from tests.support.pipeline_runs import phases, push

pytestmark = pytest.mark.lives

FIRST = FleetConfig(
    "example", "example/fleet", installation="the-first-app", timing=Timing(lease_seconds=20, poll_seconds=5)
)
OTHER = FleetConfig(
    "example", "example/fleet", installation="another-app", timing=Timing(lease_seconds=20, poll_seconds=5)
)


def test_a_kubeconfig_that_leads_to_another_cluster_holds_the_job_and_nothing_is_written_there() -> None:
    cloud = attached()
    cloud.vault.set(SECRET, cloud.kubernetes.start_outside("quay"))
    push(cloud, files(extra="  deletionProtection: true\n"))
    with counted(cloud) as calls:
        cloud.run(seconds=600)
    found = record(cloud)
    assert "leads to another cluster than before" in found.job.reason
    assert found.job.next_run.contest is not None
    assert found.job.next_run.contest.kind is ContestKind.IDENTITY
    assert (calls.applied, calls.written) == ([], [])
    assert owner(cloud, "quay") == {}
    assert "others have their places" in fleet_view(cloud.ports)["problem"]


def test_the_right_kubeconfig_in_the_vault_lets_the_same_job_continue() -> None:
    cloud = attached()
    right = cloud.vault.get(SECRET).value
    cloud.vault.set(SECRET, cloud.kubernetes.start_outside("quay"))
    push(cloud, files(extra="  deletionProtection: true\n"))
    cloud.run(seconds=600)
    cloud.vault.set(SECRET, right)
    cloud.run(seconds=1200)
    assert phases(cloud) == {"harbour": Phase.READY}


def test_a_takeover_accepts_the_cluster_that_was_built_again() -> None:
    cloud = attached()
    before = record(cloud).ownership.cluster_uid
    cloud.vault.set(SECRET, cloud.kubernetes.start_outside("quay"))
    push(cloud, files(extra="  deletionProtection: true\n"))
    cloud.run(seconds=600)
    assert take_over("harbour", "an operator", cloud.ports).status == 202
    cloud.run(seconds=1200)
    assert phases(cloud) == {"harbour": Phase.READY}
    assert record(cloud).ownership.cluster_uid != before
    assert owner(cloud, "quay")["roadstead-cluster"] == "harbour"


def test_a_check_writes_nothing_to_another_cluster_and_says_so() -> None:
    cloud = attached()
    cloud.vault.set(SECRET, cloud.kubernetes.start_outside("quay"))
    check(cloud)
    found = record(cloud).condition("FluxHealthy")
    assert found is not None
    assert found.status is None
    assert "leads to another cluster than before" in found.message
    assert api(cloud, "quay").get(FACTS) is None


def test_two_manifests_that_lead_to_one_cluster_are_one_too_many() -> None:
    cloud = attached()
    cloud.vault.set("kube-second", cloud.vault.get(SECRET).value)
    second = {"clusters/second/cluster.yaml": manifest("second", "kube-second")}
    push(cloud, files() | second)
    cloud.run()
    assert phases(cloud) == {"harbour": Phase.READY, "second": Phase.FAILED}
    reason = record(cloud, "second").job.reason
    assert "expected the tags roadstead-fleet=example and roadstead-cluster=second" in reason
    assert owner(cloud)["roadstead-cluster"] == "harbour"


def two_apps() -> tuple[MemoryCloud, MemoryCloud]:
    """Return a cloud with the cluster attached, and that of another app of the fleet that meets it."""
    one = attached(config=FIRST)
    two = cloud_with_harbour(OTHER, peer=one)
    push(two, files())
    two.run(seconds=600)
    return one, two


def test_the_cluster_of_another_installation_is_held_and_marked() -> None:
    one, two = two_apps()
    assert "the installation the-first-app on branch main manages it too" in record(two).job.reason
    marked = owner(one)
    assert marked["roadstead-installation"].startswith("the-first-app@")
    assert marked["roadstead-contested-by"].startswith("another-app@")


def test_the_first_installation_sees_the_mark_and_writes_nothing_either() -> None:
    one, _ = two_apps()
    push(one, files(extra="  deletionProtection: true\n"))
    with counted(one) as calls:
        one.run(seconds=600)
    assert "the installation another-app on branch main manages it too" in record(one).job.reason
    assert (calls.applied, calls.written) == ([], [])


def test_a_takeover_decides_which_installation_manages_it() -> None:
    one, two = two_apps()
    assert take_over("harbour", "an operator", two.ports).status == 202
    two.run(seconds=1200)
    assert phases(two) == {"harbour": Phase.READY}
    assert owner(one)["roadstead-installation"].startswith("another-app@")
    assert "roadstead-contested-by" not in owner(one)


def test_lost_tables_are_rebuilt_without_a_write() -> None:
    cloud = attached(config=replace(FIRST, app_group=APP_GROUP))
    cloud.restore()
    cloud.clock.advance(3600)
    with counted(cloud) as calls:
        cloud.run(seconds=1800)
    assert phases(cloud) == {"harbour": Phase.READY}
    assert (calls.applied, calls.written) == ([], [])
    assert record(cloud).azure.life != record(cloud).uid
    assert set(WRITES) >= {"create", "replace"}


def test_lost_tables_and_a_cluster_that_differs_from_git_wait_for_a_takeover() -> None:
    cloud = attached(config=replace(FIRST, app_group=APP_GROUP))
    cloud.restore()
    cloud.clock.advance(3600)
    cloud.vault.set("fleet-age", "a-key-for-files")
    secret = f"{{name: age, vault: {EXAMPLE_VAULT}, keys: {{age.agekey: fleet-age}}}}"
    push(cloud, files(extra=f"  bootstrapSecrets: [{secret}]\n"))
    with counted(cloud) as calls:
        cloud.run(seconds=1800)
    assert "the tables do not know what was written to it last" in record(cloud).job.reason
    assert (calls.applied, calls.written) == ([], [])
    assert take_over("harbour", "an operator", cloud.ports).status == 202
    cloud.run(seconds=1200)
    assert phases(cloud) == {"harbour": Phase.READY}


def test_a_cluster_that_moves_to_azure_keeps_its_last_valid_spec() -> None:
    cloud = attached()
    commit = push(cloud, fleet("harbour"))
    cloud.run(seconds=600)
    plan = cloud.state.plan(commit)
    assert plan is not None
    (item,) = plan.plan.items
    assert "spec.provider cannot change from existing to aks" in str(item.hold)
    assert record(cloud).desired.is_attached
    assert api(cloud).get(OWNER_MAP) is not None
