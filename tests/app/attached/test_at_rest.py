"""A cluster that is not in Azure while no job works on it: sweeps leave it alone, and checks read it."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.object_store import At
from shared.app.api.acts.azure import read_live
from shared.app.api.views.clusters import cluster_detail
from shared.app.api.views.tree import tree_view
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import FACTS
from tests.support.attached_clusters import SECRET, api, attached, files, record, world
from tests.support.checks import check, condition
from tests.support.one_cluster import suspended
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import around
from tests.support.sweeps import sweep

pytestmark = pytest.mark.lives

FREEZE = b"""\
  rollout:
    freezes:
      - name: holidays
        starts: "2026-01-01T00:00:00Z"
        ends: "2026-01-01T12:00:00Z"
        owner: platform
        reason: nobody is here
"""


def test_a_sweep_neither_misses_it_nor_reads_its_record() -> None:
    cloud = attached()
    read: list[Any] = []
    inner = cloud.state.clusters_named

    def clusters_named(names: list[str]) -> Any:
        read.extend(names)
        return inner(names)

    around(cloud, "state", clusters_named=clusters_named)
    before = record(cloud)
    sweep(cloud)
    assert phases(cloud) == {"harbour": Phase.READY}
    assert read == []
    assert cloud.state.sweep().listings == () or all(
        not listing.orphans for listing in cloud.state.sweep().listings
    )
    assert record(cloud) == before


def test_a_check_finds_it_healthy_from_inside() -> None:
    cloud = attached()
    check(cloud)
    assert condition(record(cloud)).status is True
    found = record(cloud).condition("PlatformHealthy")
    assert found is not None
    assert found.message == "3 of 3 nodes are ready"


def test_a_new_version_of_the_kubeconfig_is_used_by_the_next_reader() -> None:
    cloud = attached()
    right = cloud.vault.get(SECRET).value
    cloud.vault.set(SECRET, right.replace("a-token-of-harbour", "a-revoked-token-of-harbour"))
    check(cloud)
    assert "Unauthorized" in condition(record(cloud)).message
    cloud.vault.set(SECRET, right)
    check(cloud)
    assert condition(record(cloud)).status is True


def test_what_somebody_removed_of_flux_is_applied_again_where_the_policy_says_so() -> None:
    cloud = attached(extra="  drift: {fluxObjects: correct}\n")
    kind = next(kind for kind in BUILT_IN if kind.kind == "ConfigMap")
    world(cloud).delete(At(kind, FACTS.name, FACTS.namespace))
    check(cloud)
    cloud.run(seconds=1200)
    assert api(cloud).get(FACTS) is not None
    assert phases(cloud) == {"harbour": Phase.READY}


def test_what_is_put_back_in_a_freeze_is_held_no_longer() -> None:
    cloud = attached(extra="  drift: {fluxObjects: correct}\n")
    wanted = files(extra="  drift: {fluxObjects: correct}\n")
    wanted["fleet.yaml"] += FREEZE
    push(cloud, wanted)
    cloud.run(seconds=600)
    before = api(cloud).get(FACTS)
    assert before is not None
    kind = next(kind for kind in BUILT_IN if kind.kind == "ConfigMap")
    world(cloud).delete(At(kind, FACTS.name, FACTS.namespace))
    check(cloud)
    cloud.run(seconds=1200)
    held = record(cloud).divergence.held
    assert held is not None
    assert (held.name, api(cloud).get(FACTS)) == ("holidays", None)
    metadata = {key: before["metadata"][key] for key in ("name", "namespace", "annotations")}
    api(cloud).apply({**before, "metadata": metadata})
    check(cloud)
    cloud.run(seconds=4 * 3600)
    assert record(cloud).divergence.held is None


def test_a_suspended_cluster_is_not_written_to() -> None:
    cloud = attached()
    push(cloud, files(extra=suspended(cloud, 4)))
    cloud.run(seconds=600)
    assert phases(cloud) == {"harbour": Phase.SUSPENDED}
    assert "suspended by team-a" in record(cloud).job.reason


@pytest.mark.parametrize("extra", ["", "  drift: {missingCluster: recreate}\n"])
def test_views_say_that_it_is_not_in_azure(extra: str) -> None:
    cloud = attached(extra=extra)
    (live,) = read_live(["harbour"], cloud.ports).body["clusters"]
    assert (live["live"], live["problem"]) == (None, "it is not in Azure: checks read it from inside")
    assert tree_view("harbour", cloud.ports) is not None
    assert why_view("harbour", cloud.ports) is not None
    view: Any = cluster_detail("harbour", cloud.ports)
    assert view["spec"]["provider"] == "existing"
    assert (view["location"], view["nodes"]) == ("", 3)
