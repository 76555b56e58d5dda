"""Fleets in which environments follow a channel of Flux, of Microsoft's extension or of the operator."""

from __future__ import annotations

import json
import re

from localcloud.git.world.pull_requests import PullRecord
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.outbox import send
from shared.cluster.queues.messages import PromoteRequest
from shared.ports.state import Promotion
from shared.promotions import What
from tests.support.operator_clusters import FILE, OPERATOR
from tests.support.pipeline_runs import push, pushed
from tests.support.promotions import decided, files

BRANCH = "roadstead/flux/example/development"
ARTIFACT = "oci://ghcr.io/controlplaneio-fluxcd/flux-operator-manifests"
NAME = "controlplaneio-fluxcd/flux-operator-manifests"
RULE = """\
  promotions:
    - {from: development, to: production, what: [components], soak: 1h}
"""
HEAD = "apiVersion: roadstead.dev/v1alpha1\nkind: {}\nmetadata: {{name: {}}}\n"
EXTENSION = "    kubernetesVersion: '1.36'\n    flux: {install: extension}\n"
DISTRIBUTION = f"{{registry: ghcr.io/fluxcd, artifact: '{ARTIFACT}'}}"
INSTALLED = (
    "    kubernetesVersion: '1.36'\n"
    f"    flux: {{install: operator, components: {FILE}, instance: {{distribution: {DISTRIBUTION}}}}}\n"
)


def environment(name: str, defaults: str = EXTENSION, channel: str = "rapid") -> bytes:
    head = HEAD.format("Environment", name)
    return f"{head}spec:\n  flux: {{channel: {channel}}}\n  defaults:\n{defaults}".encode()


def extension(name: str, version: str = "1.22.1") -> bytes:
    below = f"    extension:\n      version: {version!r}\n"
    return f"{HEAD.format('Versions', name)}spec:\n  flux:\n{below}".encode()


def distribution(name: str, version: str = "2.8.7") -> bytes:
    below = f"    instance:\n      distribution:\n        version: {version!r}\n"
    return f"{HEAD.format('Versions', name)}spec:\n  flux:\n{below}".encode()


def with_extension(version: str = "1.22.1", channel: str = "rapid") -> dict[str, bytes]:
    """Return a fleet of two environments whose clusters have the extension."""
    found = files(extra=RULE)
    found["fleet.yaml"] = re.sub(rb"\n      components: .*", b"", found["fleet.yaml"])
    for name in ("development", "production"):
        found[f"environments/{name}.yaml"] = environment(name, EXTENSION, channel)
        found[f"environments/{name}.versions.yaml"] = extension(name, version)
    return found


def with_operator(version: str = "2.8.7", channel: str = "patch") -> dict[str, bytes]:
    """Return a fleet of two environments whose Flux the operator installs."""
    found = files(extra=RULE)
    found[FILE] = "".join(f"---\n{json.dumps(document)}\n" for document in OPERATOR).encode()
    for name in ("development", "production"):
        found[f"environments/{name}.yaml"] = environment(name, INSTALLED, channel)
        found[f"environments/{name}.versions.yaml"] = distribution(name, version)
    return found


def release(cloud: MemoryCloud, *versions: str) -> None:
    """Let the artifact of the operator have the manifests of some versions of Flux."""
    manifests = {f"flux/v{version}/source-controller.yaml": b"{}" for version in versions}
    cloud.stores.push(NAME, "latest", {"flux/VERSION": b"v2", **manifests})


def begun(tree: dict[str, bytes], cloud: MemoryCloud | None = None) -> MemoryCloud:
    cloud = cloud or MemoryCloud()
    push(cloud, tree)
    cloud.run()
    return cloud


def asked_again(cloud: MemoryCloud) -> None:
    """Ask as a sweep does, once what is listed is read again."""
    cloud.clock.advance(7 * 3600)
    send(PromoteRequest(), cloud.ports)
    cloud.run()


def proposed(cloud: MemoryCloud, state: str = "open") -> list[PullRecord]:
    return [pull for pull in cloud.repository.pulls.listed(state=state) if pull.head == BRANCH]


def stored(cloud: MemoryCloud) -> Promotion:
    found = cloud.state.promotion("development", What.COMPONENTS)
    assert found is not None
    return found


def merge(cloud: MemoryCloud, pull: PullRecord) -> None:
    record = cloud.repository.pulls.merged_into_base(pull.number)
    accept(pushed(cloud, record.merge_commit), cloud.ports)
    decided(cloud, pull.number, "closed")
