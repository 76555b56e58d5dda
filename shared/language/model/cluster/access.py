"""Who reaches a cluster and who may do what there: API server, identities, security."""

from collections.abc import Sequence
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
from shared.language.model.base import IdentityId, Manifest, ObjectName, SubnetId, rule
from shared.language.model.cluster.bootstrap_secrets import SecretName, VaultName, VaultSecretName
from shared.language.model.cluster.flux_source import FluxName

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
    authorized_ip_ranges: Annotated[tuple[IpRange, ...], Field(max_length=200)] | None = None
    """The addresses that may reach a public API server; all by default."""
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


class OidcIssuerProfile(Section):
    """The issuer of tokens for workload identities; it cannot be disabled again."""

    enabled: StrictBool
    """The cluster has an issuer of its own."""


# The identities of a cluster.


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


# What protects a cluster.


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


# Where the kubeconfig of an existing cluster is: a secret of Azure Key Vault, by its name.

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


# What identities may do: pods of the cluster as an identity of Azure, and the cluster's own in Azure.
#
# The rules of federated credentials are those of learn.microsoft.com/entra/workload-id/
# workload-identity-federation-considerations, those of role assignments those of
# learn.microsoft.com/azure/role-based-access-control/role-assignments.

MOST_OF_AN_IDENTITY = 20
"""How many federated credentials Azure allows an identity, whoever created them."""
CONTROL_PLANE, KUBELET = "controlPlane", "kubelet"
_GUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_SEGMENT = r"/[A-Za-z0-9._()-]+"

RoleName = Annotated[
    StrictStr,
    rule(
        r"[A-Za-z0-9][A-Za-z0-9 ()/._-]{0,126}[A-Za-z0-9)]",
        "the name of a role such as AcrPull, or the id (a GUID) of its definition",
    ),
]
Scope = Annotated[
    StrictStr,
    rule(
        rf"(?i:/subscriptions/{_GUID}(/resourceGroups{_SEGMENT}(/providers{_SEGMENT}({_SEGMENT}{_SEGMENT})+)?)?)",
        "the id of a subscription, of a resource group or of a resource, as Azure writes it",
    ),
]
ClusterIdentity = Annotated[
    StrictStr,
    rule(
        rf"{CONTROL_PLANE}|{KUBELET}|(?i:/subscriptions/{_GUID}/resourceGroups{_SEGMENT}"
        rf"/providers/Microsoft\.ManagedIdentity/userAssignedIdentities{_SEGMENT})",
        f"{CONTROL_PLANE}, {KUBELET} or the resource id of a user-assigned identity",
    ),
]
Audience = Annotated[
    StrictStr, rule(r"[A-Za-z0-9][A-Za-z0-9:/._-]{0,599}", "an audience such as api://AzureADTokenExchange")
]


class FederatedCredential(Manifest):
    """Pods with a service account of the cluster may act as a user-assigned identity of Azure."""

    name: ObjectName
    """The name of the entry; entries of the layers are merged by it."""
    identity: IdentityId
    """The identity, which exists; it takes 20 federated credentials, those of all clusters together."""
    namespace: FluxName
    """The namespace of the service account."""
    service_account: SecretName
    """The name of the service account."""
    audience: Audience = "api://AzureADTokenExchange"
    """The audience of the tokens; the default is that of workload identity."""

    @property
    def subject(self) -> str:
        """The service account as tokens of the cluster name it."""
        return f"system:serviceaccount:{self.namespace}:{self.service_account}"


class RoleAssignment(Manifest):
    """A role of Azure that an identity of the cluster has at a scope."""

    name: ObjectName
    """The name of the entry; entries of the layers are merged by it."""
    role: RoleName
    """The role, by its name or by the id of its definition. The app's own role says which it may assign."""
    scope: Scope
    """What the role is about."""
    identity: ClusterIdentity | None = None
    """Who gets the role: the identity of the control plane, that of the kubelets, or a user-assigned one."""
    principal_id: Guid | None = None
    """The object id of any other managed identity or service principal, in place of identity."""

    @property
    def principal(self) -> str:
        """Who gets the role, as the manifest names it."""
        return self.identity or self.principal_id or ""

    @property
    def subscription(self) -> str:
        """The subscription of the scope."""
        return self.scope.split("/")[2]

    @model_validator(mode="after")
    def _one_principal(self) -> Self:
        if (self.identity is None) == (self.principal_id is None):
            raise ValueError("needs identity or principalId, and only one of both")
        return self


FederatedCredentials = Annotated[tuple[FederatedCredential, ...], Field(max_length=100)]
RoleAssignments = Annotated[tuple[RoleAssignment, ...], Field(max_length=50)]


def differ(credentials: Sequence[FederatedCredential], roles: Sequence[RoleAssignment]) -> None:
    """Raise ValueError where two entries have one name, or ask for the same."""
    subjects = [f"{credential.identity.lower()} and {credential.subject}" for credential in credentials]
    assigned = [f"{role.role.lower()} for {role.principal.lower()} at {role.scope.lower()}" for role in roles]
    for field, what, named in (
        ("federatedCredentials", "entries named", [credential.name for credential in credentials]),
        ("federatedCredentials", "entries for", subjects),
        ("roleAssignments", "entries named", [role.name for role in roles]),
        ("roleAssignments", "entries for", assigned),
    ):
        if len(set(named)) < len(named):
            twice = min(name for name in named if named.count(name) > 1)
            raise ValueError(f"{field} has two {what} {twice}; they must differ")
