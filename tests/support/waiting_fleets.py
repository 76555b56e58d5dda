"""A staged fleet whose production waits for an approval, and commits that change what Flux applies to it."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from tests.support.pipeline_runs import cloud_with, pushed
from tests.support.staged_fleets import staged

APPROVED = """\
  rollout:
    stages:
      - {name: first, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - {name: second, approval: true, groups: [{maxConcurrency: "100%"}]}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n"


LATE = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late, namespace: nowhere}\n"
"""What no rule refuses, and no cluster takes: there is no such namespace."""


def fleet() -> MemoryCloud:
    """Return a fleet of which development gets each change, and production none without an approval."""
    return cloud_with(staged(APPROVED))


def change(cloud: MemoryCloud, name: str, message: str = "") -> str:
    """Push a commit that adds a namespace to what Flux applies; return the commit."""
    files = cloud.repository.files(cloud.repository.head("main"))
    return note(cloud, {**files, f"platform/{name}.yaml": (NAMESPACE % name).encode()}, message)


def note(cloud: MemoryCloud, files: dict[str, bytes], message: str = "") -> str:
    """Push exactly these files; return the commit."""
    commit = cloud.repository.push(files, message=message)
    accept(pushed(cloud, commit), cloud.ports)
    cloud.run(seconds=300)
    return commit
