"""A fleet with a system whose source is followed by rollout, and the repository of its team."""

from __future__ import annotations

from localcloud.git.world.memory_repository import MemoryRepository
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.kubernetes.sync_objects import SOURCE_API
from shared.plan.holds import Hold
from shared.resource_ids import ObjectRef
from tests.support.pipeline_runs import phases, push, record_of
from tests.support.staged_fleets import DEV, PROD, staged
from tests.support.team_systems import DEPLOYMENT, URL, system

TEAM = "https://github.com/contoso/shop"


BOTH = ("a1", "b1")


def following(
    manifests: bytes = DEPLOYMENT, cloud: MemoryCloud | None = None
) -> tuple[MemoryCloud, MemoryRepository]:
    """Return a cloud with a system on a cluster of each environment, and the repository of its team."""
    cloud = cloud or MemoryCloud()
    team = MemoryRepository(cloud.clock)
    team.id = 2
    cloud.others["contoso/shop"] = team
    team.push({"apps/shop/web.yaml": manifests})
    push(cloud, files())
    settle(cloud)
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)
    return cloud, team


def files() -> dict[str, bytes]:
    source = f"{{repository: {TEAM}, follow: rollout,"
    manifest = system("shop", ", ".join(BOTH)).replace(f"{{repository: {URL},".encode(), source.encode())
    return staged() | {"systems/shop.yaml": manifest}


def settle(cloud: MemoryCloud) -> None:
    cloud.run(seconds=3600, until=lambda: False)


def at(cloud: MemoryCloud, name: str) -> str:
    """Return the commit that Flux pulls for the system on a cluster, "" where it is not there."""
    record = record_of(cloud, name)
    ref = ObjectRef(SOURCE_API, "GitRepository", "shop", "shop")
    live = cloud.kubernetes.connect(record.desired.id).get(ref)
    return str(live["spec"]["ref"].get("commit") or "") if live else ""


def on(cloud: MemoryCloud, commit: str) -> set[str]:
    return {name for name in BOTH if at(cloud, name) == commit}


def newest(cloud: MemoryCloud) -> str:
    return cloud.repository.head("main")


def hold_of(cloud: MemoryCloud, name: str) -> Hold | None:
    plan = cloud.state.plan(newest(cloud))
    assert plan is not None
    return next(item.hold for item in plan.plan.items if item.cluster == name)


CLAIM = b"""\
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: orders}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
"""


TWO = DEPLOYMENT.replace(b"replicas: 1", b"replicas: 2")
