"""What all nodes of a cluster share: operating systems, proxy, resource group, provisioning, upgrades."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictStr, model_validator

from shared.fleet.manifests.arm_types import Base64, Flag, Moment, ProxyUrl, RegistryId, Section, Text
from shared.fleet.manifests.base import SubnetId, rule


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


class WindowsProfile(Section):
    """The account on Windows nodes; Azure creates its password, which never belongs in git."""

    admin_username: Text
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
