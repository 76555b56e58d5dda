"""What Roadstead and the examples apply satisfies Flux's own definitions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from localcloud.kubernetes.world.object_store import Object
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.flux_definitions import real_definitions, with_real_definitions
from tests.support.one_cluster import files, record, world
from tests.support.pipeline_runs import cloud_with, phases, push
from tests.support.platform_example import platform_example

pytestmark = pytest.mark.lives

EVERYTHING = """\
  flux:
    kustomizations:
      - name: flux-system
        wait: true
      - name: apps
        source: commits
        path: ./apps
        dependsOn: [{name: flux-system}]
        interval: 5m0s
        retryInterval: 1m0s
        timeout: 3m0s
        prune: false
        force: true
        deletionPolicy: Orphan
        targetNamespace: apps
        serviceAccountName: applies
        healthChecks: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: apps}]
        patches: [{target: {kind: Deployment}, patch: "- {op: remove, path: /spec/replicas}"}]
        decryption: {provider: sops, secretRef: {name: sops-age}}
        postBuild:
          substitute: {tier: gold}
          substituteFrom: [{kind: ConfigMap, name: cluster-facts, optional: true}]
    sources:
      - {name: commits, url: "https://github.com/example/a", commit: COMMIT}
      - {name: tags, url: "ssh://git@github.com/example/a", tag: v1, secretRef: {name: deploy-key}}
      - {name: range, url: "https://github.com/e/a", semver: 1.x, provider: github, secretRef: {name: a}}
      - {name: devops, url: "https://dev.azure.com/example/a/_git/a", branch: main, provider: azure}
      - {name: charts, kind: OCIRepository, url: "oci://example.azurecr.io/a", semver: 1.x, provider: azure}
      - {name: pinned, kind: OCIRepository, url: "oci://ghcr.io/example/a", tag: v1, ignore: "*.md"}
      - {name: blobs, kind: Bucket, endpoint: "a.blob.core.windows.net", bucketName: a, provider: azure}
"""


def with_alerts(channel: str) -> bytes:
    return f"""\
apiVersion: roadstead.dev/v1alpha1
kind: System
metadata: {{name: shop}}
spec:
  owners: [shop@example.com]
  clusters: {{names: [one]}}
  namespaces: [shop]
  source: {{repository: "https://github.com/example/fleet", path: ./teams/shop}}
  alerts: {{type: {channel}, secretRef: {{name: channel}}, severity: info}}
""".encode()


def refusals(cloud: MemoryCloud) -> list[str]:
    """Return what the API server has refused, as the events of the cluster say it."""
    texts = [str(event) for event in cloud.state.events("one", limit=500)]
    return [text for text in texts if "Invalid" in text or "unknown field" in text or "refused" in text]


def listed(cloud: MemoryCloud, api_version: str, kind: str) -> list[Object]:
    found = world(cloud).kind(api_version, kind)
    assert found is not None
    return list(world(cloud).list(found)[0])


def test_the_definitions_are_those_of_an_export_of_flux() -> None:
    kinds = {real_definition["spec"]["names"]["kind"] for real_definition in real_definitions()}
    assert {"GitRepository", "OCIRepository", "Bucket", "Kustomization", "HelmRelease", "Alert"} <= kinds


@pytest.mark.parametrize("example", [fleet_files.example, platform_example])
def test_the_examples_are_ready_with_them(example: Callable[[], dict[str, bytes]]) -> None:
    cloud = cloud_with(with_real_definitions(example()))
    assert set(phases(cloud).values()) == {Phase.READY}


def test_every_field_of_a_source_and_of_a_kustomization_is_taken() -> None:
    cloud = MemoryCloud()
    push(cloud, with_real_definitions(files(EVERYTHING.replace("COMMIT", f'"{"1" * 40}"'))))
    cloud.run(seconds=900, until=lambda: record(cloud).job.step.name is Step.VERIFY)
    assert refusals(cloud) == []
    found = {
        (kind, value["metadata"]["name"])
        for kind in ("GitRepository", "OCIRepository", "Bucket")
        for value in listed(cloud, "source.toolkit.fluxcd.io/v1", kind)
    }
    assert len(found) == 8


@pytest.mark.parametrize(
    "channel", ["slack", "msteams", "discord", "googlechat", "rocket", "generic", "generic-hmac"]
)
def test_the_alerts_of_a_system_are_taken(channel: str) -> None:
    cloud = MemoryCloud()
    push(cloud, with_real_definitions(files() | {"systems/shop.yaml": with_alerts(channel)}))
    cloud.run(seconds=900, until=lambda: record(cloud).job.step.name is Step.VERIFY)
    assert refusals(cloud) == []
    alerts = listed(cloud, "notification.toolkit.fluxcd.io/v1beta3", "Alert")
    assert [alert["spec"]["eventSeverity"] for alert in alerts] == ["info"]
