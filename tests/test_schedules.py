"""Schedules are read as the host of Azure Functions reads them.

The rules are those of learn.microsoft.com/azure/azure-functions/functions-bindings-timer, and of the library
that the host reads a schedule with: CrontabFieldImpl.cs, CrontabField.cs and CrontabSchedule.cs of
github.com/atifaziz/NCrontab.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from shared.schedules import EXAMPLE, next_time

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
"""A Thursday."""


@pytest.mark.parametrize(
    ("schedule", "due"),
    [  # the examples of Microsoft's page
        ("0 */5 * * * *", "2026-01-01 12:05:00"),
        ("0 0 * * * *", "2026-01-01 13:00:00"),
        ("0 0 */2 * * *", "2026-01-01 14:00:00"),
        ("0 0 9-17 * * *", "2026-01-01 13:00:00"),
        ("0 30 9 * * *", "2026-01-02 09:30:00"),
        ("0 30 9 * * 1-5", "2026-01-02 09:30:00"),
        ("0 30 9 * Jan Mon", "2026-01-05 09:30:00"),
        ("0 5 * * * *", "2026-01-01 12:05:00"),
        ("5,8,10 * * * * *", "2026-01-01 12:00:05"),
        # what the library allows beyond them
        ("0 0 0 * december Sunday", "2026-12-06 00:00:00"),
        ("0 0 0 * * fri-MON", "2026-01-02 00:00:00"),
        ("0 0 5-1 * * *", "2026-01-02 01:00:00"),
        ("0 0 20/3 * * *", "2026-01-01 20:00:00"),
        ("0 */0 * * * *", "2026-01-01 12:01:00"),
        ("0 0 0 1-7 * 1", "2026-01-05 00:00:00"),
        ("0 0 0 29 2 *", "2028-02-29 00:00:00"),
        ("0  0   * * * *", "2026-01-01 13:00:00"),
    ],
)
def test_a_schedule_that_the_host_runs_has_its_next_time(schedule: str, due: str) -> None:
    assert f"{next_time(schedule, NOON):%Y-%m-%d %H:%M:%S}" == due


def test_a_range_of_weekdays_from_friday_to_monday_is_one_from_monday_to_friday() -> None:
    days = [NOON]
    for _ in range(5):
        days.append(next_time("0 0 0 * * fri-mon", days[-1]))
    assert [day.isoweekday() for day in days[1:]] == [5, 1, 2, 3, 4]
    assert all(before < day for before, day in pairwise(days))


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("60 * * * * *", '"60" is no second: use 0 to 59 with'),
        ("0 */x * * * *", '"*/x" is no minute'),
        ("0 5- * * * *", '"5-" is no minute'),
        ("0 0 24 * * *", '"24" is no hour: use 0 to 23'),
        ("0 0 0 L * *", '"L" is no day: use 1 to 31'),
        ("0 0 0 0 * *", '"0" is no day'),
        ("0 0 0 * 13 *", '"13" is no month: use 1 to 12, or jan to dec'),
        ("0 0 0 * Monday *", '"Monday" is no month'),
        ("0 0 0 * * 7", '"7" is no day of the week: use 0 to 6, or sun to sat'),
        ("0 0 0 * * MON#2", '"MON#2" is no day of the week'),
        ("0 0 0 * * 5L", '"5L" is no day of the week'),
        ("0 0 0 * * ,", '"," is no day of the week'),
        ("0 0 0 31 2 *", '"0 0 0 31 2 *" never comes'),
    ],
)
def test_a_schedule_that_the_host_refuses_is_refused_with_what_is_wrong(schedule: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as refused:
        next_time(schedule, NOON)
    message = str(refused.value)
    assert f'"{schedule}"' in message
    assert f'such as "{EXAMPLE}"' in message


@pytest.mark.parametrize("schedule", ["", "*/5 * * * *", "0 */5 * * * * *", "00:05:00", "hourly"])
def test_a_text_without_six_fields_may_be_anything_and_is_not_shown(schedule: str) -> None:
    with pytest.raises(ValueError, match="six fields") as refused:
        next_time(schedule, NOON)
    assert f'such as "{EXAMPLE}"' in str(refused.value)
    assert not schedule or schedule not in str(refused.value).replace(EXAMPLE, "")
