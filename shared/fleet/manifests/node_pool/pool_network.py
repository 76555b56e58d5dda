"""The network of a pool's nodes: addresses, allowed ports, local DNS."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import StrictInt, StrictStr, model_validator

from shared.fleet.manifests.arm_types import Count, Section, Text, between, resource


class IpTag(Section):
    """A tag on the nodes' public addresses."""

    ip_tag_type: Text
    """The tag's type, such as RoutingPreference."""
    tag: Text
    """The tag's value, such as Internet."""


class PortRange(Section):
    """Host ports that are open on nodes."""

    port_start: Annotated[StrictInt, between(1, 65_535)]
    """The first port."""
    port_end: Annotated[StrictInt, between(1, 65_535)]
    """The last port."""
    protocol: Literal["TCP", "UDP"]
    """TCP or UDP."""

    @model_validator(mode="after")
    def _forwards(self) -> Self:
        if self.port_start > self.port_end:
            raise ValueError(f"portStart {self.port_start} is more than portEnd {self.port_end}")
        return self


class PoolNetworkProfile(Section):
    """The network of nodes."""

    node_public_ip_tags: tuple[IpTag, ...] | None = None
    """Tags on the nodes' public addresses."""
    allowed_host_ports: tuple[PortRange, ...] | None = None
    """Ports of nodes that can be reached from the internet."""
    application_security_groups: (
        tuple[
            Annotated[
                StrictStr,
                resource("Microsoft.Network", "applicationSecurityGroups", "an application security group"),
            ],
            ...,
        ]
        | None
    ) = None
    """Application security groups that the nodes belong to."""


class DnsOverride(Section):
    """How one domain is resolved."""

    query_logging: Literal["Error", "Log"] | None = None
    """What is logged."""
    protocol: Literal["PreferUDP", "ForceTCP"] | None = None
    """The protocol of queries to the server."""
    forward_destination: Literal["ClusterCoreDNS", "VnetDNS"] | None = None
    """The server that queries are forwarded to."""
    forward_policy: Literal["Sequential", "RoundRobin", "Random"] | None = None
    """How one of several servers is chosen."""
    max_concurrent: Count | None = None
    """The maximum number of concurrent queries."""
    cache_duration_in_seconds: Count | None = None
    """How many seconds an answer is cached."""
    serve_stale_duration_in_seconds: Count | None = None
    """How many seconds an expired answer may be served while no server answers."""
    serve_stale: Literal["Verify", "Immediate", "Disable"] | None = None
    """Whether expired answers are served."""


class LocalDnsProfile(Section):
    """DNS on each node; the overrides are by domain."""

    mode: Literal["Preferred", "Required", "Disabled"]
    """Whether nodes run it; Required refuses nodes that do not support it."""
    vnet_dns_overrides: dict[Text, DnsOverride] | None = None
    """Overrides by domain, for pods that use the network's DNS."""
    kube_dns_overrides: dict[Text, DnsOverride] | None = None
    """Overrides by domain, for pods that use the cluster's DNS."""
