"""How a cluster's pods and services are networked."""

from __future__ import annotations

import ipaddress
from typing import Literal, Self

from pydantic import Field, model_validator

from shared.fleet.manifests.base import Address, Cidr, Manifest


class NetworkProfile(Manifest):
    """How pods and services are networked; all but outboundType is fixed once the cluster exists."""

    network_plugin: Literal["azure", "kubenet", "none"] = "azure"
    network_plugin_mode: Literal["overlay"] | None = None
    network_policy: Literal["azure", "calico", "cilium", "none"] | None = None
    network_dataplane: Literal["azure", "cilium"] | None = None
    pod_cidr: Cidr | None = None
    service_cidr: Cidr | None = None
    dns_service_ip: Address | None = Field(default=None, alias="dnsServiceIP")
    outbound_type: (
        Literal["loadBalancer", "managedNATGateway", "userAssignedNATGateway", "userDefinedRouting", "none"]
        | None
    ) = None
    load_balancer_sku: Literal["standard", "basic"] | None = None

    @model_validator(mode="after")
    def _address_in_service_network(self) -> Self:
        if self.dns_service_ip and not self.service_cidr:
            raise ValueError("dnsServiceIP needs serviceCidr, which it lies in")
        if self.dns_service_ip and self.service_cidr:
            network = ipaddress.ip_network(self.service_cidr)
            if ipaddress.ip_address(self.dns_service_ip) not in network:
                raise ValueError(
                    f"dnsServiceIP {self.dns_service_ip} must lie in serviceCidr {self.service_cidr}"
                )
        return self
