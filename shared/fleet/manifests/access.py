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
    """From where the API server is reached."""

    enable_private_cluster: Flag = None
    """The API server has an address in the cluster's network only."""
    private_dns_zone: PrivateDnsZone | None = None
    """Where the private address of the API server is registered: a zone that Azure makes, none, or one
    of yours."""
    enable_private_cluster_public_fqdn: Flag = None
    """The private address also has a public name."""
    authorized_ip_ranges: Annotated[tuple[IpRange, ...], Field(max_length=200)] | None = None
    """From where a public API server is reached; everybody where nothing is said."""
    disable_run_command: Flag = None
    """Nobody runs commands in the cluster by way of Azure (az aks command invoke)."""
    enable_vnet_integration: Flag = None
    """The API server has an address in a subnet of yours, without a tunnel."""
    subnet_id: SubnetId | None = None
    """The subnet that the API server is put into."""

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
    """AKS itself manages the integration; the older way is gone."""
    enable_azure_rbac: Flag = None
    """Who may do what in Kubernetes is said by role assignments in Azure."""
    admin_group_object_ids: tuple[Guid, ...] | None = None
    """Groups of Entra ID whose members administrate the cluster."""
    tenant_id: Guid | None = None
    """The tenant that people sign in to; that of the subscription where nothing is said."""


class OidcIssuerProfile(Section):
    """The issuer that workload identities are trusted by; once on it stays on."""

    enabled: StrictBool
    """The cluster has an issuer of its own."""
