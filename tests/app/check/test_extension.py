"""Checks of a cluster whose Flux is Microsoft's extension: Azure alone is read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.azure.running_versions import AppliedRevision
from shared.cluster.findings.health import HealthCondition
from shared.cluster.record_parts import Phase
from tests.support.checks import check, condition
from tests.support.extension_clusters import FLUX, FOLDERS, PRIVATE, change, configuration, hydrated
from tests.support.one_cluster import ONE, branch_files, files, record
from tests.support.pipeline_runs import phases, push

pytestmark = pytest.mark.lives

CORRECT = FLUX + "  drift: {fluxObjects: correct}\n"


def path(cloud: MemoryCloud) -> str:
    return str(configuration(cloud)["kustomizations"]["flux-system"]["path"])


def other_path(cloud: MemoryCloud) -> None:
    given = configuration(cloud)["kustomizations"]
    change(cloud, kustomizations={"flux-system": given["flux-system"] | {"path": "./elsewhere"}})


def test_a_cluster_that_nobody_enters_is_found_healthy_by_what_azure_shows() -> None:
    cloud = hydrated()
    check(cloud)
    flux, platform = (
        condition(record(cloud), kind) for kind in (HealthCondition.FLUX, HealthCondition.PLATFORM)
    )
    assert (flux.status, platform.status) == (True, True)
    assert platform.message == "Azure shows 1 node pools, none of them as failed; nodes are not read"
    inside = record(cloud).observation.inside
    assert inside is not None
    assert {part.kind: (part.ready, part.total) for part in inside.parts} == {
        "Component": (2, 2),
        "GitRepository": (1, 1),
        "Kustomization": (3, 3),
    }


def test_what_somebody_changed_in_azure_is_named_and_only_a_policy_has_it_written_again() -> None:
    cloud = hydrated(FLUX, {})
    other_path(cloud)
    check(cloud)
    cloud.run()
    found = condition(record(cloud))
    assert (found.status, found.reason) == (False, "ObjectChanged")
    assert "the FluxConfiguration flux-system: somebody changed" in found.message
    assert "kustomizations[flux-system].path" in found.message
    assert path(cloud) == "./elsewhere"
    push(cloud, files(PRIVATE + CORRECT))
    cloud.run()
    other_path(cloud)
    check(cloud)
    cloud.run()
    check(cloud)
    assert (phases(cloud), condition(record(cloud)).status) == ({"one": Phase.READY}, True)
    assert path(cloud) == "./platform"


def test_what_was_suspended_or_deleted_in_azure_is_named() -> None:
    cloud = hydrated(FLUX, {})
    change(cloud, suspend=True)
    check(cloud)
    assert condition(record(cloud)).message.startswith(
        "the FluxConfiguration flux-system: somebody suspended it"
    )
    cloud.azure.delete_flux_configuration(ONE, "flux-system")
    check(cloud)
    assert condition(record(cloud)).reason == "ObjectMissing"


def test_an_object_that_fails_is_quoted() -> None:
    cloud = hydrated(fleet=branch_files)
    cloud.repository.push(branch_files(PRIVATE) | FOLDERS | {"apps/apps.yaml": b"{kind: Nothing}"})
    check(cloud)
    found = condition(record(cloud))
    assert (found.status, found.reason) == (False, "BuildFailed")
    assert "the Kustomization flux-system-apps in flux-system: BuildFailed" in found.message


def test_the_revision_is_the_one_that_azure_reports_as_applied_and_keeps_its_time_while_there_is_none() -> (
    None
):
    cloud = hydrated(fleet=branch_files)
    commit = cloud.repository.push(branch_files(PRIVATE) | FOLDERS | {"platform/more.yaml": MORE})
    check(cloud)
    known = flux(cloud)
    assert known.revision == f"main@sha1:{commit}"
    cloud.repository.push(branch_files(PRIVATE) | FOLDERS | {"platform/more.yaml": b"{kind: Nothing}"})
    check(cloud)
    assert condition(record(cloud)).reason == "BuildFailed"
    assert flux(cloud) == known


MORE = b"{apiVersion: v1, kind: ConfigMap, metadata: {name: more, namespace: default}}"


def flux(cloud: MemoryCloud) -> AppliedRevision:
    running = record(cloud).observation.running
    assert running is not None
    assert running.flux is not None
    return running.flux


def test_newer_facts_of_the_cluster_are_no_change_of_somebody_and_come_with_the_next_job() -> None:
    cloud = hydrated()
    known = record(cloud)
    facts = {**(known.observation.facts or {}), "cluster_kubernetes_version": "1.99.0"}
    cloud.state.save(replace(known, observation=replace(known.observation, facts=facts)))
    check(cloud)
    assert condition(record(cloud)).status is True


@pytest.mark.parametrize("message", ["no image", ""])
def test_a_node_pool_that_failed_in_azure_makes_the_platform_unhealthy(message: str) -> None:
    cloud = hydrated(FLUX, {})
    (failed,) = cloud.azure.engine.cluster(ONE).pools.values()
    failed["provisioningState"] = "Failed"
    failed["status"] = {"provisioningError": {"code": "ImageNotFound", "message": message}}
    check(cloud)
    found = condition(record(cloud), HealthCondition.PLATFORM)
    assert (found.status, found.reason) == (False, "NodePoolFailed")
    assert (message or "Azure gives no reason") in found.message
