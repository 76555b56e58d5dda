"""Runs queries of alerts over measurements: as much of the Kusto Query Language as infra/alerts.bicep has.

Source: learn.microsoft.com/kusto/query, the pages of "where", "extend", "summarize", "arg_max",
"toscalar", "isnull" and "The case-sensitive !in string operator". Another operator is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

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
    for each in given:
        named = re.fullmatch(r"\s*let (\w+) = toscalar\((.*)\)", each, re.DOTALL)
        assert named, each
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
