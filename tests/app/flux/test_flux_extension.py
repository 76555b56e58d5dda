"""Flux as Microsoft's extension: a cluster becomes Ready through Azure alone."""

from __future__ import annotations

import base64
import logging
from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.recipes import Step
from shared.cluster.record import to_json
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.kubernetes.flux_objects import GitCredentials
from shared.ports.azure import AzureCall
from tests.support.extension_clusters import (
    APPS,
    BASE,
    FLUX,
    FOLDERS,
    MAP,
    PRIVATE,
    TWO,
    applied,
    change,
    configuration,
    hydrated,
    without_a_way,
    written,
)
from tests.support.one_cluster import ONE, advice, branch_files, files, pool, record
from tests.support.pipeline_runs import cloud_with, phases, push
from tests.support.sweeps import tag_by_hand

pytestmark = pytest.mark.lives


def where(cloud: MemoryCloud) -> Json:
    """Return what the folder apps has on the cluster."""
    found = cloud.kubernetes.world(ONE)
    assert found is not None
    kind = found.kind("v1", "ConfigMap")
    assert kind is not None
    data: Json = found.list(kind, "base")[0][0]["data"]
    return data


def test_a_private_cluster_without_any_way_to_it_is_hydrated_in_order_with_its_facts() -> None:
    cloud = hydrated()
    assert where(cloud) == {"cluster": "one", "region": "eastus", "tier": "gold"}
    assert written(cloud) == {("put-extension", "flux"): 1, ("put-configuration", "flux-system"): 1}
    names = {status["name"] for status in configuration(cloud)["statuses"]}
    assert names == {"flux-system", "flux-system-flux-system", "flux-system-base", "flux-system-apps"}
    head = cloud.repository.head("main")
    assert applied(cloud) == f"roadstead/pin/example/{head}@sha1:{head}"
    assert cloud.state.plan(cloud.repository.head("main")).plan.problems == ()  # type: ignore[union-attr]


def test_a_cluster_of_aks_automatic_becomes_ready_with_the_extension() -> None:
    cloud = without_a_way()
    manifest = files("  sku: {name: Automatic, tier: Standard}\n" + FLUX)["clusters/one/cluster.yaml"]
    own = manifest.replace(b"nodePools:\n    - name: system\n      count: 1\n", b"nodePools: null\n")
    push(cloud, files() | {"clusters/one/cluster.yaml": own})
    cloud.run()
    plan = cloud.state.plan(cloud.repository.head("main"))
    assert plan is not None
    assert plan.plan.problems == ()
    assert phases(cloud) == {"one": Phase.READY}
    assert cloud.azure.get_cluster(ONE)["sku"]["name"] == "Automatic"


def test_a_later_job_writes_nothing_to_the_extension_that_is_as_it_was() -> None:
    cloud = hydrated()
    before = written(cloud)
    push(cloud, files(PRIVATE + APPS + "  tags: {a: b}\n") | FOLDERS)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert written(cloud) == before


def test_an_upgrade_of_flux_is_another_version_of_the_extension_and_ends_when_azure_runs_it() -> None:
    def pinned(version: str) -> str:
        return APPS.replace("extension\n", f'extension\n    extension: {{version: "{version}"}}\n', 1)

    cloud = hydrated(pinned("1.18.1"))
    assert cloud.azure.get_extension(ONE, "flux")["properties"]["currentVersion"] == "1.18.1"
    push(cloud, files(PRIVATE + pinned("1.19.5")) | FOLDERS)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    extension = cloud.azure.get_extension(ONE, "flux")["properties"]
    assert (extension["currentVersion"], extension["autoUpgradeMinorVersion"]) == ("1.19.5", False)
    assert written(cloud) == {("put-extension", "flux"): 2, ("put-configuration", "flux-system"): 1}


def test_a_commit_changes_only_the_configuration_that_differs() -> None:
    cloud = hydrated()
    push(cloud, files(PRIVATE + APPS.replace("gold", "silver")) | FOLDERS)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert written(cloud)["put-configuration", "flux-system"] == 2
    assert where(cloud)["tier"] == "silver"


def test_what_git_takes_back_of_a_kustomization_goes_from_azure() -> None:
    cloud = hydrated(APPS.replace("path: ./apps\n", "path: ./apps\n        retryInterval: 90s\n"))
    assert configuration(cloud)["kustomizations"]["apps"]["retryIntervalInSeconds"] == 90
    push(cloud, files(PRIVATE + APPS) | FOLDERS)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert not configuration(cloud)["kustomizations"]["apps"].get("retryIntervalInSeconds")


def test_what_git_changes_is_ready_only_when_flux_has_applied_that_commit() -> None:
    cloud = hydrated(fleet=branch_files)
    push(
        cloud,
        branch_files(PRIVATE + APPS + "  tags: {a: b}\n") | BASE | {"apps/apps.yaml": b"{kind: Nothing}"},
    )
    cloud.run(seconds=600, until=lambda: False)
    assert "Flux: Kustomization flux-system-apps: BuildFailed" in record(cloud).job.reason
    broke = f"{cloud.repository.head('main')[:8]} by operator@example.invalid"
    assert f"./apps was changed last by {broke}" in record(cloud).job.reason
    assert "spec.flux.kustomizations[apps]" in advice(cloud)
    newer = {"apps/apps.yaml": MAP.replace(b"where", b"there")}
    push(cloud, branch_files(PRIVATE + APPS + "  tags: {a: c}\n") | BASE | newer)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert applied(cloud).endswith(cloud.repository.head("main"))


def test_a_source_that_git_no_longer_has_goes_with_what_it_applied_and_no_other_configuration() -> None:
    cloud = hydrated(TWO, BASE)
    theirs: dict[str, Any] = {"scope": "cluster", "namespace": "theirs", "sourceKind": "GitRepository"}
    theirs |= {
        "gitRepository": {"url": "https://github.com/example/theirs", "repositoryRef": {"branch": "main"}}
    }
    cloud.azure.put_flux_configuration(ONE, "theirs", {"properties": theirs})
    push(cloud, files(PRIVATE + FLUX) | BASE)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    names = [configuration["name"] for configuration in cloud.azure.list_flux_configurations(ONE)]
    assert sorted(names) == ["flux-system", "theirs"]
    assert record(cloud).removals.configurations == ()
    notes = [event.message for event in cloud.state.events("one", limit=50) if "left alone" in event.message]
    assert "left alone: the configurations theirs, not created by Roadstead" in notes[0]


@pytest.mark.parametrize(("before", "after"), [(FLUX, ""), ("", FLUX)])
def test_the_way_in_which_flux_comes_to_a_cluster_is_fixed(before: str, after: str) -> None:
    cloud = cloud_with(files(before), throttle=False)
    assert phases(cloud) == {"one": Phase.READY}
    push(cloud, files(after))
    cloud.run()
    plan = cloud.state.plan(cloud.repository.head("main"))
    assert plan is not None
    hold = plan.plan.items[0].hold
    assert hold is not None
    assert hold.cause.startswith("spec.flux.install cannot change from ")
    assert record(cloud).generation == 1


def test_an_extension_that_azure_cannot_install_says_why_and_is_installed_again() -> None:
    cloud = hydrated(fleet=branch_files)
    text = "Helm installation failed: Timed out waiting for flux-system/fluxconfig-controller"
    cloud.azure.interventions.fail_next("one", "ExtensionOperationFailed", text)
    newer = "  flux: {install: extension, extension: {version: 1.20.1}}\n"
    push(cloud, branch_files(PRIVATE + newer))
    cloud.run(until=lambda: bool(record(cloud).job.step.failure))
    failure = record(cloud).job.step.failure
    assert failure is not None
    assert (failure.kind, failure.code) == ("Interrupted", "ExtensionOperationFailed")
    assert failure.message == f"the extension flux: {text}"
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert cloud.azure.get_extension(ONE, "flux")["properties"]["currentVersion"] == "1.20.1"


def test_a_configuration_that_somebody_suspended_stays_so_unless_the_policy_resumes_it() -> None:
    cloud = hydrated(FLUX, {})
    change(cloud, suspend=True)
    push(cloud, files(PRIVATE + FLUX + "  tags: {a: b}\n"))
    cloud.run(seconds=600, until=lambda: False)
    assert configuration(cloud)["suspend"] is True
    assert "--suspend false" in record(cloud).job.next_run.action_required
    push(cloud, files(PRIVATE + FLUX + "  tags: {a: b}\n  drift: {fluxObjects: correct}\n"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert configuration(cloud)["suspend"] is False


CREDENTIALS = GitCredentials("roadstead", "a-secret-token", "github.com")


def test_the_git_credentials_of_the_app_reach_the_cluster_and_nothing_shows_the_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    cloud = without_a_way(git_credentials=CREDENTIALS)
    push(cloud, files(PRIVATE + FLUX))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    shown = configuration(cloud)
    assert shown["gitRepository"]["httpsUser"] == "roadstead"
    assert shown["configurationProtectedSettings"] == {}
    assert password(cloud) == CREDENTIALS.password
    told = [to_json(record(cloud)), caplog.text, *map(str, cloud.state.events("one", limit=100))]
    secrets = CREDENTIALS.password, base64.b64encode(CREDENTIALS.password.encode()).decode()
    assert [secret for secret in secrets if any(secret in text for text in told)] == []
    newer = replace(cloud.ports.config, git_credentials=replace(CREDENTIALS, password="another-token"))
    cloud.with_ports(lambda ports: replace(ports, config=newer))
    push(cloud, files(PRIVATE + FLUX + "  tags: {a: b}\n"))
    cloud.run()
    assert password(cloud) == "another-token"
    assert written(cloud)["put-configuration", "flux-system"] == 2


def password(cloud: MemoryCloud) -> str:
    """Return the password with which Flux reads the first source."""
    found = cloud.kubernetes.world(ONE)
    assert found is not None
    kind = found.kind("v1", "Secret")
    assert kind is not None
    (secret,) = found.list(kind, "flux-system")[0]
    return base64.b64decode(secret["data"]["password"]).decode()


def test_a_cluster_that_somebody_takes_meanwhile_gets_no_write_below_it() -> None:
    cloud = without_a_way()
    push(cloud, files(PRIVATE + FLUX))
    cloud.run(
        until=lambda: bool(cloud.state.clusters()) and record(cloud).job.step.name is Step.FLUX_COMPONENTS
    )
    tag_by_hand(cloud, ONE, **{"roadstead-fleet": "another"})
    cloud.run(seconds=900, until=lambda: False)
    assert written(cloud) == {("put-extension", "flux"): 1}
    assert "it is not this fleet's" in record(cloud).job.reason


class Dying:
    """Azure, for an app that dies around one call of an operation."""

    def __init__(self, inner: Any, name: str, *, after: bool) -> None:
        self._inner, self._name, self._after = inner, name, after

    def call(self, operation: AzureCall[Any]) -> Any:
        dies = operation.name == self._name
        if dies:
            self._name = ""
        if dies and not self._after:
            raise Crash
        result = self._inner.call(operation)
        if dies:
            raise Crash
        return result


WRITES = ("put_extension", "put_flux_configuration", "delete_flux_configuration")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_a_crash_around_a_write_leaves_one_extension_and_the_wanted_configurations(
    name: str, after: bool
) -> None:
    cloud = without_a_way()
    cloud.with_ports(lambda ports: replace(ports, azure=Dying(ports.azure, name, after=after)))
    push(cloud, files(PRIVATE + TWO) | BASE)
    cloud.run()
    push(cloud, files(PRIVATE + FLUX) | BASE)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert [configuration["name"] for configuration in cloud.azure.list_flux_configurations(ONE)] == [
        "flux-system"
    ]
    assert written(cloud)["put-extension", "flux"] == 1


def test_a_node_pool_of_a_cluster_that_nobody_enters_waits_for_the_person_who_drains_it() -> None:
    cloud = without_a_way()
    push(cloud, files(pool() + PRIVATE + FLUX))
    cloud.run()
    push(cloud, files(PRIVATE + FLUX))
    cloud.run(seconds=1200, until=lambda: False)
    assert "no way into the cluster to drain it" in record(cloud).job.reason
    assert "az aks nodepool delete" in advice(cloud)
    cloud.azure.delete_pool(ONE, "apps")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
