"""Telemetry by OpenTelemetry, to Application Insights, to a collector (OTLP over HTTP), or to both.

The trace of a commit has the first 32 digits of its SHA as its id. So the webhook, the plan and every step on
every cluster are in one trace, whichever instance does them, and no message or record carries a context.

Logs are not exported here: the Functions host sends them to Application Insights.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags

from shared.cluster.reporting.measurements import METRICS, Measurement, Metric, MetricKind, Span

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential
    from opentelemetry.metrics import Meter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger(__name__)

EXPORT_SECONDS = 30.0
"""How often metrics are exported; an instance that is stopped hard loses those of so long."""
SCOPE = "roadstead"
_COMMIT = re.compile(r"[0-9a-f]{40}")


class OpenTelemetryRecorder:
    """The Telemetry port on a provider of spans and one of metrics."""

    def __init__(self, tracers: TracerProvider, meters: MeterProvider) -> None:
        self._providers = (tracers, meters)
        self._tracer = tracers.get_tracer(SCOPE)
        meter = meters.get_meter(SCOPE)
        self._record = {metric: _recorder(meter, metric) for metric in METRICS}

    def record(self, observed: Iterable[Measurement | Span]) -> None:
        """Take measurements and spans; what fails is logged."""
        try:
            for item in observed:
                if isinstance(item, Span):
                    self._span(item)
                else:
                    self._record[item.metric](item.value, dict(item.attributes))
        except Exception:  # whatever a library raises here, the job goes on
            log.warning("a measurement was not recorded", exc_info=True)

    def close(self) -> None:
        """Send what was not sent yet, and stop."""
        for provider in self._providers:
            provider.shutdown()

    def _span(self, span: Span) -> None:
        attributes = {f"roadstead.{name}": value for name, value in span.attributes.items()}
        attributes |= {"roadstead.commit": span.commit}
        begun = self._tracer.start_span(
            span.name, trace_of(span.commit), attributes=attributes, start_time=_nanoseconds(span.started)
        )
        if span.failed:
            begun.set_attribute("error.type", span.failed)
            begun.set_status(StatusCode.ERROR, span.failed)
        begun.end(_nanoseconds(span.ended))


def trace_of(commit: str) -> Context:
    """Return the trace of a commit as a context; an empty one for what is no commit."""
    if not _COMMIT.fullmatch(commit) or not int(commit[:32], 16) or not int(commit[24:], 16):
        return Context()
    root = SpanContext(
        int(commit[:32], 16), int(commit[24:], 16), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )
    return trace.set_span_in_context(NonRecordingSpan(root), Context())


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1000


def _recorder(meter: Meter, metric: Metric) -> Any:
    match metric.kind:
        case MetricKind.COUNTER:
            return meter.create_counter(metric.name, metric.unit, metric.description).add
        case MetricKind.HISTOGRAM:
            return meter.create_histogram(metric.name, metric.unit, metric.description).record
        case MetricKind.GAUGE:
            return meter.create_gauge(metric.name, metric.unit, metric.description).set


def open_telemetry(
    *, fleet: str, connection_string: str, credential: TokenCredential | None, otlp_endpoint: str
) -> OpenTelemetryRecorder:
    """Return telemetry that is sent to each place that is given; "" for none.

    The exporter of Azure Monitor's distribution is used without the distribution, which would attach itself
    to the root logger, instrument client libraries, and become the provider of the whole process.
    """
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    spans: list[SpanExporter] = []
    metrics: list[MetricExporter] = []
    if connection_string:
        from azure.monitor.opentelemetry.exporter import (
            AzureMonitorMetricExporter,
            AzureMonitorTraceExporter,
        )

        spans.append(AzureMonitorTraceExporter(connection_string=connection_string, credential=credential))
        metrics.append(AzureMonitorMetricExporter(connection_string=connection_string, credential=credential))
    if otlp_endpoint:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        base = otlp_endpoint.rstrip("/")
        spans.append(OTLPSpanExporter(f"{base}/v1/traces"))
        metrics.append(OTLPMetricExporter(f"{base}/v1/metrics"))
    resource = Resource.create({"service.name": SCOPE, "service.namespace": fleet})
    tracers = TracerProvider(resource=resource)
    for exporter in spans:
        tracers.add_span_processor(BatchSpanProcessor(exporter))
    readers = [
        PeriodicExportingMetricReader(metric, export_interval_millis=1000 * EXPORT_SECONDS)
        for metric in metrics
    ]
    return OpenTelemetryRecorder(tracers, MeterProvider(readers, resource=resource))
