"""What protects a cluster."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from shared.fleet.manifests.arm_types import Base64, Flag, Section, Switch, VaultId, WorkspaceId, between
from shared.fleet.manifests.base import rule
from shared.fleet.manifests.cluster.identity import KubeletIdentity


class GatingIdentity(Section):
    """The identity that reads one registry for the image gate."""

    azure_container_registry: StrictStr
    """The registry."""
    identity: KubeletIdentity
    """The user-assigned identity that reads it."""


class SecurityGating(Section):
    """Microsoft Defender's gate for images."""

    enabled: Flag = None
    """The gate is enabled."""
    allow_secret_access: Flag = None
    """The gate may read the cluster's pull secrets."""
    identities: tuple[GatingIdentity, ...] | None = None
    """The identities that read registries."""


class Defender(Section):
    """Microsoft Defender for Containers."""

    log_analytics_workspace_resource_id: WorkspaceId | None = None
    """The workspace that findings go to."""
    security_monitoring: Switch | None = None
    """Threats are detected at run time."""
    security_gating: SecurityGating | None = None


class KeyVaultKms(Section):
    """Encryption of etcd with your own key."""

    enabled: StrictBool
    """etcd is encrypted with the key."""
    key_id: (
        Annotated[
            StrictStr,
            rule(
                r"https://[^/\s]+/keys/[^/\s]+(/[^/\s]+)?",
                "a key's identifier (https://VAULT.vault.azure.net/keys/NAME/VERSION)",
            ),
        ]
        | None
    ) = None
    """The key, with its version."""
    key_vault_network_access: Literal["Public", "Private"] | None = None
    """Whether the vault is reached over the internet or a private network."""
    key_vault_resource_id: VaultId | None = None
    """The vault; required with Private network access."""

    @model_validator(mode="after")
    def _key_when_enabled(self) -> Self:
        if self.enabled and not self.key_id:
            raise ValueError("enabled: true needs keyId")
        others = {
            "keyId": self.key_id,
            "keyVaultNetworkAccess": self.key_vault_network_access,
            "keyVaultResourceId": self.key_vault_resource_id,
        }
        unused = " and ".join(name for name, value in others.items() if value)
        if not self.enabled and unused:
            raise ValueError(f"enabled: false goes without {unused}; remove {unused}")
        if self.key_vault_network_access != "Private" and self.key_vault_resource_id:
            raise ValueError(
                "keyVaultResourceId goes with keyVaultNetworkAccess: Private; remove it, or write Private"
            )
        if self.key_vault_network_access == "Private" and not self.key_vault_resource_id:
            raise ValueError("keyVaultNetworkAccess: Private needs keyVaultResourceId")
        return self


class ImageCleaner(Section):
    """Removal of unused, vulnerable images from nodes."""

    enabled: StrictBool
    """Images are removed."""
    interval_hours: Annotated[StrictInt, between(24, 2160)] | None = None
    """The number of hours between two removals."""


class ResourceEncryption(Section):
    """Encryption of Kubernetes objects by the platform."""

    infrastructure_encryption: Literal["Enabled"]
    """Objects are encrypted by keys that Azure manages."""


class SecurityProfile(Section):
    """What protects a cluster."""

    workload_identity: Switch | None = None
    """Pods get tokens of Entra ID; this needs oidcIssuerProfile.enabled."""
    defender: Defender | None = None
    image_cleaner: ImageCleaner | None = None
    azure_key_vault_kms: KeyVaultKms | None = None
    kubernetes_resource_object_encryption_profile: ResourceEncryption | None = None
    custom_ca_trust_certificates: Annotated[tuple[Base64, ...], Field(max_length=10)] | None = None
    """Certificate authorities that nodes trust."""
