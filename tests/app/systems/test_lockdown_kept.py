"""The lock-down of Flux that somebody takes away after the step that has set it."""

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
from tests.support.one_cluster import files, live, world
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
