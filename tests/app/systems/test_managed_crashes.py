"""A crash before and after every call for managed namespaces: nothing twice, nothing left, nothing lost."""

from __future__ import annotations

import pytest

from localcloud.memory.crashes import Counter
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import NOTHING_REMOVED, Phase
from shared.resource_ids import ObjectRef
from tests.support.crash_points import run_with_crashes, wire
from tests.support.pipeline_runs import phases, push, record_of
from tests.support.team_systems import cluster_id, fleet, system

ONE = cluster_id("one")
KEEP, DELETE = (f"  managedNamespaces: {{deletePolicy: {policy}}}\n" for policy in ("Keep", "Delete"))


def whole_run(counter: Counter) -> None:
    """Take two namespaces to Azure, one of them back, and the other one away; the host dies once."""
    cloud = MemoryCloud(throttle=False)
    after(cloud, shop="", pay="")
    wire(cloud, counter, "azure")
    before = [namespace(cloud, name) for name in ("shop", "pay")]
    after(cloud, shop=DELETE, pay=KEEP)
    assert managed(cloud) == {"shop", "pay"}
    after(cloud, shop="")
    assert managed(cloud) == set()
    assert [namespace(cloud, name) for name in ("shop", "pay")] == before
    record = record_of(cloud, "one")
    assert record.removals == NOTHING_REMOVED


def after(cloud: MemoryCloud, **systems: str) -> None:
    """Push these systems, each with more of its spec, and let the job run to its end."""
    given = {name: system(name, "one", extra=extra) for name, extra in systems.items()}
    push(cloud, fleet("one", systems=given, budget=2))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def managed(cloud: MemoryCloud) -> set[str]:
    return {document["name"] for document in cloud.azure.list_managed_namespaces(ONE)}


def namespace(cloud: MemoryCloud, name: str) -> str:
    """Return the uid of a namespace in the cluster, "" for none."""
    found = cloud.kubernetes.connect(ONE).get(ObjectRef("v1", "Namespace", name, ""))
    return str(found["metadata"]["uid"]) if found else ""


@pytest.mark.lives
def test_a_crash_at_any_call_leaves_what_git_and_the_delete_policies_say() -> None:
    run_with_crashes(whole_run, "steps/systems", least=20, most=6)
