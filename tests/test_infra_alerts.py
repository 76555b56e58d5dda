"""The alerts, over measurements as Application Insights has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from shared.cluster.reporting.measurements import PLANNED, PLANS, SUPERSEDED
from tests.support.templates import of_type

Row = dict[str, Any]
_AGGREGATE = re.compile(r"\b(sum|max|min|count)\(([^()]*)\)")
_ALL: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "sum": sum,
    "max": lambda values: max(values, default=None),
    "min": lambda values: min(values, default=None),
    "count": len,
}


def result_of(query: str, rows: Sequence[Row]) -> Sequence[Row]:
    """Return what a query of the table customMetrics finds among its entries."""
    *given, query = re.split(r";\n", query)
    for criterion in given:
        named = re.fullmatch(r"\s*let (\w+) = toscalar\((.*)\)", criterion, re.DOTALL)
        assert named, criterion
        (row,) = result_of(named[2], rows)
        rows = [document | {named[1]: next(iter(row.values()))} for document in rows]
    table, *steps = (part.strip() for part in re.split(r"\n\s*\|", query.strip()))
    assert table == "customMetrics", table
    for step in steps:
        operator, _, rest = step.partition(" ")
        rows = {"where": _where, "extend": _extend, "summarize": _summarize}[operator](rest, rows)
    return rows


def _where(condition: str, rows: Sequence[Row]) -> Sequence[Row]:
    return [row for row in rows if _value(condition, row)]


def _extend(columns: str, rows: Sequence[Row]) -> Sequence[Row]:
    return [row | {name: _value(text, row) for name, text in _named(columns)} for row in rows]


def _summarize(columns: str, rows: Sequence[Row]) -> Sequence[Row]:
    """Return an entry for each group; without groups one, also of an empty table."""
    text, _, by = columns.partition(" by ")
    keys = [(name, part) for name, part in _named(by)] if by else []
    groups: dict[tuple[Any, ...], list[Row]] = {} if keys else {(): []}
    for row in rows:
        groups.setdefault(tuple(_value(part, row) for _, part in keys), []).append(row)
    found = []
    for values, group in groups.items():
        shown = {name: value for (name, _), value in zip(keys, values, strict=True)}
        newest = re.fullmatch(r"arg_max\((\w+), (\w+)\)", text)
        if newest:
            last = max(group, key=lambda row: row[newest[1]])
            found.append(shown | {name: last[name] for name in newest.groups()})
        else:
            found.append(shown | {name: _of_group(part, group) for name, part in _named(text)})
    return found


def _of_group(text: str, group: Sequence[Row]) -> Any:
    def aggregate(call: re.Match[str]) -> str:
        values = [_value(call[2], row) for row in group] if call[2] else group
        results.append(_ALL[call[1]](values))
        return f"result_{len(results) - 1}"

    results: list[Any] = []
    expression = _AGGREGATE.sub(aggregate, text)
    return _value(expression, {f"result_{n}": value for n, value in enumerate(results)})


def _named(columns: str) -> list[tuple[str, str]]:
    """Return the columns of a list with their names; one without a name has that of its last word."""
    parts = re.split(r",\s*(?![^()]*\))", columns)
    split = [re.fullmatch(r"(\w+) = (.+)", part, re.DOTALL) for part in map(str.strip, parts)]
    return [
        (named[1], named[2]) if named else (re.findall(r"\w+", part)[-1], part)
        for named, part in zip(split, parts, strict=True)
    ]


def _value(expression: str, row: Row) -> Any:
    """Return the value of an expression, whose operators Python has too; that of null or 0 / 0 is null."""
    text = re.sub(r"(!in|\bin) \(", lambda found: f"{'not ' * found[1].startswith('!')}in _list(", expression)
    names = {
        **{key: SimpleNamespace(**value) if isinstance(value, dict) else value for key, value in row.items()},
        **{"tostring": str, "isnull": lambda value: value is None, "_list": lambda *each: each},
    }
    try:
        return eval(text, {"__builtins__": {}}, names)  # noqa: S307 (the text is our template's)
    except (TypeError, ZeroDivisionError):
        return None


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
