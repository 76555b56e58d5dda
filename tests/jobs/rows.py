"""Rows for tests of the engine's pure parts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.jobs.record import ClusterRecord, accept_new
from tests.fleet.test_plan import desired

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def record(**job: Any) -> ClusterRecord:
    """Return a row at the beginning of its first job, with some fields of the job replaced."""
    made = accept_new(desired("one"), uid="0badcafe", commit="c" * 40, now=NOW)
    return replace(made, job=replace(made.job, **job), etag="v1")
