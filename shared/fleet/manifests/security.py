"""What protects a cluster."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from shared.fleet.manifests.arm import Base64, Flag, Section, Switch, VaultId, WorkspaceId, between
from shared.fleet.manifests.base import rule
from shared.fleet.manifests.identity import KubeletIdentity


class GatingIdentity(Section):
    """The identity that reads one registry for the image gate."""

    azure_container_registry: StrictStr
    identity: KubeletIdentity


class SecurityGating(Section):
    """Microsoft Defender's gate for images."""

    enabled: Flag = None
    allow_secret_access: Flag = None
    identities: tuple[GatingIdentity, ...] | None = None


class Defender(Section):
    """Microsoft Defender for Containers."""

    log_analytics_workspace_resource_id: WorkspaceId | None = None
    security_monitoring: Switch | None = None
    security_gating: SecurityGating | None = None


class KeyVaultKms(Section):
    """Encryption of etcd with a key of yours."""

    enabled: StrictBool
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
    key_vault_network_access: Literal["Public", "Private"] | None = None
    key_vault_resource_id: VaultId | None = None

    @model_validator(mode="after")
    def _key_when_enabled(self) -> Self:
        if self.enabled and not self.key_id:
            raise ValueError("enabled: true needs keyId")
        if self.key_vault_network_access == "Private" and not self.key_vault_resource_id:
            raise ValueError("keyVaultNetworkAccess: Private needs keyVaultResourceId")
        return self


class ImageCleaner(Section):
    """Removal of unused, vulnerable images from nodes."""

    enabled: StrictBool
    interval_hours: Annotated[StrictInt, between(24, 2160)] | None = None


class ResourceEncryption(Section):
    """Encryption of Kubernetes objects by the platform."""

    infrastructure_encryption: Literal["Enabled"]


class SecurityProfile(Section):
    """What protects a cluster."""

    workload_identity: Switch | None = None
    defender: Defender | None = None
    image_cleaner: ImageCleaner | None = None
    azure_key_vault_kms: KeyVaultKms | None = None
    kubernetes_resource_object_encryption_profile: ResourceEncryption | None = None
    custom_ca_trust_certificates: Annotated[tuple[Base64, ...], Field(max_length=10)] | None = None
