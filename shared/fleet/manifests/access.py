"""Who reaches the API server, and who may do what there."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictStr, model_validator

from shared.fleet.manifests.arm import Flag, Guid, IpRange, Section
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
    private_dns_zone: PrivateDnsZone | None = None
    enable_private_cluster_public_fqdn: Flag = None
    authorized_ip_ranges: Annotated[tuple[IpRange, ...], Field(max_length=200)] | None = None
    disable_run_command: Flag = None
    enable_vnet_integration: Flag = None
    subnet_id: SubnetId | None = None

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
    enable_azure_rbac: Flag = None
    admin_group_object_ids: tuple[Guid, ...] | None = None
    tenant_id: Guid | None = None


class OidcIssuerProfile(Section):
    """The issuer that workload identities are trusted by; once on it stays on."""

    enabled: StrictBool
