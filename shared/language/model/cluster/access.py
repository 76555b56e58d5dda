"""Who reaches a cluster: API server, sign-in, identities, security, the kubeconfig of an attached one."""

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from shared.language.model.arm_types import (
    Base64,
    Flag,
    Guid,
    IpRange,
    Section,
    Switch,
    VaultId,
    WorkspaceId,
    between,
)
from shared.language.model.base import IdentityId, Manifest, SubnetId, rule
from shared.language.model.cluster.grants import VaultName, VaultSecretName

PrivateDnsZone = Annotated[
    StrictStr,
    rule(
        r"system|none|(?i:/subscriptions/[^/\s]+/resourceGroups/[^/\s]+/providers/Microsoft\.Network"
        r"/privateDnsZones/[^/\s]+)",
        "system, none, or the resource id of a private DNS zone",
    ),
]


class ApiServerAccessProfile(Section):
    """How the API server is reached."""

    enable_private_cluster: Flag = None
    """The API server has an address in the cluster's network only."""
    private_dns_zone: PrivateDnsZone | None = None
    """Where the private address of the API server is registered: a zone that Azure creates (system), none,
    or your own zone."""
    enable_private_cluster_public_fqdn: Flag = None
    """The private address also has a public name."""
    authorized_ip_ranges: Annotated[tuple[IpRange, ...], Field(max_length=2000)] | None = None
    """The addresses that may reach a public API server, at most 200 without enableVnetIntegration; all by
    default."""
    disable_run_command: Flag = None
    """Running commands in the cluster through Azure (az aks command invoke) is disabled."""
    enable_vnet_integration: Flag = None
    """The API server has an address in your subnet, without a tunnel."""
    subnet_id: SubnetId | None = None
    """The subnet of the API server."""

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if self.enable_private_cluster and self.authorized_ip_ranges:
            raise ValueError(
                "authorizedIPRanges is for a public API server, enablePrivateCluster for none; keep one"
            )
        if self.private_dns_zone and not self.enable_private_cluster:
            raise ValueError("privateDNSZone needs enablePrivateCluster: true")
        if self.private_dns_zone == "none" and self.enable_private_cluster_public_fqdn is False:
            raise ValueError("privateDNSZone: none needs enablePrivateClusterPublicFQDN: true")
        return self


class AadProfile(Section):
    """Sign-in with Microsoft Entra ID, managed by AKS."""

    managed: Literal[True]
    """AKS manages the integration; the legacy integration no longer exists."""
    enable_azure_rbac: Flag = None
    """Role assignments in Azure decide who may do what in Kubernetes."""
    admin_group_object_ids: tuple[Guid, ...] | None = None
    """Groups of Entra ID whose members administer the cluster."""
    tenant_id: Guid | None = None
    """The tenant that users sign in to; the subscription's tenant by default."""


class Identity(Manifest):
    """The identity that the control plane acts as."""

    type: Literal["SystemAssigned", "UserAssigned"] = "SystemAssigned"
    """An identity that Azure creates with the cluster, or your own."""
    user_assigned_identity: IdentityId | None = None
    """Your own identity."""

    @model_validator(mode="after")
    def _named_when_user_assigned(self) -> Self:
        if self.type == "UserAssigned" and self.user_assigned_identity is None:
            raise ValueError("type: UserAssigned needs userAssignedIdentity, the resource id of the identity")
        if self.type != "UserAssigned" and self.user_assigned_identity is not None:
            raise ValueError("userAssignedIdentity needs type: UserAssigned")
        return self


class KubeletIdentity(Section):
    """A user-assigned identity that the nodes act as, to pull images for example."""

    resource_id: IdentityId
    """The identity."""
    client_id: Guid | None = None
    """The identity's client id; Azure determines it by default."""
    object_id: Guid | None = None
    """The identity's object id; Azure determines it by default."""


class IdentityProfile(Section):
    """Identities besides the control plane's."""

    kubeletidentity: KubeletIdentity


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
    """The key, with its version; one that Azure is to rotate by itself is without."""
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


# Where the kubeconfig of an attached cluster is: a secret of Azure Key Vault, by its name.

EXISTING = "existing"
Provider = Literal["aks", "existing"]


class KubeconfigSecret(Manifest):
    """The secret of Azure Key Vault whose value is the kubeconfig."""

    vault: VaultName
    """The vault that has it, by its name. KEY_VAULTS, a setting of the app, lists the vaults that manifests
    may name."""
    secret: VaultSecretName
    """The name of the secret. Its value is a kubeconfig with a client certificate or a token in it."""


class ExistingCluster(Manifest):
    """How Roadstead enters a cluster that it did not create, with provider: existing."""

    kubeconfig: KubeconfigSecret
