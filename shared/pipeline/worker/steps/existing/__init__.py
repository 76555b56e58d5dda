"""The steps of a cluster outside Azure: marked as ours before anything is written, and released at last."""

from __future__ import annotations

from shared.pipeline.worker.steps.existing.holds import another_cluster, held_elsewhere
from shared.pipeline.worker.steps.existing.ownership import ensure_owner, still_ours
from shared.pipeline.worker.steps.existing.release import release_cluster
from shared.pipeline.worker.steps.existing.verify import verified_elsewhere

__all__ = [
    "another_cluster",
    "ensure_owner",
    "held_elsewhere",
    "release_cluster",
    "still_ours",
    "verified_elsewhere",
]
