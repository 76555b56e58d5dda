"""Telemetry in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.telemetry import OpenTelemetryRecorder


class Collected:
    """Telemetry in memory."""

    def __init__(self) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.telemetry = OpenTelemetryRecorder(tracers, MeterProvider([self._reader]))

    @property
    def spans(self) -> list[ReadableSpan]:
        return [*self._spans.get_finished_spans()]

    @property
    def metrics(self) -> dict[str, list[Any]]:
        data = self._reader.get_metrics_data()
        assert data is not None
        (scope,) = data.resource_metrics[0].scope_metrics
        return {metric.name: [*metric.data.data_points] for metric in scope.metrics}


def watched(cloud: MemoryCloud) -> Collected:
    collected = Collected()
    cloud.with_ports(
        lambda ports: replace(ports, services=replace(ports.services, telemetry=collected.telemetry))
    )
    return collected
