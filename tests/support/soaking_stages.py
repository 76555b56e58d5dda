"""A fleet whose first stage soaks for an hour, and commits of the platform that come meanwhile."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.plan.plan import Plan
from tests.support.staged_fleets import NAMESPACE, staged, with_file

MINUTE = 60
SOAKED = """\
  rollout:
    stages:
      - name: development
        select: {environments: [development]}
        groups: [{maxConcurrency: "100%", soak: 1h}]
      - {name: production, select: {environments: [production]}, groups: [{maxConcurrency: "1"}]}
"""
OTHER = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: default}\n"


def numbered(number: int, rollout: str = SOAKED) -> dict[str, bytes]:
    """Return a fleet with a manifest of the platform that each number changes."""
    labelled = NAMESPACE.replace(b"}", b', labels: {number: "%d"}}' % number)
    return with_file("monitoring.yaml", labelled, staged(rollout))


def plan_of(cloud: MemoryCloud, commit: str) -> Plan:
    """Return the plan of a commit."""
    known = cloud.state.plan(commit)
    assert known is not None
    return known.plan


def wait(cloud: MemoryCloud, minutes: float) -> None:
    """Let so many minutes pass."""
    cloud.run(seconds=minutes * MINUTE, until=lambda: False)
