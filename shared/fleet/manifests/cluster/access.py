"""Who reaches the API server, and who may do what there."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictStr, model_validator

from shared.fleet.manifests.arm_types import Flag, Guid, IpRange, Section
from shared.fleet.manifests.base import SubnetId, rule

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
