"""The alerts, over measurements as Application Insights has them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from shared.cluster.reporting.measurements import PLANNED, PLANS, SUPERSEDED
from tests.support.kusto import Row, result_of
from tests.support.templates import of_type

QUERIES = {
    found.properties["displayName"].rpartition(" ")[2]: found.properties["criteria"]["allOf"][0]["query"]
    for found in of_type("Microsoft.Insights/scheduledQueryRules")
}
BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)


def plans(*results: tuple[str, int]) -> Sequence[Row]:
    """Return what is exported of plans with these results in these minutes: one entry for each minute."""
    return [
        {
            "timestamp": BEGAN + timedelta(minutes=minute),
            "name": PLANS.name,
            "valueCount": 1,
            "customDimensions": {"result": result},
        }
        for result, minute in results
    ]


@pytest.mark.parametrize(
    "results",
    [
        (),
        [(PLANNED, 0), (SUPERSEDED, 1)],
        [("Unavailable", 0)],
        [("Unavailable", 0), (PLANNED, 0)],
        [("Unavailable", 0), ("Unavailable", 5), (SUPERSEDED, 5), (PLANNED, 10)],
        [(PLANNED, 0), ("Unavailable", 5), (PLANNED, 5), ("Unavailable", 40)],
    ],
)
def test_a_plan_that_failed_and_was_made_since_or_is_tried_again_alerts_nobody(
    results: Sequence[tuple[str, int]],
) -> None:
    assert result_of(QUERIES["plans-failed"], plans(*results)) == []


@pytest.mark.parametrize(
    "results",
    [
        [("Unauthenticated", 0), ("Unauthenticated", 5)],
        [(PLANNED, 0), ("Unavailable", 5), ("InvalidFleet", 10), (SUPERSEDED, 10)],
    ],
)
def test_plans_that_fail_one_after_the_other_alert_somebody(results: Sequence[tuple[str, int]]) -> None:
    (row,) = result_of(QUERIES["plans-failed"], plans(*results))
    assert row["failures"] == 2


@pytest.mark.parametrize("name", QUERIES)
def test_a_fleet_of_which_nothing_is_measured_alerts_of_that_alone(name: str) -> None:
    assert bool(result_of(QUERIES[name], ())) == (name == "no-measurement")
