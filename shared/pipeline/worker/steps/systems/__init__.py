"""The teams' systems on a running cluster: applied, and removed where that was accepted."""

from __future__ import annotations

from shared.pipeline.worker.steps.systems.ensure import ensure_systems

__all__ = ["ensure_systems"]
