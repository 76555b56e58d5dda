"""The spec of one AKS cluster and what runs on it; fields have the names of ARM's properties."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    Field,
    JsonValue,
    StrictBool,
    StrictStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from shared.kubernetes_versions import POOL_LAG, lags, numbers
from shared.language.model.arm_types import (
    Date,
    DiskEncryptionId,
    Flag,
    Section,
    Switch,
    Text,
    UtcMoment,
    only_untyped,
)
from shared.language.model.base import (
    Location,
    Manifest,
    NodeResourceGroupName,
    ResourceGroupName,
    Tags,
    Uuid,
    Version,
    rule,
)
from shared.language.model.change_windows import Lifetime
from shared.language.model.cluster.access import (
    AadProfile,
    ApiServerAccessProfile,
    ExistingCluster,
    Identity,
    IdentityProfile,
    Provider,
    SecurityProfile,
)
from shared.language.model.cluster.addons import (
    AddonProfiles,
    AzureMonitorProfile,
    IngressProfile,
    MetricsProfile,
    ServiceMeshProfile,
    StorageProfile,
    WorkloadAutoScalerProfile,
)
from shared.language.model.cluster.drift import DriftPolicy
from shared.language.model.cluster.flux import Flux
from shared.language.model.cluster.grants import (
    BootstrapSecret,
    FederatedCredentials,
    OwnIdentities,
    RoleAssignments,
    differ,
)
from shared.language.model.cluster.network import NetworkProfile
from shared.language.model.cluster.nodes import (
    AutoScalerProfile,
    AutoUpgradeProfile,
    BootstrapProfile,
    ExtendedLocation,
    HostedSystemProfile,
    HttpProxyConfig,
    LinuxProfile,
    NodeProvisioningProfile,
    NodeResourceGroupProfile,
    SchedulerProfile,
    UpgradeSettings,
    WindowsProfile,
)
from shared.language.model.cluster.policies import PolicyAssignments, check_policies
from shared.language.model.cluster.schedules import MaintenanceConfiguration, Sleep
from shared.language.model.node_pool import NodePool

ImageVersion = Annotated[
    StrictStr,
    rule(
        r"20[0-9]{4}\.[0-9]{1,2}(\.[0-9]{1,3})?",
        'the date of a node image in quotes, as AKS ends its nodeImageVersion, such as "202511.01.0"',
    ),
]


_PREFIX = "1 to 54 letters, digits and hyphens"


class Sku(Section):
    """The kind of the cluster and the price tier of its control plane."""

    name: Literal["Base", "Automatic"] | None = None
    """Automatic is AKS Automatic, which presets most settings; Base by default for a new cluster."""
    tier: Literal["Free", "Standard", "Premium"] | None = None
    """Free, Standard with an agreement on uptime, or Premium with long-term support; Standard by default for
    a new cluster."""

    @property
    def automatic(self) -> bool:
        """Whether the cluster is one of AKS Automatic."""
        return self.name == "Automatic"


class Suspension(Manifest):
    """Suspends a cluster until a time: none of its steps runs, and drift is still reported."""

    owner: Annotated[StrictStr, Field(min_length=1, max_length=200)]
    """Who is responsible for the suspension."""
    reason: Annotated[StrictStr, Field(min_length=1, max_length=200)]
    """Why the cluster is suspended."""
    until: UtcMoment
    """When the suspension ends."""


class ClusterProperties(Section):
    """The fields that go to ARM as ``properties``, unchanged."""

    instead: ClassVar[Mapping[str, str]] = {"agentPoolProfiles": "write the pools below nodePools"}

    kubernetes_version: Version
    """The version; "1.36" pins the minor, "1.36.2" pins the patch. It rises one minor at a time, and is
    never lowered."""
    dns_prefix: (
        Annotated[
            StrictStr,
            rule(r"[A-Za-z0-9]([A-Za-z0-9-]{0,52}[A-Za-z0-9])?", _PREFIX),
        ]
        | None
    ) = None
    """The prefix of the API server's DNS name; the cluster's name by default."""
    fqdn_subdomain: (
        Annotated[StrictStr, rule(r"[A-Za-z0-9]([A-Za-z0-9-]{0,52}[A-Za-z0-9])?", _PREFIX)] | None
    ) = None
    """The name of a private API server in your own DNS zone, in place of dnsPrefix."""
    support_plan: Literal["KubernetesOfficial", "AKSLongTermSupport"] | None = None
    """Support for one year, or long-term support, which needs the tier Premium."""
    auto_upgrade_profile: AutoUpgradeProfile | None = None
    upgrade_settings: UpgradeSettings | None = None
    network_profile: NetworkProfile = NetworkProfile.model_construct()
    api_server_access_profile: ApiServerAccessProfile | None = None
    public_network_access: Literal["Enabled", "Disabled"] | None = None
    """Whether the API server can be reached from the internet."""
    aad_profile: AadProfile | None = None
    enable_rbac: Flag = None
    """Kubernetes RBAC is enforced; true by default for a new cluster."""
    disable_local_accounts: Flag = None
    """Only sign-in with Entra ID is possible; it needs aadProfile."""
    oidc_issuer_profile: Switch | None = None
    """The issuer of tokens for workload identities; it cannot be disabled again."""
    identity_profile: IdentityProfile | None = None
    security_profile: SecurityProfile | None = None
    enable_fips: Flag = None
    """The components of AKS use validated cryptography; every node pool needs enableFIPS too."""
    disk_encryption_set_id: DiskEncryptionId | None = None
    """Your own key for the encryption of disks."""
    addon_profiles: AddonProfiles | None = None
    ingress_profile: IngressProfile | None = None
    service_mesh_profile: ServiceMeshProfile | None = None
    auto_scaler_profile: AutoScalerProfile | None = None
    workload_auto_scaler_profile: WorkloadAutoScalerProfile | None = None
    storage_profile: StorageProfile | None = None
    azure_monitor_profile: AzureMonitorProfile | None = None
    metrics_profile: MetricsProfile | None = None
    linux_profile: LinuxProfile | None = None
    windows_profile: WindowsProfile | None = None
    http_proxy_config: HttpProxyConfig | None = None
    node_resource_group: NodeResourceGroupName | None = None
    """The group that AKS creates for nodes, disks and addresses; by default MC_GROUP_NAME_REGION, if that has
    at most 80 characters."""
    node_resource_group_profile: NodeResourceGroupProfile | None = None
    node_provisioning_profile: NodeProvisioningProfile | None = None
    scheduler_profile: SchedulerProfile | None = None
    hosted_system_profile: HostedSystemProfile | None = None
    bootstrap_profile: BootstrapProfile | None = None
    ai_toolchain_operator_profile: Switch | None = None
    """The AI toolchain operator."""


class ClusterAzure(Manifest):
    """Properties of ARM for which the manifest has no field yet."""

    properties: Annotated[
        dict[StrictStr, JsonValue],
        only_untyped((ClusterProperties,), "cluster", {"agentPoolProfiles": "nodePools"}),
    ]
    """Any JSON object; it is merged into ARM's properties last."""


OPERATION_FIELDS = ("deletionProtection", "suspend", "drift", "lifetime", "expires", "lifetimeEnd", "sleep")
"""The fields of a spec that say what Roadstead does with a cluster: Azure sees nothing of them."""


class ClusterSpec(ClusterProperties):
    """One AKS cluster and what runs on it."""

    provider: Provider | None = None
    """Whose cluster it is: aks, by default, or existing, a cluster of any cloud or none that exists already.
    It needs existing, and has no field of AKS."""
    existing: ExistingCluster | None = None
    subscription_id: Uuid
    """The Azure subscription that the cluster lives in."""
    resource_group: ResourceGroupName
    """The resource group that the cluster lives in; created if it does not exist."""
    location: Location
    """The Azure region."""
    extended_location: ExtendedLocation | None = None
    kind: Text | None = None
    """The kind that the Azure portal uses for its view."""
    sku: Sku = Sku.model_construct()
    identity: Identity | None = None
    node_pools: Annotated[tuple[NodePool, ...], Field(max_length=100)] = Field(
        default=(), validate_default=True
    )
    """The node pools, by name; at least one with mode System, unless AKS Automatic runs the system nodes."""
    maintenance_windows: tuple[MaintenanceConfiguration, ...] = ()
    """When Azure may maintain the cluster."""
    tags: Tags = Field(default_factory=dict)
    """Tags of the cluster in Azure; tags that git does not name stay."""
    azure: ClusterAzure | None = None
    flux: Flux
    bootstrap_secrets: Annotated[tuple[BootstrapSecret, ...], Field(max_length=50)] = ()
    """Secrets that the cluster needs before Flux, by name."""
    identities: OwnIdentities = ()
    """Identities of Azure that the app creates for the cluster alone, by name."""
    federated_credentials: FederatedCredentials = ()
    """Service accounts of the cluster that act as identities of Azure, by name."""
    role_assignments: RoleAssignments = ()
    """Roles of Azure that the cluster's identities have, by name."""
    policies: PolicyAssignments = ()
    """Policies and initiatives of Azure Policy that are assigned to the cluster, by name."""
    deletion_protection: StrictBool = False
    """The cluster is not deleted, whatever happens to its folder; in production it is true unless the
    manifest sets it to false."""
    lifetime: Lifetime | None = None
    """How long the cluster lasts from the moment at which it is Ready first, such as 72h; then a pull request
    removes its folder."""
    expires: Date | None = None
    """The last day of the cluster, in UTC, in place of lifetime; then a pull request removes its folder."""
    lifetime_end: Literal["propose", "delete"] | None = None
    """Who merges the pull request of the end: a person, which is propose and the default, or with delete the
    git host by itself, once the rules of the branch allow it. What guards a delete guards this one too."""
    suspend: Suspension | None = None
    min_node_image_version: ImageVersion | None = None
    """The oldest image of Linux nodes that is accepted."""
    drift: DriftPolicy | None = None
    sleep: Sleep | None = None

    @field_validator("node_pools")
    @classmethod
    def _somewhere_for_system_pods(
        cls, pools: tuple[NodePool, ...], info: ValidationInfo
    ) -> tuple[NodePool, ...]:
        sku, hosted = info.data.get("sku", Sku(name="Automatic")), info.data.get("hosted_system_profile")
        aks_runs_system_nodes = sku.automatic and (hosted is None or hosted.enabled is not False)
        modes = {pool.mode for pool in pools}
        if not aks_runs_system_nodes and "System" not in modes:
            raise ValueError("needs at least one pool with mode: System")
        return pools

    @field_validator("policies")
    @classmethod
    def _policies_can_be_assigned(cls, entries: PolicyAssignments, info: ValidationInfo) -> PolicyAssignments:
        check_policies(entries, info.data)
        return entries

    @model_validator(mode="after")
    def _pools_follow_the_control_plane(self) -> Self:
        control_plane = numbers(self.kubernetes_version)
        for pool in self.node_pools:
            if pool.orchestrator_version is None:
                continue
            version = numbers(pool.orchestrator_version)
            shared = min(len(version), len(control_plane))
            if version[:shared] > control_plane[:shared]:
                raise ValueError(
                    f"node pool {pool.name}: orchestratorVersion {pool.orchestrator_version} is newer than "
                    f"kubernetesVersion {self.kubernetes_version}; the control plane is upgraded first"
                )
            if lags(pool.orchestrator_version, self.kubernetes_version):
                raise ValueError(
                    f"node pool {pool.name}: orchestratorVersion {pool.orchestrator_version} is more than "
                    f"{POOL_LAG} minors behind kubernetesVersion {self.kubernetes_version}; raise it"
                )
        return self

    @model_validator(mode="after")
    def _entries_differ(self) -> Self:
        differ(self.bootstrap_secrets, self.identities, self.federated_credentials, self.role_assignments)
        return self

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if self.existing and self.provider != "existing":
            raise ValueError("existing needs provider: existing; an AKS cluster has no kubeconfig of yours")
        if self.lifetime and self.expires:
            raise ValueError("lifetime and expires exclude each other; remove one, or set it to null")
        if self.support_plan == "AKSLongTermSupport" and self.sku.tier != "Premium":
            raise ValueError("supportPlan: AKSLongTermSupport needs sku.tier: Premium")
        if self.disable_local_accounts and self.aad_profile is None and not self.sku.automatic:
            raise ValueError("disableLocalAccounts: true needs aadProfile; without it nobody can sign in")
        if (
            self.aad_profile
            and self.aad_profile.admin_group_object_ids == ()
            and not self.aad_profile.enable_azure_rbac
        ):
            raise ValueError(
                "aadProfile needs adminGroupObjectIDs or enableAzureRBAC; without one nobody has access"
            )
        identity = self.security_profile and self.security_profile.workload_identity
        issuer = self.oidc_issuer_profile and self.oidc_issuer_profile.enabled
        if identity and identity.enabled and not issuer:
            raise ValueError("securityProfile.workloadIdentity needs oidcIssuerProfile.enabled: true")
        if self.federated_credentials and not (issuer or self.sku.automatic):
            raise ValueError("federatedCredentials needs oidcIssuerProfile.enabled: true")
        if self.flux.workload_identity and not ((identity and identity.enabled) or self.sku.automatic):
            raise ValueError("flux.workloadIdentity needs securityProfile.workloadIdentity.enabled: true")
        if self.identity_profile and (self.identity is None or self.identity.type != "UserAssigned"):
            raise ValueError("identityProfile needs identity.type: UserAssigned")
        if self.metrics_profile and self.metrics_profile.cost_analysis.enabled and self.sku.tier == "Free":
            raise ValueError("metricsProfile.costAnalysis needs sku.tier: Standard or Premium")
        return self


# The spec of a cluster that exists outside Roadstead: what runs on it, and nothing of Azure.
#
# It is a cluster's spec whose fields of AKS have no value, so whoever reads what both have needs no case.
# ``FIELDS`` are those that its manifest may have.

FIELDS = frozenset(
    {"provider", "existing", "flux", "bootstrapSecrets", "deletionProtection", "suspend", "drift"}
)
"""The fields of a manifest with ``provider: existing``; in its file, also ``class`` and ``environment``."""
EMPTY = ("subscriptionId", "resourceGroup", "location", "kubernetesVersion", "nodePools")
"""The fields of AKS that every stored form has; here, without a value."""


class ExistingSpec(ClusterSpec):
    """What runs on a cluster that exists outside Roadstead, and how Roadstead enters it."""

    provider: Literal["existing"]
    existing: ExistingCluster
    subscription_id: Literal[""] = ""
    resource_group: Literal[""] = ""
    location: Literal[""] = ""
    kubernetes_version: Literal[""] = ""

    @field_validator("node_pools")
    @classmethod
    def _somewhere_for_system_pods(
        cls, pools: tuple[NodePool, ...], info: ValidationInfo
    ) -> tuple[NodePool, ...]:
        if pools:
            raise ValueError(f"{info.field_name} is a field of AKS clusters; remove it")
        return pools

    @model_validator(mode="after")
    def _pools_follow_the_control_plane(self) -> Self:
        return self
