"""Fleets with systems of teams, and what tests ask of their objects."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.outbox import send
from shared.cluster.failures.errors import Dependency
from shared.cluster.queues.message_parts import Approval
from shared.cluster.queues.messages import PlanRequest
from shared.json_tree import Json
from shared.kubernetes.flux_objects import ref_of
from shared.kubernetes.system_objects import KINDS, SYSTEM
from shared.plan.plan import Item
from shared.resource_ids import ClusterId
from tests.support import fleet_files
from tests.support.one_cluster import SUBSCRIPTION
from tests.support.pipeline_runs import push, require_ready

URL = "https://github.com/example/fleet"
DEPLOYMENT = b"""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
"""
GROUP = "00000000-0000-0000-0000-000000000021"


def system(name: str, clusters: str, *, namespaces: str = "", extra: str = "", path: str = "") -> bytes:
    """Return a system's manifest; ``clusters`` and ``namespaces`` as YAML lists without brackets."""
    return f"""\
apiVersion: roadstead.dev/v1alpha1
kind: System
metadata: {{name: {name}}}
spec:
  owners: [{name}-team@example.com]
  clusters: {{names: [{clusters}]}}
  namespaces: [{namespaces or name}]
  source: {{repository: {URL}, path: {path or f"./apps/{name}"}}}
{extra}""".encode()


def fleet(*names: str, systems: dict[str, bytes], budget: int = 0) -> dict[str, bytes]:
    """Return a fleet of these clusters with systems, each of which has one Deployment in its folder."""
    files = fleet_files.fleet(*names)
    guard = f"  guards:\n    namespaceBudget: {budget}\n".encode()
    files["fleet.yaml"] = files["fleet.yaml"].replace(b"  guards:\n", guard, 1)
    for name, manifest in systems.items():
        files[f"systems/{name}.yaml"] = manifest
        files[f"apps/{name}/web.yaml"] = DEPLOYMENT
    return files


def cluster_id(name: str) -> ClusterId:
    """Return where a cluster of the fleet is."""
    return ClusterId(SUBSCRIPTION, f"rg-{name}", name)


def objects(cloud: MemoryCloud, cluster: str, name: str = "") -> list[str]:
    """Return the objects of a system on a cluster, or of all systems, as "Kind namespace/name"."""
    api = cloud.kubernetes.connect(cluster_id(cluster))
    found: list[Json] = []
    for kind in KINDS:
        try:
            found += api.list(*kind, labels=f"{SYSTEM}={name}" if name else SYSTEM)
        except Dependency:
            continue
    refs = map(ref_of, found)
    return sorted(f"{ref.kind} {ref.namespace}/{ref.name}".replace(" /", " ") for ref in refs)


def versions(cloud: MemoryCloud, cluster: str, name: str) -> dict[str, int]:
    """Return the generation, or for a kind without one the version, of each object that a system has."""
    api = cloud.kubernetes.connect(cluster_id(cluster))
    found = {}
    for kind in KINDS:
        try:
            listed = api.list(*kind, labels=f"{SYSTEM}={name}")
        except Dependency:
            continue
        for document in listed:
            metadata = document["metadata"]
            found[str(ref_of(document))] = int(metadata.get("generation") or metadata["resourceVersion"])
    return found


def item(cloud: MemoryCloud, cluster: str) -> Item:
    """Return the newest plan's item of a cluster."""
    plan = cloud.state.plan(cloud.state.fleet().commit)
    assert plan is not None
    return next(planned_item for planned_item in plan.plan.items if planned_item.cluster == cluster)


def approve(cloud: MemoryCloud, *clusters: str) -> None:
    """Approve what the newest plan holds of these clusters."""
    commit = cloud.state.fleet().commit
    approval = Approval(commit=commit, clusters=clusters, by="op", at=cloud.clock(), reason="asked for")
    request = PlanRequest(again=True, reason="approved", approval=approval)
    send(request, cloud.ports, message_id=f"approved:{commit}:{clusters}")


def hydrated(of_system: str, extra: str = "") -> MemoryCloud:
    """Return a cloud whose cluster is Ready with a system; both texts are more of the specs."""
    cloud = MemoryCloud(throttle=False)
    files = fleet("one", systems={"shop": system("shop", "one", extra=of_system)})
    files["clusters/one/cluster.yaml"] += extra.encode()
    push(cloud, files)
    cloud.run()
    require_ready(cloud, "one")
    return cloud
