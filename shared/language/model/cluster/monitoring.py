"""Metrics, logs and costs."""

from typing import Annotated, Literal

from pydantic import StrictBool, StrictInt, StrictStr

from shared.language.model.arm_types import Flag, Section, Switch, WorkspaceId, between


class KubeStateMetrics(Section):
    """Which labels and annotations become metrics."""

    metric_labels_allowlist: StrictStr | None = None
    """Kubernetes labels that become labels of metrics, as kube-state-metrics takes them."""
    metric_annotations_allow_list: StrictStr | None = None
    """Kubernetes annotations that become labels of metrics, as kube-state-metrics takes them."""


class PrometheusMetrics(Section):
    """Managed Prometheus."""

    enabled: StrictBool
    """The agent is installed."""
    kube_state_metrics: KubeStateMetrics | None = None
    control_plane: Switch | None = None
    """Metrics of the control plane."""


class ContainerInsights(Section):
    """Container Insights."""

    enabled: Flag = None
    """The agent is installed."""
    log_analytics_workspace_resource_id: WorkspaceId | None = None
    """The Log Analytics workspace that logs go to."""
    syslog_port: Annotated[StrictInt, between(1, 65_535)] | None = None
    """The port on which nodes send their system logs."""
    disable_prometheus_metrics_scraping: Flag = None
    """The agent does not scrape Prometheus metrics."""
    container_network_logs: Literal["Disabled", "Enabled"] | None = None
    """Logs of the traffic between pods."""


class OpenTelemetry(Section):
    """Where applications send their telemetry."""

    enabled: Flag = None
    """The receiver is installed."""
    http_port: Annotated[StrictInt, between(1, 65_535)] | None = None
    """The receiver's port for HTTP."""
    grpc_port: Annotated[StrictInt, between(1, 65_535)] | None = None
    """The receiver's port for gRPC."""


class AppMonitoring(Section):
    """Monitoring of applications."""

    auto_instrumentation: Switch | None = None
    """Applications are instrumented without a change to them."""
    open_telemetry_metrics: OpenTelemetry | None = None
    """The receiver of metrics."""
    open_telemetry_logs_and_traces: OpenTelemetry | None = None
    """The receiver of logs and traces."""


class AzureMonitorProfile(Section):
    """Azure Monitor."""

    metrics: PrometheusMetrics | None = None
    container_insights: ContainerInsights | None = None
    app_monitoring: AppMonitoring | None = None


class MetricsProfile(Section):
    """Cost metrics; they need the tier Standard or Premium."""

    cost_analysis: Switch
    """Costs by namespace and workload in Azure's cost analysis."""
