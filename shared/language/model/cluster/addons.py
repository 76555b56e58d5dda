"""Add-ons, storage drivers, ingress, service mesh and the autoscalers of workloads."""

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from shared.language.model.arm_types import (
    Flag,
    Section,
    Switch,
    Text,
    TextFlag,
    VaultId,
    WorkspaceId,
    between,
    resource,
    retired,
)
from shared.language.model.base import Cidr, SubnetId, rule

GatewayId = Annotated[
    StrictStr, resource("Microsoft.Network", "applicationGateways", "an application gateway")
]
DnsZoneId = Annotated[
    StrictStr,
    rule(
        r"(?i)/subscriptions/[^/\s]+/resourceGroups/[^/\s]+/providers/Microsoft\.Network"
        r"/(private)?dnszones/[^/\s]+",
        "the resource id of a DNS zone (/subscriptions/.../dnszones/... or .../privateDnsZones/...)",
    ),
]


class AzurePolicyConfig(Section):
    """Settings of Azure Policy."""

    version: Text | None = None
    """The version of the add-on."""


class AzurePolicy(Section):
    """Azure Policy."""

    enabled: StrictBool
    """Azure Policy is enforced in the cluster."""
    config: AzurePolicyConfig | None = None


class SecretsProviderConfig(Section):
    """Settings of the secrets store."""

    enable_secret_rotation: TextFlag | None = None
    """Secrets are refreshed while pods run."""
    rotation_poll_interval: Annotated[StrictStr, rule(r"[0-9]+[smh]", 'a duration such as "2m"')] | None = (
        None
    )
    """How often secrets are refreshed."""


class SecretsProvider(Section):
    """Secrets of a key vault as volumes."""

    enabled: StrictBool
    """The driver is installed."""
    config: SecretsProviderConfig | None = None


class OmsAgentConfig(Section):
    """Settings of Container Insights as an add-on."""

    workspace: WorkspaceId | None = Field(default=None, alias="logAnalyticsWorkspaceResourceID")
    """The Log Analytics workspace that logs and metrics go to."""
    use_aad_auth: TextFlag | None = Field(default=None, alias="useAADAuth")
    """The agent signs in as a managed identity, and not with the workspace's key."""


class OmsAgent(Section):
    """Container Insights."""

    enabled: StrictBool
    """The agent is installed; it needs the workspace."""
    config: OmsAgentConfig | None = None

    @model_validator(mode="after")
    def _workspace_when_enabled(self) -> Self:
        if self.enabled and (self.config is None or self.config.workspace is None):
            raise ValueError("enabled: true needs config.logAnalyticsWorkspaceResourceID")
        return self


class ApplicationGatewayConfig(Section):
    """Which application gateway serves ingresses."""

    application_gateway_id: GatewayId | None = Field(default=None, alias="applicationGatewayId")
    """An existing application gateway."""
    application_gateway_name: Text | None = None
    """The name of the gateway that the add-on creates."""
    subnet_id: SubnetId | None = None
    """The subnet for the gateway that the add-on creates."""
    subnet_cidr: Cidr | None = Field(default=None, alias="subnetCIDR")
    """The range of a new subnet for the gateway that the add-on creates."""
    watch_namespace: Text | None = None
    """Only ingresses of this namespace are served."""


class ApplicationGateway(Section):
    """The ingress controller of Application Gateway."""

    enabled: StrictBool
    """The controller is installed."""
    config: ApplicationGatewayConfig | None = None


class HttpApplicationRouting(Section):
    """The former managed ingress, which Azure has retired."""

    enabled: Annotated[
        Literal[False], retired({True: "use ingressProfile.webAppRouting.enabled: true, or remove this line"})
    ]
    """false removes it from a cluster that still has it."""


class AddonProfiles(Section):
    """Add-ons by ARM's names."""

    azurepolicy: AzurePolicy | None = None
    azure_keyvault_secrets_provider: SecretsProvider | None = None
    omsagent: OmsAgent | None = None
    ingress_application_gateway: ApplicationGateway | None = None
    http_application_routing: HttpApplicationRouting | None = None
    acc_sgx_device_plugin: Switch | None = Field(default=None, alias="ACCSGXDevicePlugin")
    """Confidential computing with SGX."""


class StorageProfile(Section):
    """The drivers for disks, files and blobs, and the controller for snapshots."""

    disk_csi_driver: Switch | None = None
    """Managed disks as volumes."""
    file_csi_driver: Switch | None = None
    """Azure Files as volumes."""
    blob_csi_driver: Switch | None = None
    """Blob storage as volumes."""
    snapshot_controller: Switch | None = None
    """Snapshots of volumes."""


class Nginx(Section):
    """The default ingress controller."""

    default_ingress_controller_type: Literal["AnnotationControlled", "External", "Internal", "None"]
    """Whether the cluster has the default controller, and whether its address is public."""


class AppRoutingIstio(Section):
    """The gateway of Istio without sidecars."""

    mode: Literal["Enabled", "Disabled"]
    """Whether the gateway is installed."""


class GatewayImplementations(Section):
    """What implements the Gateway API."""

    app_routing_istio: AppRoutingIstio


class WebAppRouting(Section):
    """Application routing: managed ingress."""

    enabled: StrictBool
    """The controllers are installed."""
    dns_zone_resource_ids: Annotated[tuple[DnsZoneId, ...], Field(max_length=5)] | None = None
    """DNS zones in which application routing writes records."""
    nginx: Nginx | None = None
    gateway_api_implementations: GatewayImplementations | None = None


class GatewayApi(Section):
    """The definitions of the Gateway API."""

    installation: Literal["Disabled", "Standard"]
    """Whether AKS installs the definitions and keeps them current."""


class IngressProfile(Section):
    """Ingress that AKS manages."""

    web_app_routing: WebAppRouting | None = None
    gateway_api: GatewayApi | None = None


class WorkloadAutoScalerProfile(Section):
    """Autoscalers of workloads."""

    keda: Switch | None = None
    """KEDA: pods are scaled by events."""
    vertical_pod_autoscaler: Switch | None = None
    """The resource requests of pods follow their usage."""


class IngressGateway(Section):
    """A gateway into the mesh."""

    mode: Literal["External", "Internal"]
    """Whether its address is public or in the cluster's network."""
    enabled: StrictBool
    """The gateway is installed."""


class EgressGateway(Section):
    """A gateway out of the mesh."""

    enabled: StrictBool
    """The gateway is installed."""
    name: Text
    """Its name."""
    namespace: Text | None = None
    """Its namespace."""
    gateway_configuration_name: Text | None = None
    """The StaticGatewayConfiguration with its addresses."""


class MeshComponents(Section):
    """The gateways of the mesh."""

    ingress_gateways: tuple[IngressGateway, ...] | None = None
    """The gateways into the mesh."""
    egress_gateways: tuple[EgressGateway, ...] | None = None
    """The gateways out of the mesh."""
    proxy_redirection_mechanism: Literal["InitContainers", "CNIChaining"] | None = None
    """How traffic is redirected to the sidecars."""


class PluginAuthority(Section):
    """Your own certificate authority, in a key vault."""

    key_vault_id: VaultId
    """The key vault."""
    cert_object_name: Text
    """The intermediate certificate's name in the vault."""
    key_object_name: Text
    """Its key's name in the vault."""
    root_cert_object_name: Text
    """The root certificate's name in the vault."""
    cert_chain_object_name: Text
    """The name of the chain in the vault."""


class MeshAuthority(Section):
    """Who signs the mesh's certificates."""

    plugin: PluginAuthority


class Istio(Section):
    """The Istio add-on."""

    components: MeshComponents | None = None
    certificate_authority: MeshAuthority | None = None
    revisions: (
        Annotated[
            tuple[Annotated[StrictStr, rule(r"asm-[0-9]+-[0-9]+", "a revision such as asm-1-27")], ...],
            Field(min_length=1, max_length=2),
        ]
        | None
    ) = None
    """The revisions of Istio that run; two during a canary upgrade."""


class ServiceMeshProfile(Section):
    """The service mesh."""

    mode: Literal["Istio", "Disabled"]
    """Whether there is a mesh."""
    istio: Istio | None = None

    @model_validator(mode="after")
    def _istio_only_when_on(self) -> Self:
        if self.mode == "Disabled" and self.istio:
            raise ValueError("remove istio, or set mode: Istio")
        return self


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
