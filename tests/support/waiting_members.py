"""What the clusters of a rollout wait for."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.rollouts import rollout_view


def waits(cloud: MemoryCloud, commit: str) -> dict[str, tuple[str, str]]:
    """Return what the clusters of a rollout wait for, and what to do about it."""
    view = rollout_view(commit, cloud.ports)
    assert view is not None
    return {found["cluster"]: (found["waits"], found["suggestedAction"]) for found in view["waiting"]}
