"""Systems that pull with an identity of Azure, on a cluster whose Flux has one too."""

from __future__ import annotations

import json

from localcloud.common.flux_manifests import definition
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from tests.support.flux_components import FILE
from tests.support.pipeline_runs import phases, push
from tests.support.sources import CLIENT, WITH_IDENTITY
from tests.support.team_systems import DEPLOYMENT, URL, fleet, system

ROLES = "".join(
    f"""---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: flux-{role}-flux-system
  labels: {{rbac.authorization.k8s.io/aggregate-to-{role}: "true"}}
rules:
  - apiGroups: [source.toolkit.fluxcd.io, kustomize.toolkit.fluxcd.io]
    resources: ["*"]
    verbs: {verbs}
"""
    for role, verbs in (("view", "[get, list, watch]"), ("edit", "[create, delete, patch, update]"))
)
"""What the components of a whole Flux have besides: who may edit may have Kustomizations of their own."""
TEAM = CLIENT.replace("31", "41")
OCI = "oci://example.azurecr.io/shop"
AZURE = f"provider: azure, workloadIdentity: {{clientId: {TEAM}, tenantId: {TEAM}}}"


def pulling(source: str) -> dict[str, bytes]:
    """Return a fleet with a system that has this source; the Flux of its cluster has an identity too."""
    manifest = system("shop", "one").replace(URL.encode(), source.encode())
    files = fleet("one", systems={"shop": manifest})
    flux = f"{WITH_IDENTITY}  flux: {{workloadIdentity: {{clientId: {CLIENT}}}}}\n"
    files["clusters/one/cluster.yaml"] += flux.encode()
    more = "".join(f"---\n{json.dumps(definition(kind))}\n" for kind in ("OCIRepository", "Bucket"))
    files[FILE] += more.encode()
    return files


def brought(cloud: MemoryCloud, files: dict[str, bytes], seconds: float = 600) -> Phase:
    push(cloud, files)
    cloud.run(seconds=seconds)
    return phases(cloud)["one"]


def with_artifact() -> MemoryCloud:
    cloud = MemoryCloud(throttle=False)
    cloud.stores.push("shop", "latest", {"apps/shop/web.yaml": DEPLOYMENT})
    return cloud
