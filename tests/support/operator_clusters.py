"""Fleets whose Flux the Flux Operator installs: its components, and a cluster that is Ready with it."""

from __future__ import annotations

import json

from localcloud.common.flux_manifests import NAMESPACE, definition_of, deployment
from localcloud.kubernetes.world.object_store import At
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.kubernetes.flux_instance import INSTANCE
from shared.resource_ids import ObjectRef
from tests.support.one_cluster import files, live, world
from tests.support.pipeline_runs import phases, push

FILE = "flux/flux-operator.yaml"
OPERATOR = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    definition_of("FluxInstance", "fluxinstances", INSTANCE.api_version),
    {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "flux-operator", "namespace": NAMESPACE},
    },
    deployment("flux-operator", "ghcr.io/controlplaneio-fluxcd/flux-operator:v0.40.0"),
)
SHOP = b"""\
apiVersion: roadstead.dev/v1alpha1
kind: System
metadata: {name: shop}
spec:
  owners: [shop@example.com]
  clusters: {names: [one]}
  namespaces: [shop]
  source: {repository: https://github.com/example/fleet, path: ./deploy}
"""
"""A system on the cluster."""


def operated(version: str = "2.7.x", flux: str = "", instance: str = "", extra: str = "") -> dict[str, bytes]:
    """Return a fleet of one cluster; ``flux``, ``instance`` and ``extra`` are more fields of its parts."""
    more = f", {instance}" if instance else ""
    fields = f"install: operator, components: {FILE}{flux and ', ' + flux}"
    whole = f"  flux: {{{fields}, instance: {{distribution: {{version: {version}}}{more}}}}}\n"
    content = "".join(f"---\n{json.dumps(manifest)}\n" for manifest in OPERATOR)
    return files(extra + whole) | {FILE: content.encode()}


def brought(cloud: MemoryCloud, content: dict[str, bytes], seconds: float = 900) -> Phase:
    push(cloud, content)
    cloud.run(seconds=seconds)
    return phases(cloud)["one"]


def running(content: dict[str, bytes] | None = None) -> MemoryCloud:
    """Return a cloud whose cluster is Ready."""
    cloud = MemoryCloud(throttle=False)
    assert brought(cloud, content or operated()) is Phase.READY
    return cloud


def instance(cloud: MemoryCloud) -> Json:
    return live(cloud, INSTANCE)


def controller(cloud: MemoryCloud, name: str = "source-controller") -> Json:
    """Return the Deployment of a controller."""
    return live(cloud, ObjectRef("apps/v1", "Deployment", name, NAMESPACE))


def at_instance(cloud: MemoryCloud) -> At:
    kind = world(cloud).kind(INSTANCE.api_version, INSTANCE.kind)
    assert kind is not None
    return At(kind, INSTANCE.name, INSTANCE.namespace)
