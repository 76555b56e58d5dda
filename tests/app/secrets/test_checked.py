"""Checks of bootstrap secrets: new versions reach the cluster, and what the vault loses is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.app.api.views.why import why_view
from shared.cluster.failures.errors import Throttled, Unauthenticated, VaultForbidden, VaultUnavailable
from shared.cluster.findings.health import HEALTHY, HealthCondition
from shared.cluster.record_parts import Condition, Phase
from shared.kubernetes.bootstrap_secrets import VERSIONS
from shared.ports import VaultSecret
from tests.support import fleet_files
from tests.support.bootstrap_secrets import (
    AGE,
    NEXT,
    SOPS,
    VALUE,
    at,
    hydrated,
    patched,
    value_of,
    with_value,
)
from tests.support.calls_inside import counted
from tests.support.checks import check, condition
from tests.support.one_cluster import advice, files, live, ready, record, world
from tests.support.pipeline_runs import phases, push

pytestmark = pytest.mark.lives

SECRETS = HealthCondition.SECRETS


def found(cloud: MemoryCloud) -> Condition:
    return condition(record(cloud), SECRETS)


def test_secrets_as_the_vault_has_them_are_healthy_and_cost_a_read_of_each() -> None:
    cloud = hydrated()
    cloud.vaults.reads.clear()
    with counted(cloud) as calls:
        check(cloud)
    assert (found(cloud).status, found(cloud).message) == (
        True,
        "1 of 1 bootstrap secrets are as their vaults have them",
    )
    assert cloud.vaults.reads == [("platform", "fleet-age")]
    assert not calls.applied


def test_a_cluster_without_secrets_has_no_condition_of_them() -> None:
    cloud = ready()
    check(cloud)
    assert record(cloud).condition(SECRETS) is None
    assert condition(record(cloud)).status is True


def test_a_new_version_in_the_vault_reaches_the_cluster_with_an_event() -> None:
    cloud = hydrated()
    made = cloud.vault.set("fleet-age", NEXT)
    with counted(cloud) as calls:
        check(cloud)
    assert value_of(cloud) == NEXT
    assert calls.applied == ["sops-age"]
    assert made.version in live(cloud, SOPS)["metadata"]["annotations"][VERSIONS]
    assert found(cloud).status is True
    said = [event.message for event in cloud.state.events("one", 50) if event.reason == "SecretsRenewed"]
    assert said == ["applied the new version of the Secret flux-system/sops-age"]
    assert phases(cloud) == {"one": Phase.READY}
    with counted(cloud) as calls:
        check(cloud)
    assert not calls.applied


@pytest.mark.parametrize("lost", ["deleted", "disabled"])
def test_a_secret_that_the_vault_loses_is_reported_and_stays_in_the_cluster(lost: str) -> None:
    cloud = hydrated()
    before = live(cloud, SOPS)
    if lost == "deleted":
        cloud.vault.delete("fleet-age")
    else:
        cloud.vault.enable("fleet-age", enabled=False)
    check(cloud)
    assert found(cloud).status is False
    assert "it stays as it is, because the secret fleet-age of the vault platform" in found(cloud).message
    assert phases(cloud) == {"one": Phase.READY}
    cloud.run(seconds=3600, until=lambda: phases(cloud) == {"one": Phase.FAILED})
    assert record(cloud).finding == "SecretsUnhealthy"
    assert "in the vault" in advice(cloud)
    why = why_view("one", cloud.ports)
    assert why is not None
    assert "fleet-age" in why["doing"]
    assert live(cloud, SOPS) == before
    if lost == "deleted":
        cloud.vault.recover("fleet-age")
    else:
        cloud.vault.enable("fleet-age", enabled=True)
    cloud.run(seconds=900, until=lambda: phases(cloud) == {"one": Phase.READY})
    assert found(cloud).status is True


@pytest.mark.parametrize(
    "error",
    [
        VaultUnavailable("the vault platform did not answer"),
        Throttled("slow down", retry_after=60),
        Unauthenticated("no credential"),
        VaultForbidden("may not read"),
    ],
    ids=lambda error: error.kind,
)
def test_a_vault_that_cannot_be_read_says_nothing_of_its_secrets_and_of_nothing_else(
    error: Exception,
) -> None:
    cloud = hydrated()
    cloud.vaults.failing["platform"] = error  # type: ignore[assignment]
    check(cloud)
    assert found(cloud).status is None
    assert found(cloud).message.startswith(type(error).__name__)
    assert condition(record(cloud)).status is True
    cloud.run(seconds=3600)
    assert phases(cloud) == {"one": Phase.READY}
    cloud.vaults.failing.clear()
    check(cloud)
    assert found(cloud).status is True


def test_a_secret_that_somebody_deleted_or_changed_in_the_cluster_is_reported_and_a_replay_applies_it() -> (
    None
):
    cloud = hydrated()
    patched(cloud, {"data": {"age.agekey": "c29tZWJvZHk="}})
    with_value(cloud, NEXT)
    check(cloud)
    assert found(cloud).message == (
        "the Secret sops-age in flux-system: somebody changed what Roadstead applied: data.age.agekey"
    )
    assert value_of(cloud) == "somebody"
    assert replay("one", "an-operator", cloud.ports).status == 202
    cloud.run()
    assert value_of(cloud) == NEXT
    world(cloud).delete(at(SOPS))
    check(cloud)
    assert found(cloud).reason == "ObjectMissing"


def _saved_meanwhile(cloud: MemoryCloud, save: Callable[[], None]) -> list[str]:
    """Check a cluster whose vault answers after ``save``; return what is applied."""
    vaults = cloud.ports.vaults

    class Slow:
        def secret(self, vault: str, name: str) -> VaultSecret:
            answer = vaults.secret(vault, name)
            save()
            return answer

    cloud.with_ports(lambda ports: replace(ports, vaults=Slow()))
    with counted(cloud) as calls:
        check(cloud)
    return list(calls.applied)


def test_a_check_applies_a_new_version_also_where_a_sweep_saves_the_record_meanwhile() -> None:
    cloud = hydrated()
    cloud.vault.set("fleet-age", NEXT)

    def save() -> None:
        cloud.state.save(replace(record(cloud), ownership=replace(record(cloud).ownership, has_rival=False)))

    assert "sops-age" in _saved_meanwhile(cloud, save)
    assert (value_of(cloud), found(cloud).reason) == (NEXT, HEALTHY)


def test_a_check_whose_cluster_has_a_new_job_meanwhile_leaves_the_new_version_to_it() -> None:
    cloud = hydrated()
    cloud.vault.set("fleet-age", NEXT)

    def save() -> None:
        saved = record(cloud)
        cloud.state.save(replace(saved, job=replace(saved.job, sequence=saved.job.sequence + 1)))

    assert "sops-age" not in _saved_meanwhile(cloud, save)
    assert (value_of(cloud), record(cloud).condition(SECRETS)) == (VALUE, None)


def test_the_clusters_of_a_message_share_one_read_of_a_secret() -> None:
    names = ("one", "two", "three")
    whole = fleet_files.fleet() | {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=AGE) for name in names
    }
    cloud = with_value()
    push(cloud, whole)
    cloud.run()
    assert phases(cloud) == dict.fromkeys(names, Phase.READY)
    for failing in (None, VaultUnavailable("no answer")):
        cloud.vaults.reads.clear()
        if failing:
            cloud.vaults.failing["platform"] = failing
        check(cloud)
        assert len(cloud.vaults.reads) == 1


def test_a_removed_entry_ends_what_was_reported_of_it() -> None:
    cloud = hydrated()
    cloud.vault.delete("fleet-age")
    check(cloud)
    assert found(cloud).status is False
    push(cloud, files())
    cloud.run()
    check(cloud)
    assert found(cloud).status is True
    assert phases(cloud) == {"one": Phase.READY}


def test_a_secret_of_the_manifest_with_which_flux_reads_git_is_not_taken_for_the_apps_own() -> None:
    git = """\
  bootstrapSecrets:
    - {name: git, vault: platform, keys: {bearerToken: git}}
  flux: {secretRef: {name: git}}
"""
    cloud = MemoryCloud(throttle=False)
    cloud.vault.set("git", "a-token-of-git")
    push(cloud, files(git))
    cloud.run()
    check(cloud)
    assert (condition(record(cloud)).status, found(cloud).status) == (True, True)
