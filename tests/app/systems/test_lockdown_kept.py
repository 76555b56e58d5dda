"""The lock-down of Flux on a cluster whose record does not know its teams, as restored tables leave it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from localcloud.common.flux_manifests import NAMESPACE
from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.kubernetes.world.writes.patches import MERGE
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.kubernetes.flux_lockdown import FLAGS
from shared.kubernetes.flux_objects import KUSTOMIZATION
from shared.kubernetes.system_objects import SYSTEM
from shared.ports import KubernetesApi
from shared.resource_ids import ClusterId
from tests.support.calls_inside import counted
from tests.support.flux_components import FILE
from tests.support.one_cluster import files, live, record, world
from tests.support.operator_clusters import (
    SHOP,
    at_instance,
    brought,
    controller,
    instance,
    operated,
    running,
)
from tests.support.replaced_ports import Around, around

pytestmark = pytest.mark.lives

Fleet = Callable[[str], dict[str, bytes]]
TEAM = {
    "systems/shop.yaml": SHOP,
    "deploy/map.yaml": b"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
}


def of_components(extra: str) -> dict[str, bytes]:
    return files(extra)


def of_operator(extra: str) -> dict[str, bytes]:
    return operated(extra=extra)


def is_locked(cloud: MemoryCloud, fleet: Fleet) -> bool:
    """Return whether Flux is locked down, and whether the platform's own Kustomization is for that."""
    account = live(cloud, KUSTOMIZATION)["spec"].get("serviceAccountName")
    locked = is_multitenant(cloud, fleet)
    assert (account == "kustomize-controller") == locked
    return locked


def is_multitenant(cloud: MemoryCloud, fleet: Fleet) -> bool:
    if fleet is of_operator:
        return bool((instance(cloud)["spec"].get("cluster") or {}).get("multitenant"))
    args = controller(cloud, "kustomize-controller")["spec"]["template"]["spec"]["containers"][0]["args"]
    return set(FLAGS["kustomize-controller"]) <= set(args)


def changed(before: dict[str, bytes]) -> dict[str, bytes]:
    """Return the fleet with another Flux, whose controllers log more."""
    replaced = before[FILE].replace(b"--log-level=info", b"--log-level=debug")
    assert replaced != before[FILE]
    return before | {FILE: replaced}


@pytest.mark.parametrize("fleet", [of_components, of_operator])
def test_tables_from_before_the_first_team_leave_flux_locked_down(fleet: Fleet) -> None:
    cloud = running(fleet(""))
    older = cloud.state.backup()
    assert brought(cloud, fleet("") | TEAM) is Phase.READY
    assert is_locked(cloud, fleet)
    cloud.state.restore(older)
    assert not record(cloud).azure.had_systems
    assert brought(cloud, fleet("  tags: {round: two}\n")) is Phase.READY
    assert is_locked(cloud, fleet)
    assert record(cloud).azure.had_systems


def test_the_lock_down_is_kept_also_when_the_file_of_flux_has_changed() -> None:
    cloud = running(files())
    older = cloud.state.backup()
    assert brought(cloud, files() | TEAM) is Phase.READY
    cloud.state.restore(older)
    assert brought(cloud, changed(files())) is Phase.READY
    assert is_locked(cloud, of_components)


@pytest.mark.parametrize("fleet", [of_components, of_operator])
def test_no_team_comes_to_a_cluster_that_lost_the_lock_down_after_it_was_set(fleet: Fleet) -> None:
    cloud, seen = running(fleet("")), list[bool]()
    kubernetes = cloud.ports.kubernetes

    def connect(cluster: ClusterId, **how: Any) -> KubernetesApi:
        api = kubernetes.connect(cluster, **how)

        def listed(api_version: str, kind: str, **selectors: str) -> object:
            if kind == "Kustomization" and selectors.get("labels") == SYSTEM:
                if not seen:
                    unlock(cloud, fleet)
                seen.append(is_multitenant(cloud, fleet))
            return api.list(api_version, kind, **selectors)

        def apply(manifest: Json, *, dry_run: bool = False) -> Json:
            assert manifest["metadata"].get("namespace") != "shop" or is_multitenant(cloud, fleet)
            return api.apply(manifest, dry_run=dry_run)

        entered: Any = Around(api, list=listed, apply=apply)
        return cast(KubernetesApi, entered)

    around(cloud, "kubernetes", connect=connect)
    assert brought(cloud, fleet("") | TEAM) is Phase.READY
    assert seen[:2] == [False, True]
    assert is_locked(cloud, fleet)


def unlock(cloud: MemoryCloud, fleet: Fleet) -> None:
    """Take the lock-down away, as on a cluster that never had a team."""
    if fleet is of_operator:
        at = at_instance(cloud)
        patch: Json = {"spec": {"cluster": None}}
    else:
        kind = world(cloud).kind("apps/v1", "Deployment")
        assert kind is not None
        spec = controller(cloud, "kustomize-controller")["spec"]["template"]["spec"]
        containers = [{**spec["containers"][0], "args": ["--log-level=info"]}]
        at = At(kind, "kustomize-controller", NAMESPACE)
        patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    world(cloud).patch(at, patch, MERGE, WriteMode(manager="kubectl-edit"))


def test_a_manifest_that_forbids_the_lock_down_has_none_also_then() -> None:
    cloud = running(files())
    older = cloud.state.backup()
    assert brought(cloud, files() | TEAM) is Phase.READY
    cloud.state.restore(older)
    assert brought(cloud, files("  flux: {lockdown: false}\n")) is Phase.READY
    assert not is_locked(cloud, of_components)


def test_a_cluster_without_teams_is_asked_for_them_once_for_each_flux_that_it_gets() -> None:
    cloud = MemoryCloud(throttle=False)
    with counted(cloud) as first:
        assert brought(cloud, files()) is Phase.READY
    with counted(cloud) as second:
        assert brought(cloud, files("  tags: {round: two}\n")) is Phase.READY
    with counted(cloud) as upgrade:
        assert brought(cloud, changed(files("  tags: {round: two}\n"))) is Phase.READY
    asked = [calls.listed.count("Namespace") for calls in (first, second, upgrade)]
    assert asked == [1, 0, 1]
    assert not is_locked(cloud, of_components)
    assert not record(cloud).azure.had_systems
