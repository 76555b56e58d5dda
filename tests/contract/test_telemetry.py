"""Telemetry reaches a collector and Application Insights over HTTP, and a commit has one trace."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.trace import StatusCode

from localcloud.common.http_server import HttpServer
from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.telemetry import open_telemetry
from shared.app.recovery.housekeeping import measure_fleet
from shared.app.runs import record_end
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.measurements import (
    CLUSTERS,
    END_AGE,
    METRICS,
    RATE_LIMITED,
    RETRIES,
    STEP_DURATION,
    Measurement,
    Span,
)
from tests.support import fleet_files
from tests.support.collected_telemetry import Collected, watched
from tests.support.pipeline_runs import cloud_with, phases, push
from tests.support.replaced_ports import around
from tests.support.templates import of_type
from tests.support.waiting import until
from tests.support.webhook_receiver import Receiver

ROOT = Path(__file__).parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)
SPAN = Span("cluster", COMMIT, BEGAN, BEGAN + timedelta(seconds=300), {"cluster": "one"}, "QuotaExceeded")
RETRY = Measurement(RETRIES, 1, {"error": "Throttled", "step": "cluster"})


@pytest.fixture
def receiver() -> Iterator[tuple[Receiver, str]]:
    taken = Receiver(200)
    with HttpServer(taken.app) as server:
        yield taken, server.url


def test_from_the_webhook_to_ready_a_commit_has_one_trace_whose_id_begins_its_sha() -> None:
    cloud = MemoryCloud()
    collected = watched(cloud)
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    spans = collected.spans
    assert {f"{span.context.trace_id:032x}" for span in spans if span.context} == {commit[:32]}
    names = {span.name for span in spans}
    assert {"webhook", "plan", "resource-group", "cluster", "flux-sync", "verify"} <= names
    whole = {span.name: span for span in spans}["provision one"]
    of_one = [span for span in spans if (span.attributes or {}).get("roadstead.cluster") == "one"]
    assert whole.start_time is not None
    assert whole.end_time is not None
    for span in of_one:
        assert span.start_time is not None
        assert span.end_time is not None
        assert whole.start_time <= span.start_time <= span.end_time <= whole.end_time
    (point, *_), waits = collected.metrics["roadstead.job.duration"], collected.metrics["roadstead.webhooks"]
    assert (point.count, dict(point.attributes)) == (2, {"recipe": "provision", "result": "Ready"})
    jobs = [span for span in spans if span.name.startswith("provision ")]
    assert point.sum == pytest.approx(
        sum((span.end_time or 0) - (span.start_time or 0) for span in jobs) / 1e9
    )
    assert [(wait.value, dict(wait.attributes)) for wait in waits] == [(1, {"result": "queued"})]


def test_the_fleet_is_measured_by_phase_and_without_a_place_for_it_nothing_is_read() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))

    def read() -> Any:
        raise AssertionError("the state was read")

    around(cloud, "state", summaries=read)
    measure_fleet(cloud.ports)
    around(cloud, "state", summaries=cloud.state.summaries)
    collected = watched(cloud)
    measure_fleet(cloud.ports)
    points = collected.metrics[CLUSTERS.name]
    assert {point.attributes["phase"]: point.value for point in points if point.value} == {"Ready": 1}
    assert len(points) == len(Phase)
    record_end("sweep", cloud.ports)
    cloud.clock.advance(60)
    measure_fleet(cloud.ports)
    (age,) = collected.metrics[END_AGE.name]
    assert (age.value, dict(age.attributes)) == (60, {"work": "sweep"})


def test_what_cannot_be_measured_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    collected = Collected()

    def broken() -> Iterator[Measurement]:
        yield RETRY
        raise ValueError("no value")

    collected.telemetry.record(broken())
    assert "a measurement was not recorded" in caplog.text
    assert [point.value for point in collected.metrics[RETRIES.name]] == [1]


@pytest.mark.parametrize("commit", ["", "not a commit", "0" * 40, "f" * 24 + "0" * 16])
def test_what_is_no_commit_begins_a_trace_of_its_own(commit: str) -> None:
    collected = Collected()
    collected.telemetry.record([Span("plan", commit, BEGAN, BEGAN)])
    (span,) = collected.spans
    assert span.parent is None
    assert span.context is not None
    assert span.context.trace_id


def test_a_collector_gets_spans_and_metrics_as_the_protocol_defines_them(
    receiver: tuple[Receiver, str],
) -> None:
    taken, url = receiver
    telemetry = open_telemetry(fleet="example", connection_string="", credential=None, otlp_endpoint=url)
    telemetry.record([SPAN, RETRY])
    telemetry.close()
    until(lambda: len(taken.seen) >= 2)
    bodies = {
        "span" if b"cluster" in body and b"QuotaExceeded" in body else "metric": body
        for headers, body in ((headers, _plain(headers, body)) for headers, body in taken.seen)
    }
    (resource,) = ExportTraceServiceRequest.FromString(bodies["span"]).resource_spans
    named = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
    assert (named["service.name"], named["service.namespace"]) == ("roadstead", "example")
    (span,) = resource.scope_spans[0].spans
    assert (span.name, span.trace_id.hex()) == ("cluster", COMMIT[:32])
    assert span.end_time_unix_nano - span.start_time_unix_nano == 300 * 10**9
    assert (span.status.code, span.status.message) == (StatusCode.ERROR.value, "QuotaExceeded")
    (measured,) = ExportMetricsServiceRequest.FromString(bodies["metric"]).resource_metrics
    (metric,) = measured.scope_metrics[0].metrics
    assert (metric.name, metric.unit) == (RETRIES.name, RETRIES.unit)
    assert metric.sum.data_points[0].as_double or metric.sum.data_points[0].as_int == 1


@pytest.mark.lives
def test_application_insights_gets_them_too(receiver: tuple[Receiver, str], tmp_path: Path) -> None:
    taken, url = receiver
    script = f"""
        from datetime import datetime, timedelta, UTC
        from shared.adapters.telemetry import open_telemetry
        from tests.contract.test_telemetry import RETRY, SPAN
        key = "InstrumentationKey=00000000-0000-0000-0000-000000000001"
        place = f"{{key}};IngestionEndpoint={url}"
        telemetry = open_telemetry(
            fleet="example", connection_string=place, credential=None, otlp_endpoint=""
        )
        telemetry.record([SPAN, RETRY])
        telemetry.close()
    """
    # The exporter sends statistics of itself, and asks for settings, in threads of its process.
    quiet = {
        "APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL": "true",
        "APPLICATIONINSIGHTS_CONTROLPLANE_DISABLED": "true",
    }
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        check=True,
        cwd=ROOT,
        timeout=60,
        env={**os.environ, **quiet, "TMPDIR": str(tmp_path)},
    )
    items = [
        item for headers, body in taken.seen for item in json.loads(f"[{_lines(_plain(headers, body))}]")
    ]
    flat = [document for item in items for document in (item if isinstance(item, list) else [item])]
    (span,) = [item for item in flat if item["data"]["baseType"] == "RemoteDependencyData"]
    assert span["tags"]["ai.operation.id"] == COMMIT[:32]
    assert span["data"]["baseData"]["properties"]["roadstead.cluster"] == "one"
    assert span["data"]["baseData"]["success"] is False
    values = [metric for item in flat for metric in item["data"]["baseData"].get("metrics", ())]
    assert (RETRIES.name, 1) in {(value["name"], value["value"]) for value in values}


def test_every_metric_is_explained_on_the_page_about_telemetry() -> None:
    page = (ROOT / "docs/telemetry.md").read_text()
    for metric in METRICS:
        line = next((line for line in page.splitlines() if line.startswith(f"| `{metric.name}`")), "")
        assert metric.kind in line, f"docs/telemetry.md lacks {metric.name}"
        assert all(f"`{name}`" in line for name in metric.attributes), line


def test_alerts_name_metrics_that_exist_and_every_metric_that_somebody_acts_on_has_one() -> None:
    text, page = (ROOT / "infra/alerts.bicep").read_text(), (ROOT / "docs/telemetry.md").read_text()
    named = set(re.findall(r"\"(roadstead\.[a-z._]+)\"", text))
    for_information = {STEP_DURATION.name, RATE_LIMITED.name, END_AGE.name}  # `GET /api/ready` has the last
    assert named == {metric.name for metric in METRICS} - for_information
    dimensions = set(re.findall(r"customDimensions\.(\w+)", text))
    assert dimensions <= {name for metric in METRICS for name in metric.attributes}
    alerts = re.findall(r"^    name: '([a-z-]+)'$", text, re.MULTILINE)
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)[-len(alerts) :] == alerts


def test_the_workbook_shows_every_metric_by_attributes_that_it_has() -> None:
    book = json.loads((ROOT / "infra/workbook.json").read_text())
    queries = [item["content"]["query"] for item in book["items"] if item["type"] == 3]
    shown = Counter(name for query in queries for name in re.findall(r"\"(roadstead\.[a-z._]+)\"", query))
    assert shown == Counter(metric.name for metric in METRICS)
    known = {metric.name: metric for metric in METRICS}
    for query in queries:
        (name,) = re.findall(r"name == \"([^\"]+)\"", query)
        assert set(re.findall(r"customDimensions\.(\w+)", query)) <= set(known[name].attributes)
        column = {"counter": "valueSum", "gauge": "(value)", "histogram": "valueCount"}[known[name].kind]
        assert column in query, query
    (parameters,) = (item["content"]["parameters"] for item in book["items"] if item["type"] == 9)
    named = set(re.findall(r"\{(\w+)[:}]", "".join(queries)))
    assert named == {parameter["name"] for parameter in parameters}
    assert len({item["name"] for item in book["items"]}) == len(book["items"])
    (workbook,) = of_type("Microsoft.Insights/workbooks")
    assert json.loads(workbook.properties["serializedData"]) == book


def _plain(headers: dict[str, str], body: bytes) -> bytes:
    return gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body


def _lines(body: bytes) -> str:
    """Return the items of a track request, which are an array or one on each line, separated by commas."""
    return ",".join(line for line in body.decode().splitlines() if line)
