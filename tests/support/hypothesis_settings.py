"""Settings of Hypothesis for tests with generated clusters."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.support.sample import examples

GENERATED = settings(
    max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
