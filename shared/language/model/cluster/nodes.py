"""What all nodes of a cluster share: systems, proxy, provisioning, upgrades, the autoscaler."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StrictStr, model_validator

from shared.language.model.arm_types import (
    Base64,
    Duration,
    Flag,
    Minutes,
    Moment,
    ProxyUrl,
    RegistryId,
    Seconds,
    Section,
    Text,
    TextFlag,
)
from shared.language.model.base import SubnetId, rule


class AutoUpgradeProfile(Section):
    """What Azure upgrades automatically."""

    upgrade_channel: Literal["rapid", "stable", "patch", "node-image", "none"] | None = None
    """Which versions of Kubernetes Azure installs automatically."""
    node_os_upgrade_channel: Literal["None", "Unmanaged", "NodeImage", "SecurityPatch"] | None = None
    """Which images and patches Azure installs on nodes automatically."""


class OverrideSettings(Section):
    """Upgrades despite Azure's warnings about broken workloads, until a time."""

    force_upgrade: Flag = None
    """Upgrade although deprecated APIs are in use."""
    until: Moment | None = None
    """When the override ends."""


class UpgradeSettings(Section):
    """How the cluster is upgraded."""

    override_settings: OverrideSettings


class SshPublicKey(Section):
    """A public key; the private one never belongs in git."""

    key_data: Annotated[
        StrictStr, rule(r"(ssh-|ecdsa-)\S+ \S.*", "a public key, beginning with ssh-rsa or such")
    ]
    """The public key."""


class Ssh(Section):
    """Keys for SSH."""

    public_keys: Annotated[tuple[SshPublicKey, ...], Field(min_length=1, max_length=1)]
    """The keys; AKS takes one."""


class LinuxProfile(Section):
    """The account on Linux nodes."""

    admin_username: Annotated[
        StrictStr, rule(r"[A-Za-z][-A-Za-z0-9_]*", "letters, digits, - and _, a letter first")
    ]
    """The account's name."""
    ssh: Ssh


class GmsaProfile(Section):
    """Group-managed service accounts on Windows."""

    enabled: Flag = None
    """Group-managed service accounts can be used."""
    dns_server: Text | None = None
    """The DNS server of the domain."""
    root_domain_name: Text | None = None
    """The root domain."""


_OF_EVERYBODY = (
    *("administrator", "admin[12]?", "adm", "user[1-5]?", "test[123]?", "1", "123", "a", "actuser", "aspnet"),
    *("backup", "console", "david", "guest", "john", "owner", "root", "server", "sql", "support"),
    *("support_388945a0", "sys"),
)
"""The names that Windows nodes cannot have (azure-rest-api-specs, ManagedClusterWindowsProfile)."""


class WindowsProfile(Section):
    """The account on Windows nodes; Azure creates its password, which never belongs in git."""

    admin_username: Annotated[
        StrictStr,
        rule(
            rf"(?i)(?!({'|'.join(_OF_EVERYBODY)})$)(?!.*\.$).{{1,20}}",
            "1 to 20 characters that do not end in a dot, and not a usual name such as admin, test or user1",
        ),
    ]
    """The account's name."""
    license_type: Literal["None", "Windows_Server"] | None = None
    """Windows_Server uses your existing licences."""
    enable_csi_proxy: Flag = None
    """Storage drivers run on Windows nodes."""
    gmsa_profile: GmsaProfile | None = None


class ExtendedLocation(Section):
    """A place at the edge of a region, which has the nodes."""

    name: Text
    """The name of the edge zone."""
    type: Literal["EdgeZone"]
    """The only type that AKS has."""


class SchedulerInstance(Section):
    """One scheduler that AKS manages."""

    scheduler_config_mode: Literal["Default", "ManagedByCRD"]
    """ManagedByCRD lets a SchedulerConfiguration in the cluster configure it."""


class SchedulerProfile(Section):
    """The schedulers that AKS manages."""

    upstream: SchedulerInstance
    """The scheduler of Kubernetes itself."""


class HostedSystemProfile(Section):
    """System nodes that AKS runs in its own subscription, for AKS Automatic."""

    enabled: Flag = None
    """AKS runs them; true by default for a new cluster of AKS Automatic."""
    system_node_subnet_id: SubnetId | None = None
    """The subnet of the system nodes; this needs nodeSubnetID and apiServerAccessProfile.subnetId."""
    node_subnet_id: SubnetId | None = None
    """The subnet of the nodes that AKS provisions."""


class HttpProxyConfig(Section):
    """The proxy through which nodes reach the internet."""

    enabled: Flag = None
    """The proxy is used."""
    http_proxy: ProxyUrl | None = None
    """The proxy for http addresses."""
    https_proxy: ProxyUrl | None = None
    """The proxy for https addresses."""
    no_proxy: tuple[Text, ...] | None = None
    """Names and ranges that are reached without the proxy; Azure adds its own."""
    trusted_ca: Base64 | None = None
    """The proxy's certificate authority."""


class NodeResourceGroupProfile(Section):
    """Who may change the resource group of the nodes."""

    restriction_level: Literal["Unrestricted", "ReadOnly"]
    """Whether users can change the resources in the group."""


class NodeProvisioningProfile(Section):
    """Nodes that Azure creates as pods need them."""

    mode: Literal["Manual", "Auto"] | None = None
    """Auto lets AKS choose sizes and create nodes as pods need them."""
    default_node_pools: Literal["None", "Auto"] | None = None
    """Whether AKS adds default definitions of pools."""


class BootstrapProfile(Section):
    """Where nodes pull the images that they start with."""

    artifact_source: Literal["Cache", "Direct"]
    """Microsoft's registry, or a cache in your own registry."""
    container_registry_id: RegistryId | None = None
    """The registry with the cache."""

    @model_validator(mode="after")
    def _registry_with_cache(self) -> Self:
        if self.container_registry_id and self.artifact_source != "Cache":
            raise ValueError("containerRegistryId needs artifactSource: Cache")
        return self


# The cluster autoscaler: one profile for all pools of a cluster. All but four fields are strings in ARM.
#
# Source: learn.microsoft.com/rest/api/aks/managed-clusters, ManagedClusterPropertiesAutoScalerProfile.

Number = Annotated[StrictStr, rule(r"[0-9]+", 'an integer in quotes, such as "10"')]
Percentage = Annotated[StrictStr, rule(r"[0-9]{1,2}|100", 'a percentage in quotes, such as "45"')]
Fraction = Annotated[StrictStr, rule(r"0(\.[0-9]+)?|1(\.0+)?", 'a fraction in quotes, such as "0.5"')]


class AutoScalerProfile(Section):
    """How the cluster autoscaler decides; the names are its own flags."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    balance_similar_node_groups: TextFlag | None = None
    """The autoscaler keeps similar pools at similar sizes."""
    daemonset_eviction_for_empty_nodes: Flag = None
    """Pods of DaemonSets are evicted before an empty node is removed."""
    daemonset_eviction_for_occupied_nodes: Flag = None
    """Pods of DaemonSets are evicted before a node that is not empty is removed."""
    ignore_daemonsets_utilization: Flag = None
    """The usage of DaemonSets does not count towards a node's utilization."""
    expander: Literal["least-waste", "most-pods", "priority", "random"] | None = None
    """Which pool grows when several could."""
    max_empty_bulk_delete: Number | None = None
    """How many empty nodes are removed at once."""
    max_graceful_termination_sec: Number | None = None
    """How many seconds pods may take to end when a node is removed."""
    max_node_provision_time: Minutes | None = None
    """How long a new node may take to start."""
    max_total_unready_percentage: Percentage | None = None
    """The percentage of unready nodes above which the autoscaler stops."""
    new_pod_scale_up_delay: Duration | None = None
    """Pods younger than this do not trigger a scale-up."""
    ok_total_unready_count: Number | None = None
    """The number of nodes that may be unready, whatever the percentage."""
    scan_interval: Seconds | None = None
    """How often the autoscaler checks."""
    scale_down_delay_after_add: Minutes | None = None
    """How long to wait after a scale-up before nodes may be removed."""
    scale_down_delay_after_delete: Minutes | Seconds | None = None
    """How long to wait after the removal of a node before the next one; scan-interval by default."""
    scale_down_delay_after_failure: Minutes | None = None
    """How long to wait after a failed removal before the next one."""
    scale_down_unneeded_time: Minutes | None = None
    """How long a node must be unneeded before it is removed."""
    scale_down_unready_time: Minutes | None = None
    """How long a node that is not ready must be unneeded before it is removed."""
    scale_down_utilization_threshold: Fraction | None = None
    """The utilization, as a fraction, below which a node is unneeded."""
    skip_nodes_with_local_storage: TextFlag | None = None
    """Nodes with pods that use local storage are not removed."""
    skip_nodes_with_system_pods: TextFlag | None = None
    """Nodes with pods of kube-system are not removed."""

    @model_validator(mode="after")
    def _seconds_only_as_the_default(self) -> Self:
        delay, scan = self.scale_down_delay_after_delete, self.scan_interval or "10s"
        if delay and delay.endswith("s") and delay != scan:
            raise ValueError(
                f'scale-down-delay-after-delete must be minutes such as "10m", or scan-interval ({scan}), '
                f"which is its default, got {delay}"
            )
        return self
