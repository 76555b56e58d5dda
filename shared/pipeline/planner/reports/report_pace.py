"""How often a commit status is written.

GitHub takes 1,000 statuses of a commit and context (docs.github.com/rest/commits/statuses). The last counts.
"""

from __future__ import annotations

from datetime import timedelta

from shared.pipeline.outbox import REPORT_SECONDS

INTERIM = 400
"""So many statuses of a commit may say how far it is."""
SETTLED = 900
"""So many may say that it has settled, as with a failure; the others are for those that end it."""
CLUSTERS_A_SECOND = 200
"""A report reads so many clusters for each second until the next one."""
SHARE = 20
"""A report is at most this part of the age of its plan behind."""
LONGEST = 300.0
"""Seconds between two reports, however old the plan is."""


def has_room(reports: int, *, settled: bool, ended: bool) -> bool:
    """Return whether one more status of a commit may be written, after so many reports."""
    return ended or reports < (SETTLED if settled else INTERIM)


def interval(age: timedelta, clusters: int) -> timedelta:
    """Return the time from one report to the next, by the age of the newest plan and the fleet's size."""
    by_age = min(age.total_seconds() / SHARE, LONGEST)
    return timedelta(seconds=max(REPORT_SECONDS, clusters / CLUSTERS_A_SECOND, by_age))
