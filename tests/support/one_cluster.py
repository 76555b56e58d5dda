"""A fleet of one cluster: its manifest, how it becomes Ready, and what tests ask of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.why import why_view
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports import KubernetesApi
from shared.ports.azure import GetCluster
from shared.resource_ids import ClusterId, ObjectRef
from tests.support import fleet_files
from tests.support.pipeline_runs import cloud_with, phases, push, record_of, step_until
from tests.support.workloads import run_blocked_pod

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
ONE = ClusterId(SUBSCRIPTION, "rg-one", "one")
ENTRA = "  aadProfile: {managed: true, enableAzureRBAC: true}\n"
"""YAML of a cluster with Entra ID, for ``files``."""
WINDOW = """\
  maintenanceWindows:
    - name: aksManagedAutoUpgradeSchedule
      maintenanceWindow:
        schedule: {weekly: {intervalWeeks: 1, dayOfWeek: Sunday}}
        durationHours: 4
        startTime: "01:00"
        utcOffset: "+00:00"
"""


def files(extra: str = "", *, annotations: str = "") -> dict[str, bytes]:
    """Return a fleet of one cluster; ``extra`` is YAML below its spec, after its node pools."""
    manifest = fleet_files.cluster("one", extra=extra).decode()
    if annotations:
        manifest = manifest.replace("  name: one\n", f"  name: one\n  annotations: {annotations}\n", 1)
    return fleet_files.fleet() | {"clusters/one/cluster.yaml": manifest.encode()}


def pool(size: str = "Standard_D4s_v5", *, count: int = 2, **fields: Any) -> str:
    """Return YAML of the node pool "apps", for ``files``."""
    more = "".join(f", {key}: {value}" for key, value in fields.items())
    return f"    - {{name: apps, vmSize: {size}, count: {count}{more}}}\n"


def suspended(cloud: MemoryCloud, hours: int) -> str:
    """Return YAML that suspends the cluster from now on, for ``files``."""
    until = (cloud.clock() + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f'  suspend: {{owner: team-a, reason: an audit, until: "{until}"}}\n'


def branch_files(extra: str = "", *, annotations: str = "") -> dict[str, bytes]:
    """Return the fleet of ``files`` whose Flux follows the branch by itself."""
    return fleet_files.following_branch(files(extra, annotations=annotations))


def ready(extra: str = "", *, fleet: Callable[[str], dict[str, bytes]] = files) -> MemoryCloud:
    """Return a cloud in which the cluster is Ready; the test reads more often than Azure allows."""
    cloud = cloud_with(fleet(extra), throttle=False)
    assert phases(cloud) == {"one": Phase.READY}
    return cloud


def tombstoned() -> MemoryCloud:
    """Return a cloud whose cluster has a tombstone, before Azure has received the delete."""
    cloud = ready()
    push(cloud, fleet_files.fleet())
    step_until(cloud, lambda: phases(cloud) == {"one": Phase.DELETING})
    return cloud


def record(cloud: MemoryCloud) -> ClusterRecord:
    """Return the cluster's record."""
    return record_of(cloud, "one")


def advice(cloud: MemoryCloud) -> str:
    """Return the suggested action of `roadstead why`."""
    found = why_view("one", cloud.ports)
    assert found is not None
    return str(found["suggestedAction"])


def cluster(cloud: MemoryCloud) -> Json:
    """Return the cluster as Azure shows it."""
    found = cloud.ports.azure.call(GetCluster(ONE))
    assert found is not None
    return found


def pools(cloud: MemoryCloud) -> dict[str, Json]:
    """Return the cluster's node pools by name, as Azure shows them."""
    return {profile["name"]: profile for profile in cluster(cloud)["properties"]["agentPoolProfiles"]}


def api(cloud: MemoryCloud) -> KubernetesApi:
    """Return the cluster's Kubernetes API."""
    return cloud.kubernetes.connect(ONE)


def fetched(cloud: MemoryCloud) -> int:
    """Return how many kubeconfigs were fetched: nothing else here takes from that bucket."""
    return cloud.azure.limits.counts["AllOtherHandlers"]


def world(cloud: MemoryCloud) -> KubernetesWorld:
    """Return the cluster's Kubernetes, for what a person or a controller does there."""
    found = cloud.kubernetes.world(ONE)
    assert found is not None
    return found


def live(cloud: MemoryCloud, ref: ObjectRef) -> Json:
    """Return an object that the cluster has."""
    found = api(cloud).get(ref)
    assert found is not None
    return found


def nodes(cloud: MemoryCloud, name: str) -> dict[str, bool]:
    """Return the nodes of a pool, and whether each is closed."""
    found = api(cloud).list("v1", "Node", labels=f"kubernetes.azure.com/agentpool={name}")
    return {node["metadata"]["name"]: bool(node["spec"].get("unschedulable")) for node in found}


def blocked_pod(cloud: MemoryCloud) -> None:
    """Run the pod shop/web on the pool "apps"; its budget does not let it go."""
    api(cloud).apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    run_blocked_pod(api(cloud), "apps", namespace="shop")
