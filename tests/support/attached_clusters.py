"""A cluster that is not in Azure: its manifest, its vault, and what tests ask of it."""

from __future__ import annotations

from localcloud.keyvault.example_secrets import EXAMPLE_VAULT
from localcloud.kubernetes.world.kubernetes_clusters import outside
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.kubernetes.kubeconfig import OWNER_MAP
from shared.ports import FleetConfig, KubernetesApi
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push, record_of

SECRET = "kube-harbour"
MANIFEST = """\
apiVersion: roadstead.dev/v1alpha1
kind: Cluster
metadata: {{name: {name}, labels: {{site: quay}}}}
spec:
  provider: existing
  existing: {{kubeconfig: {{vault: {vault}, secret: {secret}}}}}
{extra}"""


def manifest(name: str = "harbour", secret: str = SECRET, extra: str = "") -> bytes:
    """Return a manifest; ``extra`` is YAML below its spec."""
    return MANIFEST.format(name=name, vault=EXAMPLE_VAULT, secret=secret, extra=extra).encode()


def files(*names: str, extra: str = "") -> dict[str, bytes]:
    """Return a fleet of the cluster harbour, with these AKS clusters; ``extra`` is YAML below its spec."""
    return fleet_files.fleet(*names) | {"clusters/harbour/cluster.yaml": manifest(extra=extra)}


def cloud_with_harbour(config: FleetConfig | None = None, peer: MemoryCloud | None = None) -> MemoryCloud:
    """Return a cloud with a cluster that is not in Azure, whose kubeconfig is in the vault."""
    cloud = MemoryCloud(config=config, throttle=False, peer=peer)
    cloud.vault.set(SECRET, cloud.kubernetes.start_outside("harbour"))
    return cloud


def attached(extra: str = "", config: FleetConfig | None = None) -> MemoryCloud:
    """Return a cloud in which the cluster is Ready."""
    cloud = cloud_with_harbour(config)
    push(cloud, files(extra=extra))
    cloud.run()
    assert phases(cloud) == {"harbour": Phase.READY}, record(cloud).job.reason
    return cloud


def record(cloud: MemoryCloud, name: str = "harbour") -> ClusterRecord:
    return record_of(cloud, name)


def api(cloud: MemoryCloud, name: str = "harbour") -> KubernetesApi:
    """Return the cluster's Kubernetes API, for whoever needs no login."""
    return cloud.kubernetes.connect(outside(name))


def world(cloud: MemoryCloud, name: str = "harbour") -> KubernetesWorld:
    found = cloud.kubernetes.world(outside(name))
    assert found is not None
    return found


def owner(cloud: MemoryCloud, name: str = "harbour") -> dict[str, str]:
    """Return what the cluster itself says of whose it is, {} for nothing."""
    return dict((api(cloud, name).get(OWNER_MAP) or {}).get("data") or {})
