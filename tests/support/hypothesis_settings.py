"""Settings of Hypothesis for tests with generated clusters."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

GENERATED = settings(
    max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
