"""Bootstrap secrets: applied before Flux, renewed when the vault has a new version, removed at the end."""

from __future__ import annotations

from shared.pipeline.worker.steps.secrets.ensure import ensure_secrets
from shared.pipeline.worker.steps.secrets.reads import VaultReads
from shared.pipeline.worker.steps.secrets.removal import remove_former_secrets

__all__ = ["VaultReads", "ensure_secrets", "remove_former_secrets"]
