"""What a cluster grants to identities in Azure: written after the cluster, removed with it, by name."""

from __future__ import annotations

from shared.pipeline.worker.steps.identity_access.ensure import ensure_identity_access
from shared.pipeline.worker.steps.identity_access.removal import remove_identity_access

__all__ = ["ensure_identity_access", "remove_identity_access"]
