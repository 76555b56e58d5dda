"""Writes the dashboard of Grafana from the workbook: ``python -m tools.grafana``; ``make generate`` does it.

A panel has the query of the workbook's item, with what Grafana writes for the width of a bin. Source:
grafana.com/docs/grafana/latest/datasources/azure-monitor ("Query editor", "Template variables") and the
dashboard JSON model of grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

INFRA = Path("infra")
WORKBOOK, DASHBOARD = INFRA / "workbook.json", INFRA / "grafana.json"
PLUGIN = "grafana-azure-monitor-datasource"
SOURCE = {"type": PLUGIN, "uid": "${datasource}"}
GRAIN, INTERVAL = "{TimeRange:grain}", "$__interval"
WIDTH, HEIGHT = 12, 8
"""Of a panel, of 24 columns."""
COMPONENTS = "resources | where type =~ 'microsoft.insights/components' | project id"


def dashboard(workbook: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dashboard with a panel for each query of a workbook."""
    items = [item for item in workbook["items"] if item["type"] == 3]
    return {
        "uid": "roadstead",
        "title": "Roadstead",
        "description": "The metrics of docs/telemetry.md.",
        "tags": ["roadstead"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "5m",
        "time": {"from": "now-24h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [*_variables()]},
        "panels": [_panel(number, item) for number, item in enumerate(items)],
    }


def _variables() -> list[dict[str, Any]]:
    """Return the data source, and which subscription and Application Insights component are shown."""
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": PLUGIN, "refresh": 1},
        {
            "name": "subscription",
            "label": "Subscription",
            "type": "query",
            "datasource": SOURCE,
            "query": {"refId": "A", "queryType": "Azure Subscriptions"},
            "refresh": 1,
        },
        {
            "name": "component",
            "label": "Application Insights",
            "type": "query",
            "datasource": SOURCE,
            "query": {
                "refId": "A",
                "queryType": "Azure Resource Graph",
                "subscriptions": ["${subscription}"],
                "azureResourceGraph": {"query": COMPONENTS, "resultFormat": "table"},
            },
            "refresh": 1,
        },
    ]


def _panel(number: int, item: Mapping[str, Any]) -> dict[str, Any]:
    content = item["content"]
    bars = content["visualization"] == "barchart"
    custom = {"drawStyle": "bars", "fillOpacity": 60} if bars else {"drawStyle": "line", "fillOpacity": 0}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": content["title"],
        "datasource": SOURCE,
        "gridPos": {"x": WIDTH * (number % 2), "y": HEIGHT * (number // 2), "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {
                "refId": "A",
                "datasource": SOURCE,
                "queryType": "Azure Log Analytics",
                "azureLogAnalytics": {
                    "resources": ["${component}"],
                    "query": content["query"].replace(GRAIN, INTERVAL),
                    "resultFormat": "time_series",
                    "dashboardTime": True,
                    "timeColumn": "timestamp",
                },
            }
        ],
    }


def text() -> str:
    """Return the dashboard as its file has it."""
    return json.dumps(dashboard(json.loads(WORKBOOK.read_text())), indent=2) + "\n"


if __name__ == "__main__":
    DASHBOARD.write_text(text())
