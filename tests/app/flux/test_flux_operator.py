"""Flux that the Flux Operator installs: a FluxInstance from the manifest, whose readiness is verified."""

from __future__ import annotations

import pytest

from localcloud.kubernetes.world.object_store import At
from localcloud.kubernetes.world.writes.patches import MERGE
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from tests.support.checks import check, condition
from tests.support.one_cluster import advice, record, world
from tests.support.operator_clusters import (
    SHOP,
    at_instance,
    brought,
    controller,
    instance,
    operated,
    running,
)
from tests.support.sources import CLIENT, WITH_IDENTITY, colour, manifests

pytestmark = pytest.mark.lives

MAP = b"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}"
RECONCILE = "fluxcd.controlplane.io/reconcile"


def image(cloud: MemoryCloud) -> str:
    return str(controller(cloud)["spec"]["template"]["spec"]["containers"][0]["image"])


def test_a_cluster_is_hydrated_by_the_flux_that_the_operator_installs() -> None:
    cloud = running(operated() | manifests("blue"))
    assert colour(cloud) == "blue"
    assert instance(cloud)["status"]["lastAppliedRevision"].startswith("v2.7.5@sha256:")
    assert instance(cloud)["spec"]["distribution"] == {"version": "2.7.x", "registry": "ghcr.io/fluxcd"}


def test_an_upgrade_of_flux_ends_when_the_operator_has_installed_it() -> None:
    cloud = running()
    assert brought(cloud, operated("2.8.x")) is Phase.READY
    assert instance(cloud)["status"]["lastAppliedRevision"].startswith("v2.8.8@sha256:")
    assert image(cloud) == "ghcr.io/fluxcd/source-controller:v2.8.8"


def test_a_second_job_writes_nothing() -> None:
    cloud = running()
    before = instance(cloud)["metadata"]["resourceVersion"]
    tagged = operated(extra="  tags: {round: two}\n")
    assert brought(cloud, tagged) is Phase.READY
    assert instance(cloud)["metadata"]["resourceVersion"] == before


def test_a_version_that_the_operator_does_not_know_says_what_to_do_until_it_is_corrected() -> None:
    cloud = running()
    assert brought(cloud, operated("9.x"), 300) is Phase.UPDATING
    reason = "Flux: FluxInstance flux: BuildFailed: build failed: no match found for semver: 9.x"
    assert record(cloud).job.reason == reason
    assert "Correct the version, or the artifact, in spec.flux.instance" in advice(cloud)
    assert brought(cloud, operated("2.8.x")) is Phase.READY


def test_the_operator_never_goes_back_and_the_reason_says_so() -> None:
    cloud = running(operated("2.8.x"))
    assert brought(cloud, operated("2.7.x"), 300) is Phase.UPDATING
    assert "downgrading from v2.8.8 to v2.7.5 is not supported" in record(cloud).job.reason


def test_a_job_waits_for_controllers_that_do_not_start() -> None:
    cloud = running()
    world(cloud).missing_images.add("ghcr.io/fluxcd/source-controller:v2.8.8")
    assert brought(cloud, operated("2.8.x"), 60) is Phase.UPDATING
    assert "FluxInstance flux: Progressing: Reconciliation in progress" in record(cloud).job.reason
    cloud.run(seconds=600)
    assert (
        "FluxInstance flux: ReconciliationFailed: reconciliation failed: timeout" in record(cloud).job.reason
    )
    assert "describe pods" in advice(cloud)


def test_an_instance_that_somebody_disabled_is_never_ready() -> None:
    cloud = running()
    disabled = {"metadata": {"annotations": {RECONCILE: "disabled"}}}
    world(cloud).patch(at_instance(cloud), disabled, MERGE)
    assert brought(cloud, operated("2.8.x"), 300) is not Phase.READY
    assert "somebody disabled its reconciliation" in record(cloud).job.reason
    assert f"annotate fluxinstance flux {RECONCILE}=enabled" in advice(cloud)
    world(cloud).patch(at_instance(cloud), {"metadata": {"annotations": {RECONCILE: "enabled"}}}, MERGE)
    cloud.run(seconds=3600)
    assert record(cloud).phase is Phase.READY


def test_a_component_that_git_no_longer_names_is_removed_by_the_operator() -> None:
    cloud = running()
    names = "components: [source-controller, kustomize-controller]"
    assert brought(cloud, operated(instance=names)) is Phase.READY
    entries = {entry["id"] for entry in instance(cloud)["status"]["inventory"]["entries"]}
    assert "flux-system_helm-controller_apps_Deployment" not in entries


def test_flux_pulls_as_an_identity_of_azure() -> None:
    fleet, identity = "'oci://example.azurecr.io/fleet'", f"{{clientId: {CLIENT}}}"
    flux = f"repository: {fleet}, provider: azure, workloadIdentity: {identity}"
    content = operated(flux=flux, extra=WITH_IDENTITY)
    cloud = MemoryCloud(throttle=False)
    cloud.stores.push("fleet", "latest", manifests("blue"))
    cloud.stores.registry.users, cloud.stores.registry.identities = {}, (CLIENT,)
    assert brought(cloud, content) is Phase.READY
    assert colour(cloud) == "blue"


def test_systems_lock_the_flux_of_the_operator_down() -> None:
    cloud = running()
    team = {"systems/shop.yaml": SHOP}
    assert brought(cloud, operated(extra="") | team | {"deploy/a.yaml": MAP}) is Phase.READY
    assert instance(cloud)["spec"]["cluster"] == {"multitenant": True}
    args = controller(cloud, "kustomize-controller")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--default-service-account=default" in args


def test_a_check_finds_an_instance_that_somebody_changed_or_disabled() -> None:
    cloud = running()
    check(cloud)
    assert condition(record(cloud)).status
    changed = {"spec": {"distribution": {"version": "2.6.x"}}}
    world(cloud).patch(at_instance(cloud), changed, MERGE)
    check(cloud)
    assert not condition(record(cloud)).status
    assert "the FluxInstance flux in flux-system: somebody changed" in condition(record(cloud)).message


def test_a_check_finds_a_controller_of_the_operator_that_does_not_run() -> None:
    cloud = running()
    name = image(cloud)
    world(cloud).missing_images.add(name)
    deployment = world(cloud).kind("apps/v1", "Deployment")
    assert deployment is not None
    at = At(deployment, "source-controller", "flux-system")
    world(cloud).patch(at, {"spec": {"template": {"metadata": {"labels": {"again": "true"}}}}}, MERGE)
    cloud.sleep(1000)
    check(cloud)
    assert "source-controller" in condition(record(cloud)).message
