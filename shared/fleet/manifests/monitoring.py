"""Metrics, logs and costs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StrictBool, StrictInt, StrictStr

from shared.fleet.manifests.arm import Flag, Section, Switch, WorkspaceId, between


class KubeStateMetrics(Section):
    """Which labels and annotations become metrics."""

    metric_labels_allowlist: StrictStr | None = None
    metric_annotations_allow_list: StrictStr | None = None


class PrometheusMetrics(Section):
    """Managed Prometheus."""

    enabled: StrictBool
    kube_state_metrics: KubeStateMetrics | None = None
    control_plane: Switch | None = None


class ContainerInsights(Section):
    """Container Insights."""

    enabled: Flag = None
    log_analytics_workspace_resource_id: WorkspaceId | None = None
    syslog_port: Annotated[StrictInt, between(1, 65_535)] | None = None
    disable_prometheus_metrics_scraping: Flag = None
    container_network_logs: Literal["Disabled", "Enabled"] | None = None


class OpenTelemetry(Section):
    """Where applications send what they measure."""

    enabled: Flag = None
    http_port: Annotated[StrictInt, between(1, 65_535)] | None = None
    grpc_port: Annotated[StrictInt, between(1, 65_535)] | None = None


class AppMonitoring(Section):
    """Monitoring of applications."""

    auto_instrumentation: Switch | None = None
    open_telemetry_metrics: OpenTelemetry | None = None
    open_telemetry_logs_and_traces: OpenTelemetry | None = None


class AzureMonitorProfile(Section):
    """Azure Monitor."""

    metrics: PrometheusMetrics | None = None
    container_insights: ContainerInsights | None = None
    app_monitoring: AppMonitoring | None = None


class MetricsProfile(Section):
    """What is measured about costs; it needs the tier Standard or Premium."""

    cost_analysis: Switch
