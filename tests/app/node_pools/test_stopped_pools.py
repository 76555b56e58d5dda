"""A node pool that git wants stopped is stopped, and keeps no job waiting."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.azure.world.pools.aks_nodes import nodes_of
from localcloud.common.control_plane import KubernetesNode
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports.azure import PutPool
from tests.support.one_cluster import ONE, advice, files, nodes, pool, pools, ready, record
from tests.support.pipeline_runs import accepted, phases, push

pytestmark = pytest.mark.lives

STOPPED: dict[str, Any] = {"powerState": "{code: Stopped}"}
RUNNING: dict[str, Any] = {"powerState": "{code: Running}"}


def power(cloud: MemoryCloud, name: str = "apps") -> tuple[str, int]:
    profile = pools(cloud)[name]
    return profile["powerState"]["code"], profile["count"]


def stop_by_hand(cloud: MemoryCloud, name: str) -> None:
    stop: Json = {"properties": {"powerState": {"code": "Stopped"}}}
    cloud.ports.azure.call(PutPool(ONE, name, stop, etag=None))
    cloud.run(10)


def test_a_pool_is_stopped_and_started_with_as_many_nodes_as_before() -> None:
    cloud = ready(pool(count=3))
    push(cloud, files(pool(count=3, **STOPPED)))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert (power(cloud), nodes(cloud, "apps")) == (("Stopped", 0), {})
    push(cloud, files(pool(count=3, **STOPPED) + "  tags: {a: b}\n"))
    cloud.run()
    assert accepted(cloud)["update-pool", "apps"] == 1
    push(cloud, files(pool(count=3, **RUNNING)))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert (power(cloud), len(nodes(cloud, "apps"))) == (("Running", 3), 3)
    assert accepted(cloud)["update-pool", "apps"] == 2


def test_a_new_pool_runs_first_and_is_then_stopped() -> None:
    cloud = ready(pool(**STOPPED))
    assert power(cloud) == ("Stopped", 0)
    writes = accepted(cloud)
    assert (writes["create-pool", "apps"], writes["update-pool", "apps"]) == (0, 1)


def test_other_changes_come_before_a_stop_and_after_a_start() -> None:
    cloud = ready(pool())
    push(cloud, files(pool(nodeLabels="{tier: web}", **STOPPED)))
    cloud.run(until=lambda: "tier" in (pools(cloud)["apps"].get("nodeLabels") or {}))
    assert power(cloud) == ("Running", 2)
    cloud.run()
    assert (power(cloud), phases(cloud)) == (("Stopped", 0), {"one": Phase.READY})
    push(cloud, files(pool(count=4, **RUNNING)))
    cloud.run(until=lambda: power(cloud)[0] == "Running")
    assert power(cloud) == ("Running", 2)
    cloud.run()
    assert (power(cloud), phases(cloud)) == (("Running", 4), {"one": Phase.READY})


def test_a_stopped_pool_is_upgraded_over_two_minor_versions() -> None:
    cloud = ready(f'{pool(**STOPPED)}  kubernetesVersion: "1.34"\n')
    push(cloud, files(f'{pool(**STOPPED)}  kubernetesVersion: "1.36"\n'))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert pools(cloud)["apps"]["currentOrchestratorVersion"].startswith("1.36.")
    assert power(cloud) == ("Stopped", 0)


def test_a_stopped_pool_is_replaced_without_a_drain() -> None:
    cloud = ready(pool(**STOPPED))
    push(cloud, files(pool("Standard_D8s_v5", **STOPPED)))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert set(pools(cloud)) == {"system", "appsb"}
    assert power(cloud, "appsb") == ("Stopped", 0)


def test_a_stopped_pool_with_an_autoscaler_is_removed_in_one_write() -> None:
    scaled = "vmSize: Standard_D4s_v5, minCount: 2, maxCount: 5"
    cloud = ready(f"    - {{name: apps, {scaled}, powerState: {{code: Stopped}}}}\n")
    assert power(cloud) == ("Stopped", 0)
    before = accepted(cloud)["update-pool", "apps"]
    push(cloud, files())
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system"})
    assert accepted(cloud)["update-pool", "apps"] == before


def test_a_pool_with_an_autoscaler_starts_with_as_many_nodes_as_before() -> None:
    scaled = "vmSize: Standard_D4s_v5, minCount: 2, maxCount: 5"
    cloud = ready(f"    - {{name: apps, {scaled}}}\n")
    cloud.azure.interventions.scale(ONE, "apps", 4)
    for code, count in (("Stopped", 0), ("Running", 4)):
        push(cloud, files(f"    - {{name: apps, {scaled}, powerState: {{code: {code}}}}}\n"))
        cloud.run()
        assert (phases(cloud), power(cloud)) == ({"one": Phase.READY}, (code, count))


def test_an_old_node_that_kubernetes_still_lists_of_a_stopped_pool_is_not_waited_for() -> None:
    cloud = ready(f'{pool(**STOPPED)}  kubernetesVersion: "1.35"\n')
    push(cloud, files(f'{pool(**STOPPED)}  kubernetesVersion: "1.36"\n'))
    cloud.run(until=lambda: pools(cloud)["apps"]["currentOrchestratorVersion"].startswith("1.36"))
    engine = cloud.azure.engine
    left = KubernetesNode("aks-apps-0", "apps", "1.35.7", {"kubernetes.azure.com/agentpool": "apps"})
    engine.plane.set_nodes(ONE, [*nodes_of(engine.cluster(ONE)), left])
    cloud.run(seconds=900)
    assert (phases(cloud), set(nodes(cloud, "apps"))) == ({"one": Phase.READY}, {"aks-apps-0"})


def test_the_count_of_a_pool_that_a_person_stopped_is_not_written() -> None:
    cloud = ready(pool())
    stop_by_hand(cloud, "apps")
    before = accepted(cloud)
    push(cloud, files(pool() + "  tags: {a: b}\n"))
    cloud.run()
    assert (phases(cloud), power(cloud)) == ({"one": Phase.READY}, ("Stopped", 0))
    assert accepted(cloud)["update-pool", "apps"] == before["update-pool", "apps"]


def test_a_replacement_that_a_person_stopped_is_waited_for() -> None:
    cloud = ready(pool())
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "appsb" in pools(cloud))
    cloud.clock.advance(30)
    cloud.azure.complete_due()
    stop_by_hand(cloud, "appsb")
    cloud.run(seconds=600)
    assert record(cloud).job.reason == "the node pool appsb, which replaces another one, is stopped"
    assert advice(cloud).startswith("Start appsb with `az aks nodepool start`")
    assert len(nodes(cloud, "apps")) == 2


@pytest.mark.parametrize("code", ["Stopped", "Running"])
def test_a_write_to_a_pool_repeats_the_power_state_of_the_manifest(code: str) -> None:
    state: dict[str, Any] = {"powerState": f"{{code: {code}}}"}
    cloud = ready(pool(**state))
    push(cloud, files(pool(nodeLabels="{tier: web}", **state)))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert pools(cloud)["apps"]["nodeLabels"] == {"tier": "web"}
    assert power(cloud)[0] == code
