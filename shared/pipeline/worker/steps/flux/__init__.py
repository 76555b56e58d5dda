"""Flux on a running cluster: access, components, sync objects, and the check that they are Ready."""

from __future__ import annotations

from shared.pipeline.worker.steps.flux.access import ensure_access
from shared.pipeline.worker.steps.flux.components import ensure_components
from shared.pipeline.worker.steps.flux.sync import ensure_sync, other_source
from shared.pipeline.worker.steps.flux.verify import verify

__all__ = ["ensure_access", "ensure_components", "ensure_sync", "other_source", "verify"]
