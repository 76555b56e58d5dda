"""The queries of the alerts, the workbook and the dashboard, under Kusto's own language service."""

from __future__ import annotations

import json
import re

import jsonschema

from tests.support.language_service import diagnostics
from tests.support.templates import INFRA, of_type
from tools.grafana import INTERVAL, text

ALERTS = [
    found.properties["criteria"]["allOf"][0]["query"]
    for found in of_type("Microsoft.Insights/scheduledQueryRules")
]
BOOK = [
    item["content"]["query"]
    for item in json.loads((INFRA / "workbook.json").read_text())["items"]
    if item["type"] == 3
]
DASHBOARD = json.loads((INFRA / "grafana.json").read_text())
PANELS = [panel["targets"][0]["azureLogAnalytics"]["query"] for panel in DASHBOARD["panels"]]
SOURCE = {"const": {"type": "grafana-azure-monitor-datasource", "uid": "${datasource}"}}
SHAPE = {
    "type": "object",
    "required": ["uid", "title", "schemaVersion", "panels", "templating", "time"],
    "properties": {
        "panels": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "type", "title", "datasource", "gridPos", "targets"],
                "properties": {
                    "type": {"const": "timeseries"},
                    "datasource": SOURCE,
                    "targets": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "required": ["refId", "datasource", "queryType", "azureLogAnalytics"],
                            "properties": {
                                "datasource": SOURCE,
                                "queryType": {"const": "Azure Log Analytics"},
                                "azureLogAnalytics": {
                                    "required": ["resources", "query", "resultFormat", "timeColumn"],
                                    "properties": {
                                        "resources": {"const": ["${component}"]},
                                        "resultFormat": {"enum": ["time_series", "table", "trace"]},
                                        "timeColumn": {"const": "timestamp"},
                                    },
                                },
                            },
                        },
                    },
                },
            },
        }
    },
}
"""What Grafana's plugin reads of a panel: ``AzureLogsQuery`` in grafana/grafana,
public/app/plugins/datasource/azuremonitor/dataquery.cue."""
GRAIN = ("{TimeRange:grain}", "5m")
"""What the portal writes for the parameter of the workbook."""


def test_every_query_binds_and_a_mistake_in_one_is_found() -> None:
    assert len(ALERTS) > 10
    assert len(BOOK) > 10
    assert len(PANELS) == len(BOOK)
    queries = [*ALERTS, *map(_filled, BOOK), *(query.replace(INTERVAL, "5m") for query in PANELS)]
    wrong = [ALERTS[0].replace("customMetrics", "customMetric"), ALERTS[0].replace("where name", "where nam")]
    *found, table, column = diagnostics([*queries, *wrong])
    assert [(query, said) for query, said in zip(queries, found, strict=True) if said] == []
    assert "customMetric" in table[0]
    assert "nam" in column[0]


def test_the_dashboard_is_the_workbook_as_it_is_now() -> None:
    assert (INFRA / "grafana.json").read_text() == text(), "`make generate` writes it again"


def test_each_panel_is_of_the_data_source_and_the_component_that_one_chooses_and_none_covers_another() -> (
    None
):
    jsonschema.validate(DASHBOARD, SHAPE)
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == [
        "datasource",
        "subscription",
        "component",
    ]
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) - {"__interval"}
    assert used == {"datasource", "subscription", "component"}
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(PANELS)
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len({*cells})
    assert max(x for x, _ in cells) < 24


def _filled(query: str) -> str:
    query = query.replace(*GRAIN)
    assert not re.search(r"\{\w", query), query
    return query
