"""The parts of a node pool: upgrades, kubelet, kernel, network, security, local DNS."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from shared.fleet.manifests.arm import Flag, Section, Text, between, resource
from shared.fleet.manifests.base import rule

Count = Annotated[StrictInt, Field(ge=0)]
Surge = Annotated[
    StrictStr, rule(r"[0-9]+|([0-9]|[1-9][0-9]|100)%", 'a number or percentage in quotes, such as "33%"')
]


class PoolUpgradeSettings(Section):
    """How nodes are replaced."""

    max_surge: Surge | None = None
    max_unavailable: Surge | None = None
    drain_timeout_in_minutes: Annotated[StrictInt, between(1, 1440)] | None = None
    node_soak_duration_in_minutes: Annotated[StrictInt, between(0, 30)] | None = None
    undrainable_node_behavior: Literal["Cordon", "Schedule"] | None = None


class KubeletConfig(Section):
    """Settings of the kubelet."""

    cpu_manager_policy: Literal["none", "static"] | None = None
    cpu_cfs_quota: Flag = None
    cpu_cfs_quota_period: Text | None = None
    image_gc_high_threshold: Annotated[StrictInt, between(0, 100)] | None = None
    image_gc_low_threshold: Annotated[StrictInt, between(0, 100)] | None = None
    topology_manager_policy: Literal["none", "best-effort", "restricted", "single-numa-node"] | None = None
    allowed_unsafe_sysctls: tuple[Text, ...] | None = None
    fail_swap_on: Flag = None
    container_log_max_size_mb: Count | None = None
    container_log_max_files: Annotated[StrictInt, Field(ge=2)] | None = None
    pod_max_pids: StrictInt | None = None

    @model_validator(mode="after")
    def _low_below_high(self) -> Self:
        low, high = self.image_gc_low_threshold, self.image_gc_high_threshold
        if low is not None and high is not None and low >= high:
            raise ValueError(f"imageGcLowThreshold {low} must be less than imageGcHighThreshold {high}")
        return self


class Sysctls(Section):
    """Kernel settings, named as ARM does."""

    net_core_somaxconn: Count | None = None
    net_core_netdev_max_backlog: Count | None = None
    net_core_rmem_default: Count | None = None
    net_core_rmem_max: Count | None = None
    net_core_wmem_default: Count | None = None
    net_core_wmem_max: Count | None = None
    net_core_optmem_max: Count | None = None
    net_ipv4_tcp_max_syn_backlog: Count | None = None
    net_ipv4_tcp_max_tw_buckets: Count | None = None
    net_ipv4_tcp_fin_timeout: Count | None = None
    net_ipv4_tcp_keepalive_time: Count | None = None
    net_ipv4_tcp_keepalive_probes: Count | None = None
    net_ipv4_tcpkeepalive_intvl: Count | None = None
    net_ipv4_tcp_tw_reuse: Flag = None
    net_ipv4_ip_local_port_range: (
        Annotated[StrictStr, rule(r"[0-9]+ [0-9]+", 'two ports, such as "32768 60999"')] | None
    ) = None
    net_ipv4_neigh_default_gc_thresh1: Count | None = None
    net_ipv4_neigh_default_gc_thresh2: Count | None = None
    net_ipv4_neigh_default_gc_thresh3: Count | None = None
    net_netfilter_nf_conntrack_max: Count | None = None
    net_netfilter_nf_conntrack_buckets: Count | None = None
    fs_inotify_max_user_watches: Count | None = None
    fs_file_max: Count | None = None
    fs_aio_max_nr: Count | None = None
    fs_nr_open: Count | None = None
    kernel_threads_max: Count | None = None
    vm_max_map_count: Count | None = None
    vm_swappiness: Annotated[StrictInt, between(0, 200)] | None = None
    vm_vfs_cache_pressure: Count | None = None


class LinuxOsConfig(Section):
    """Settings of Linux nodes."""

    sysctls: Sysctls | None = None
    transparent_huge_page_enabled: Literal["always", "madvise", "never"] | None = None
    transparent_huge_page_defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = (
        None
    )
    swap_file_size_mb: Count | None = None


class IpTag(Section):
    """A tag on the nodes' public addresses."""

    ip_tag_type: Text
    tag: Text


class PortRange(Section):
    """Host ports that are open on nodes."""

    port_start: Annotated[StrictInt, between(1, 65_535)]
    port_end: Annotated[StrictInt, between(1, 65_535)]
    protocol: Literal["TCP", "UDP"]

    @model_validator(mode="after")
    def _forwards(self) -> Self:
        if self.port_start > self.port_end:
            raise ValueError(f"portStart {self.port_start} is more than portEnd {self.port_end}")
        return self


class PoolNetworkProfile(Section):
    """The network of nodes."""

    node_public_ip_tags: tuple[IpTag, ...] | None = None
    allowed_host_ports: tuple[PortRange, ...] | None = None
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


class PoolSecurityProfile(Section):
    """Trusted launch and SSH."""

    enable_vtpm: Flag = None
    enable_secure_boot: Flag = None
    ssh_access: Literal["LocalUser", "Disabled", "EntraId"] | None = None


class PoolWindowsProfile(Section):
    """Windows nodes of one pool."""

    disable_outbound_nat: Flag = None


class Nvidia(Section):
    """Who manages NVIDIA's components."""

    management_mode: Literal["Unmanaged", "Managed"]


class GpuProfile(Section):
    """Drivers of GPUs."""

    driver: Literal["Install", "None"] | None = None
    nvidia: Nvidia | None = None


class GatewayProfile(Section):
    """A pool through which static egress goes."""

    public_ip_prefix_size: Annotated[StrictInt, between(28, 31)] | None = None


class CreationData(Section):
    """The snapshot that a pool is made from."""

    source_resource_id: Annotated[
        StrictStr, resource("Microsoft.ContainerService", "snapshots", "a node pool snapshot")
    ]


class ArtifactStreaming(Section):
    """Containers that start before their image is there."""

    enabled: StrictBool


class DnsOverride(Section):
    """How one domain is resolved."""

    query_logging: Literal["Error", "Log"] | None = None
    protocol: Literal["PreferUDP", "ForceTCP"] | None = None
    forward_destination: Literal["ClusterCoreDNS", "VnetDNS"] | None = None
    forward_policy: Literal["Sequential", "RoundRobin", "Random"] | None = None
    max_concurrent: Count | None = None
    cache_duration_in_seconds: Count | None = None
    serve_stale_duration_in_seconds: Count | None = None
    serve_stale: Literal["Verify", "Immediate", "Disable"] | None = None


class LocalDnsProfile(Section):
    """DNS on each node; the overrides are by domain."""

    mode: Literal["Preferred", "Required", "Disabled"]
    vnet_dns_overrides: dict[Text, DnsOverride] | None = None
    kube_dns_overrides: dict[Text, DnsOverride] | None = None
