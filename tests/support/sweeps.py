"""Sweeps of a cloud in memory, and what people do to its clusters by hand."""

from __future__ import annotations

from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.outbox import request_whole_sweep
from shared.app.sweep.sweep import handle as handle_request
from shared.azure.rate_limits import ARM_READ, Bucket, correct
from shared.cluster.findings.conditions import IN_SYNC
from shared.cluster.queues.messages import SweepRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.ports.azure import GetCluster, ListClusters
from shared.resource_ids import ClusterId
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import on_azure

LATER = 600.0
"""Seconds after which a record counts as settled."""


SUBSCRIPTIONS = tuple(f"00000000-0000-0000-0000-00000000000{number}" for number in (1, 2, 3))


def several(extra: str = "") -> MemoryCloud:
    """Return a cloud with a Ready cluster in each of three subscriptions; ``extra`` is YAML of each spec."""
    cloud = MemoryCloud(throttle=False, lock_seconds=600)
    cloud.azure.engine.subscriptions = SUBSCRIPTIONS
    files = fleet_files.fleet("a", "b", "c")
    for name, subscription in zip("abc", SUBSCRIPTIONS, strict=True):
        manifest = files[f"clusters/{name}/cluster.yaml"].decode()
        manifest = manifest.replace("spec:\n", f"spec:\n  subscriptionId: {subscription}\n", 1)
        files[f"clusters/{name}/cluster.yaml"] = (manifest + extra).encode()
    push(cloud, files)
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    return cloud


def sweep(cloud: MemoryCloud) -> None:
    """Let a sweep run to its end, some minutes later."""
    cloud.clock.advance(LATER)
    cloud.azure.complete_due()
    request_whole_sweep(cloud.ports)
    cloud.run()


def handle(cloud: MemoryCloud, part: SweepRequest) -> None:
    """Carry out one message of a sweep at once."""
    handle_request(part, cloud.ports)


def delete_by_hand(cloud: MemoryCloud, cluster: ClusterId) -> None:
    """Delete a cluster as the portal does, and let that end."""
    cloud.azure.delete_cluster(cluster)
    cloud.clock.advance(LATER)
    cloud.azure.complete_due()


def tag_by_hand(cloud: MemoryCloud, cluster: ClusterId, **tags: str) -> None:
    """Set tags of a cluster as the portal does, and let that end."""
    live = cloud.azure.peek(cluster)
    assert live is not None
    cloud.azure.patch_cluster(cluster, {"tags": {**live["tags"], **tags}})
    cloud.clock.advance(60)
    cloud.azure.complete_due()


def change_pool_by_hand(cloud: MemoryCloud, cluster: ClusterId, name: str, **change: Any) -> None:
    """Change properties of a node pool as the portal does, and let that end."""
    pool = cloud.azure.get_pool(cluster, name)["properties"]
    kept = {key: pool[key] for key in ("vmSize", "mode", "type", "osType", "tags", "count") if key in pool}
    cloud.azure.put_pool(cluster, name, {"properties": {**kept, **change}})
    cloud.clock.advance(LATER)
    cloud.azure.complete_due()


def drifted(record: ClusterRecord) -> dict[str, tuple[str, str]]:
    """Return the fields in which a cluster differs from git, with both values as JSON."""
    return (
        {field.path: (field.git, field.live) for field in record.divergence.drift.fields}
        if record.divergence.drift
        else {}
    )


def ready_condition(record: ClusterRecord) -> tuple[bool | None, str]:
    """Return the status and the reason of the condition Ready."""
    condition = record.condition("Ready")
    assert condition is not None
    return condition.status, condition.reason


def in_sync(record: ClusterRecord) -> tuple[bool | None, str]:
    """Return the status and the reason of the condition InSync."""
    condition = record.condition(IN_SYNC)
    assert condition is not None
    return condition.status, condition.reason


def reads_of(cloud: MemoryCloud) -> list[GetCluster | ListClusters]:
    """Return the list to which every read of a cluster or of a list is added from now on."""
    azure, reads = cloud.ports.azure, list[GetCluster | ListClusters]()

    def read(operation: Any) -> Any:
        reads.append(operation)
        return azure.call(operation)

    on_azure(cloud, GetCluster, read)
    on_azure(cloud, ListClusters, read)
    return reads


def use_up_reads(cloud: MemoryCloud, cluster: ClusterId, seconds: float) -> None:
    """Leave no token for a read in the cluster's subscription for so many seconds."""
    key, now = f"{cluster.subscription}|{ARM_READ.name}", cloud.clock()
    bucket = cloud.state.bucket(key) or Bucket(now)
    cloud.state.save_bucket(key, correct(bucket, ARM_READ, now=now, seconds=seconds))
    cloud.ports.process.tokens.drop(key)
