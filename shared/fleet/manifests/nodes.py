"""What all nodes of a cluster share: operating systems, proxy, resource group, provisioning, upgrades."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictStr, model_validator

from shared.fleet.manifests.arm import Base64, Flag, Moment, ProxyUrl, RegistryId, Section, Text
from shared.fleet.manifests.base import rule


class AutoUpgradeProfile(Section):
    """What Azure upgrades by itself."""

    upgrade_channel: Literal["rapid", "stable", "patch", "node-image", "none"] | None = None
    node_os_upgrade_channel: Literal["None", "Unmanaged", "NodeImage", "SecurityPatch"] | None = None


class OverrideSettings(Section):
    """Upgrades even where Azure warns of broken workloads, until a time."""

    force_upgrade: Flag = None
    until: Moment | None = None


class UpgradeSettings(Section):
    """How upgrades of the cluster go."""

    override_settings: OverrideSettings


class SshPublicKey(Section):
    """A public key; the private one never belongs in git."""

    key_data: Annotated[
        StrictStr, rule(r"(ssh-|ecdsa-)\S+ \S+.*", "a public key, beginning with ssh-rsa or such")
    ]


class Ssh(Section):
    """Keys for SSH."""

    public_keys: Annotated[tuple[SshPublicKey, ...], Field(min_length=1, max_length=1)]


class LinuxProfile(Section):
    """The account on Linux nodes."""

    admin_username: Annotated[
        StrictStr, rule(r"[A-Za-z][-A-Za-z0-9_]*", "letters, digits, - and _, a letter first")
    ]
    ssh: Ssh


class GmsaProfile(Section):
    """Group-managed service accounts on Windows."""

    enabled: Flag = None
    dns_server: Text | None = None
    root_domain_name: Text | None = None


class WindowsProfile(Section):
    """Windows nodes; Azure makes the password, it never belongs in git."""

    admin_username: Text
    license_type: Literal["None", "Windows_Server"] | None = None
    enable_csi_proxy: Flag = None
    gmsa_profile: GmsaProfile | None = None


class HttpProxyConfig(Section):
    """The proxy through which nodes reach the world."""

    enabled: Flag = None
    http_proxy: ProxyUrl | None = None
    https_proxy: ProxyUrl | None = None
    no_proxy: tuple[Text, ...] | None = None
    trusted_ca: Base64 | None = None


class NodeResourceGroupProfile(Section):
    """Who may change the resource group of the nodes."""

    restriction_level: Literal["Unrestricted", "ReadOnly"]


class NodeProvisioningProfile(Section):
    """Nodes that Azure makes as pods need them."""

    mode: Literal["Manual", "Auto"] | None = None
    default_node_pools: Literal["None", "Auto"] | None = None


class BootstrapProfile(Section):
    """From where nodes take what they start with."""

    artifact_source: Literal["Cache", "Direct"]
    container_registry_id: RegistryId | None = None

    @model_validator(mode="after")
    def _registry_with_cache(self) -> Self:
        if self.container_registry_id and self.artifact_source != "Cache":
            raise ValueError("containerRegistryId goes with artifactSource: Cache")
        return self
