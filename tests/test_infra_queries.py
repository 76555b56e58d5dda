"""The queries of the alerts and of the workbook, under Kusto's own language service."""

from __future__ import annotations

import json
import re

from tests.support.language_service import diagnostics
from tests.support.templates import INFRA, of_type

ALERTS = [
    found.properties["criteria"]["allOf"][0]["query"]
    for found in of_type("Microsoft.Insights/scheduledQueryRules")
]
BOOK = [
    item["content"]["query"]
    for item in json.loads((INFRA / "workbook.json").read_text())["items"]
    if item["type"] == 3
]
GRAIN = ("{TimeRange:grain}", "5m")
"""What the portal writes for the parameter of the workbook."""


def test_every_query_binds_and_a_mistake_in_one_is_found() -> None:
    assert len(ALERTS) > 10
    assert len(BOOK) > 10
    queries = [*ALERTS, *map(_filled, BOOK)]
    wrong = [ALERTS[0].replace("customMetrics", "customMetric"), ALERTS[0].replace("where name", "where nam")]
    *found, table, column = diagnostics([*queries, *wrong])
    assert [(query, said) for query, said in zip(queries, found, strict=True) if said] == []
    assert "customMetric" in table[0]
    assert "nam" in column[0]


def _filled(query: str) -> str:
    query = query.replace(*GRAIN)
    assert not re.search(r"\{\w", query), query
    return query
