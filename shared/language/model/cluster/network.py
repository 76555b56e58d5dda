"""The network of a cluster's pods and services."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StrictInt, model_validator

from shared.language.model.arm_types import AddressId, Flag, PrefixId, Section, Switch, between, retired
from shared.language.model.base import Address, Cidr


class ManagedIps(Section):
    """How many public addresses Azure creates and owns."""

    count: Annotated[StrictInt, between(1, 100)] | None = None
    """How many IPv4 addresses."""
    count_ipv6: Annotated[StrictInt, between(0, 100)] | None = None
    """How many IPv6 addresses."""


class AddressRef(Section):
    """Your own public address."""

    id: AddressId
    """The public address."""


class PrefixRef(Section):
    """Your own public address prefix."""

    id: PrefixId
    """The prefix."""


class LoadBalancerIps(Section):
    """Your own public addresses for the load balancer."""

    public_ips: Annotated[tuple[AddressRef, ...], Field(min_length=1)]
    """The addresses."""


class LoadBalancerPrefixes(Section):
    """Your own public address prefixes for the load balancer."""

    public_ip_prefixes: Annotated[tuple[PrefixRef, ...], Field(min_length=1)]
    """The prefixes."""


class LoadBalancerProfile(Section):
    """The load balancer through which pods reach the internet."""

    managed_outbound_ips: ManagedIps | None = None
    outbound_ips: LoadBalancerIps | None = None
    outbound_ip_prefixes: LoadBalancerPrefixes | None = None
    allocated_outbound_ports: Annotated[StrictInt, Field(ge=0, le=64_000, multiple_of=8)] | None = None
    """Outbound ports for each node; 0 lets Azure distribute them."""
    idle_timeout_in_minutes: Annotated[StrictInt, between(4, 120)] | None = None
    """After how many minutes a silent connection is closed."""
    enable_multiple_standard_load_balancers: Flag = None
    """Nodes are spread over several load balancers."""
    backend_pool_type: Literal["NodeIPConfiguration", "NodeIP"] | None = None
    """Whether the load balancer reaches nodes by their network interface or by their address."""

    @model_validator(mode="after")
    def _one_kind_of_address(self) -> Self:
        ways = (self.managed_outbound_ips, self.outbound_ips, self.outbound_ip_prefixes)
        if sum(way is not None for way in ways) > 1:
            raise ValueError("takes one of managedOutboundIPs, outboundIPs and outboundIPPrefixes; keep one")
        return self


class NatManagedIps(Section):
    """How many public addresses Azure creates and owns for the NAT gateway."""

    count: Annotated[StrictInt, between(1, 16)] | None = None
    """How many IPv4 addresses."""
    count_ipv6: Annotated[StrictInt, between(1, 16)] | None = None
    """How many IPv6 addresses; this needs StandardV2."""


class NatIps(Section):
    """Your own public addresses for the NAT gateway."""

    public_ips: Annotated[tuple[AddressId, ...], Field(min_length=1)]
    """The addresses."""


class NatPrefixes(Section):
    """Your own public address prefixes for the NAT gateway."""

    public_ip_prefixes: Annotated[tuple[PrefixId, ...], Field(min_length=1)]
    """The prefixes."""


class NatGatewayProfile(Section):
    """The NAT gateway that Azure creates and owns."""

    sku: Literal["Standard", "StandardV2"] | None = None
    """The kind of NAT gateway."""
    managed_outbound_ip_profile: NatManagedIps | None = None
    outbound_ips: NatIps | None = None
    outbound_ip_prefixes: NatPrefixes | None = None
    idle_timeout_in_minutes: Annotated[StrictInt, between(4, 120)] | None = None
    """After how many minutes a silent connection is closed."""

    @model_validator(mode="after")
    def _addresses_fit(self) -> Self:
        managed, own = self.managed_outbound_ip_profile, self.outbound_ips or self.outbound_ip_prefixes
        if managed and own:
            raise ValueError(
                "takes managedOutboundIPProfile, or your own outboundIPs and outboundIPPrefixes; keep one"
            )
        if self.sku == "Standard" and (own or (managed and managed.count_ipv6)):
            raise ValueError(
                "outboundIPs, outboundIPPrefixes and countIPv6 need sku: StandardV2; write it, or remove them"
            )
        return self


class TransitEncryption(Section):
    """Encryption of traffic between pods."""

    type: Literal["WireGuard", "None"]
    """The encryption of traffic between pods on different nodes."""


class AdvancedSecurity(Section):
    """Network policies by name and by request, and encryption."""

    enabled: Flag = None
    """The security features are on."""
    advanced_network_policies: Literal["L7", "FQDN", "None"] | None = None
    """What network policies match: names (FQDN), also requests (L7), or neither."""
    transit_encryption: TransitEncryption | None = None


class Acceleration(Section):
    """How packets are forwarded."""

    acceleration_mode: Literal["BpfVeth", "None"]
    """Whether packets bypass the node's network stack."""


class AdvancedNetworking(Section):
    """Advanced Container Networking Services."""

    enabled: Flag = None
    """The services are on."""
    observability: Switch | None = None
    """Metrics of the traffic between pods."""
    security: AdvancedSecurity | None = None
    performance: Acceleration | None = None


def _families(families: tuple[str, ...]) -> tuple[str, ...]:
    if families not in (("IPv4",), ("IPv4", "IPv6")):
        raise ValueError(
            f"must be [IPv4] or [IPv4, IPv6], got [{', '.join(families)}]; AKS has no clusters with IPv6 "
            "alone or first"
        )
    return families


class NetworkProfile(Section):
    """The network of pods and services; most of its fields are fixed once the cluster exists."""

    network_plugin: Literal["azure", "kubenet", "none"] | None = None
    """What gives pods their addresses."""
    network_plugin_mode: Literal["overlay"] | None = None
    """With overlay, pods have addresses from a separate range instead of the subnet."""
    network_policy: Literal["azure", "calico", "cilium", "none"] | None = None
    """What enforces network policies."""
    network_dataplane: Literal["azure", "cilium"] | None = None
    """What forwards packets in the cluster."""
    network_mode: Literal["transparent", "bridge"] | None = None
    """An older setting of the plugin azure; omit it."""
    pod_cidr: Cidr | None = None
    """The range of the pods' addresses, with overlay or kubenet."""
    service_cidr: Cidr | None = None
    """The range of the services' addresses; it must not overlap any network that the cluster reaches."""
    dns_service_ip: Address | None = None
    """The address of the cluster's DNS, in serviceCidr."""
    pod_cidrs: Annotated[tuple[Cidr, ...], Field(min_length=1, max_length=2)] | None = None
    """The same as podCidr, one range for each of ipFamilies."""
    service_cidrs: Annotated[tuple[Cidr, ...], Field(min_length=1, max_length=2)] | None = None
    """The same as serviceCidr, one range for each of ipFamilies."""
    ip_families: (
        Annotated[
            tuple[Literal["IPv4", "IPv6"], ...],
            Field(min_length=1, max_length=2),
            AfterValidator(_families),
        ]
        | None
    ) = None
    """Which kinds of addresses pods and services have; the first is the primary one."""
    outbound_type: (
        Literal["loadBalancer", "managedNATGateway", "userAssignedNATGateway", "userDefinedRouting", "none"]
        | None
    ) = None
    """How pods reach the internet."""
    load_balancer_sku: (
        Annotated[Literal["standard"], retired({"basic": "write standard, or remove this line"})] | None
    ) = None
    """The kind of load balancer."""
    load_balancer_profile: LoadBalancerProfile | None = None
    nat_gateway_profile: NatGatewayProfile | None = None
    static_egress_gateway_profile: Switch | None = None
    """Pods can use fixed outbound addresses, through a node pool with mode Gateway."""
    advanced_networking: AdvancedNetworking | None = None

    @model_validator(mode="after")
    def _one_spelling_of_each_network(self) -> Self:
        for single, many, name in (
            (self.pod_cidr, self.pod_cidrs, "podCidr"),
            (self.service_cidr, self.service_cidrs, "serviceCidr"),
        ):
            if single and many and many[0] != single:
                raise ValueError(
                    f"{name} {single} must be the first of {name}s {', '.join(many)}; or keep one of the two"
                )
        return self

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if self.network_plugin_mode == "overlay" and self.network_plugin not in (None, "azure"):
            raise ValueError(
                f"networkPluginMode: overlay goes with networkPlugin: azure, not {self.network_plugin}"
            )
        if self.network_policy == "cilium" and self.network_dataplane != "cilium":
            raise ValueError("networkPolicy: cilium needs networkDataplane: cilium")
        if self.nat_gateway_profile and self.outbound_type != "managedNATGateway":
            raise ValueError("natGatewayProfile goes with outboundType: managedNATGateway")
        return self

    @model_validator(mode="after")
    def _load_balancer_fits(self) -> Self:
        balancer = self.load_balancer_profile
        if balancer is None:
            return self
        outbound = balancer.model_dump(by_alias=True, include=_OUTBOUND, exclude_none=True)
        if self.outbound_type == "userDefinedRouting" and outbound:
            raise ValueError(
                f"loadBalancerProfile.{next(iter(outbound))} does not go with outboundType: "
                "userDefinedRouting, where your own routes lead out; remove one of the two"
            )
        managed = balancer.managed_outbound_ips
        if managed and managed.count_ipv6 and "IPv6" not in (self.ip_families or ()):
            raise ValueError(
                "loadBalancerProfile.managedOutboundIPs.countIPv6 needs ipFamilies: [IPv4, IPv6]"
            )
        return self


_OUTBOUND = {
    *("managed_outbound_ips", "outbound_ips", "outbound_ip_prefixes"),
    *("allocated_outbound_ports", "idle_timeout_in_minutes"),
}
"""The fields of a load balancer's profile that are about outbound connections."""
