"""Flux as Microsoft's extension: installed, configured and verified through Azure alone."""

from __future__ import annotations

from shared.pipeline.worker.steps.flux_extension.configurations import ensure_configurations, other_source
from shared.pipeline.worker.steps.flux_extension.install import ensure_extension
from shared.pipeline.worker.steps.flux_extension.verify import verify_configurations

__all__ = ["ensure_configurations", "ensure_extension", "other_source", "verify_configurations"]
