"""A private cluster whose Flux is Microsoft's extension, and an app that has no way to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.json_tree import Json
from shared.kubernetes.kubeconfig import Kubeconfig
from shared.ports import KubernetesApi
from shared.resource_ids import ClusterId
from tests.support.one_cluster import ONE, files, record
from tests.support.pipeline_runs import accepted, push, require_ready

PRIVATE = "  apiServerAccessProfile: {enablePrivateCluster: true}\n"
FLUX = "  flux: {install: extension}\n"
APPS = """\
  flux:
    install: extension
    kustomizations:
      - {name: base, path: ./base}
      - name: apps
        path: ./apps
        dependsOn: [{name: base}]
        postBuild:
          substitute: {tier: gold}
          substituteFrom: [{kind: ConfigMap, name: cluster-facts}]
"""
BASE = {"base/base.yaml": b"{apiVersion: v1, kind: Namespace, metadata: {name: base}}"}
MAP = b"""\
apiVersion: v1
kind: ConfigMap
metadata: {name: where, namespace: base}
data: {cluster: "${cluster_name}", region: "${cluster_location}", tier: "${tier}"}
"""
FOLDERS = BASE | {"apps/apps.yaml": MAP}
TWO = """\
  flux:
    install: extension
    sources: [{name: team, url: "https://github.com/example/team"}]
    kustomizations: [{name: team, source: team, path: ./base}]
"""


class NoWay:
    """The Kubernetes port of an app that has no way to any API server."""

    def connect(self, cluster: ClusterId, **_: Any) -> KubernetesApi:
        raise AssertionError(f"nobody enters {cluster.name}")

    def open(self, cluster: ClusterId, _: Kubeconfig) -> KubernetesApi:
        raise AssertionError(f"nobody enters {cluster.name}")


def without_a_way(**config: Any) -> MemoryCloud:
    """Return a cloud whose app reaches no API server."""
    cloud = MemoryCloud(throttle=False)
    changed = replace(cloud.ports.config, **{"reaches_private": False, **config})
    cloud.with_ports(lambda ports: replace(ports, config=changed, kubernetes=NoWay()))
    return cloud


def hydrated(
    extra: str = APPS,
    more: Mapping[str, bytes] = FOLDERS,
    *,
    fleet: Callable[[str], dict[str, bytes]] = files,
) -> MemoryCloud:
    """Return a cloud whose private cluster is Ready."""
    cloud = without_a_way()
    push(cloud, fleet(PRIVATE + extra) | dict(more))
    cloud.run()
    require_ready(cloud, "one")
    return cloud


def configuration(cloud: MemoryCloud, name: str = "flux-system") -> Json:
    """Return the properties of a configuration, as Azure shows them."""
    properties: Json = cloud.azure.get_flux_configuration(ONE, name)["properties"]
    return properties


def change(cloud: MemoryCloud, **changed: Any) -> None:
    """Write the first configuration with other properties, as the portal does."""
    given = configuration(cloud)
    kept = ("scope", "namespace", "sourceKind", "gitRepository", "kustomizations")
    body = {key: given[key] for key in kept} | changed
    cloud.azure.put_flux_configuration(ONE, "flux-system", {"properties": body})
    cloud.sleep(60)


def written(cloud: MemoryCloud) -> dict[tuple[str, str], int]:
    """Return how often each extension and each configuration was written."""
    ends = ("extension", "configuration")
    return {key: count for key, count in accepted(cloud).items() if key[0].endswith(ends)}


def applied(cloud: MemoryCloud) -> str:
    """Return what the record says that Flux applied."""
    running = record(cloud).observation.running
    return running.flux.revision if running and running.flux else ""
