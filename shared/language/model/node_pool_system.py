"""The operating system of a pool's nodes, and their network."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StrictInt, StrictStr, model_validator

from shared.language.model.arm_types import Count, Flag, Section, Text, between, resource
from shared.language.model.base import rule, shown, stated_rule

UnsafeSysctl = Annotated[
    StrictStr,
    rule(
        r"kernel\.(shm|msg)[a-z_*]*|kernel\.sem|(fs\.mqueue|net)\.[A-Za-z0-9_.*-]+",
        "kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.* or net.*, or a setting that one of these covers",
    ),
]


Period = Annotated[
    StrictStr, rule(r"([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+", "a duration with its unit, such as 100ms")
]
"""A duration of Go (azure-rest-api-specs KubeletConfig.cpuCfsQuotaPeriod)."""


class KubeletConfig(Section):
    """Settings of the kubelet."""

    cpu_manager_policy: Literal["none", "static"] | None = None
    """static gives whole processors to pods that request them."""
    cpu_cfs_quota: Flag = None
    """Limits of processor time are enforced."""
    cpu_cfs_quota_period: Period | None = None
    """The period over which these limits are enforced, such as 100ms."""
    image_gc_high_threshold: Annotated[StrictInt, between(0, 100)] | None = None
    """The disk usage, in percent, above which unused images are removed."""
    image_gc_low_threshold: Annotated[StrictInt, between(0, 100)] | None = None
    """The disk usage, in percent, down to which unused images are removed."""
    topology_manager_policy: Literal["none", "best-effort", "restricted", "single-numa-node"] | None = None
    """How processors, memory and devices are aligned."""
    allowed_unsafe_sysctls: tuple[UnsafeSysctl, ...] | None = None
    """Unsafe kernel settings that pods may change."""
    fail_swap_on: Flag = None
    """The kubelet does not start on a node with swap."""
    container_log_max_size_mb: Count | None = None
    """The size, in MB, at which a container's log is rotated."""
    container_log_max_files: Annotated[StrictInt, Field(ge=2)] | None = None
    """How many log files AKS keeps for each container."""
    pod_max_pids: Annotated[StrictInt, Field(ge=-1)] | None = None
    """The maximum number of processes of a pod; -1 is unlimited."""

    @model_validator(mode="after")
    def _low_below_high(self) -> Self:
        low, high = self.image_gc_low_threshold, self.image_gc_high_threshold
        if low is not None and high is not None and low >= high:
            raise ValueError(f"imageGcLowThreshold {low} must be less than imageGcHighThreshold {high}")
        return self


def _ports(value: str) -> str:
    first, _, last = value.partition(" ")
    ports = (int(first), int(last)) if first.isdecimal() and last.isdecimal() else (0, 0)
    if not (1024 <= ports[0] <= 60_999 and 32_768 <= ports[1] <= 65_535 and ports[0] < ports[1]):
        raise ValueError(
            "must be a first port from 1024 to 60999 and a higher last one from 32768 to 65535, such as "
            f'"32768 60999", got {shown(value)}'
        )
    return value


class Sysctls(Section):
    """Kernel settings, named as ARM does.

    Source of the ranges: learn.microsoft.com/azure/aks/custom-node-configuration.
    """

    net_core_somaxconn: Annotated[StrictInt, between(4_096, 3_240_000)] | None = None
    """Connections that may wait to be accepted on a socket."""
    net_core_netdev_max_backlog: Annotated[StrictInt, between(1_000, 3_240_000)] | None = None
    """Packets that may wait on an interface."""
    net_core_rmem_default: Count | None = None
    """Receive buffer of a socket, in bytes."""
    net_core_rmem_max: Annotated[StrictInt, between(212_992, 134_217_728)] | None = None
    """Largest receive buffer of a socket, in bytes."""
    net_core_wmem_default: Count | None = None
    """Send buffer of a socket, in bytes."""
    net_core_wmem_max: Annotated[StrictInt, between(212_992, 134_217_728)] | None = None
    """Largest send buffer of a socket, in bytes."""
    net_core_optmem_max: Annotated[StrictInt, between(20_480, 4_194_304)] | None = None
    """Largest extra buffer of a socket, in bytes."""
    net_ipv4_tcp_max_syn_backlog: Annotated[StrictInt, between(128, 3_240_000)] | None = None
    """Half-open connections at most."""
    net_ipv4_tcp_max_tw_buckets: Annotated[StrictInt, between(8_000, 1_440_000)] | None = None
    """Sockets that may be in the state TIME-WAIT."""
    net_ipv4_tcp_fin_timeout: Annotated[StrictInt, between(5, 120)] | None = None
    """Seconds before an orphaned connection is closed."""
    net_ipv4_tcp_keepalive_time: Annotated[StrictInt, between(30, 432_000)] | None = None
    """Seconds of silence before a connection is probed."""
    net_ipv4_tcp_keepalive_probes: Annotated[StrictInt, between(1, 15)] | None = None
    """Probes without an answer before a connection is closed."""
    net_ipv4_tcpkeepalive_intvl: Annotated[StrictInt, between(10, 90)] | None = None
    """Seconds between two probes."""
    net_ipv4_tcp_tw_reuse: Flag = None
    """Sockets in TIME-WAIT are used for new connections."""
    net_ipv4_ip_local_port_range: (
        Annotated[
            StrictStr,
            AfterValidator(_ports),
            stated_rule('a first port from 1024 to 60999 and a last one from 32768 to 65535: "32768 60999"'),
        ]
        | None
    ) = None
    """The first and last port for outgoing connections."""
    net_ipv4_neigh_default_gc_thresh1: Annotated[StrictInt, between(128, 80_000)] | None = None
    """Neighbours that are cached without garbage collection."""
    net_ipv4_neigh_default_gc_thresh2: Annotated[StrictInt, between(512, 90_000)] | None = None
    """Cached neighbours above which old ones are removed."""
    net_ipv4_neigh_default_gc_thresh3: Annotated[StrictInt, between(1_024, 100_000)] | None = None
    """Cached neighbours at most."""
    net_netfilter_nf_conntrack_max: Annotated[StrictInt, between(131_072, 2_097_152)] | None = None
    """Tracked connections at most."""
    net_netfilter_nf_conntrack_buckets: Annotated[StrictInt, between(65_536, 524_288)] | None = None
    """The size of the table of tracked connections."""
    fs_inotify_max_user_watches: Annotated[StrictInt, between(781_250, 2_097_152)] | None = None
    """Files that one user may watch."""
    fs_file_max: Annotated[StrictInt, between(8_192, 2**63 - 1)] | None = None
    """Files that may be open on a node."""
    fs_aio_max_nr: Annotated[StrictInt, between(65_536, 6_553_500)] | None = None
    """Asynchronous reads and writes that may wait."""
    fs_nr_open: Annotated[StrictInt, between(8_192, 20_000_500)] | None = None
    """Files that one process may have open."""
    kernel_threads_max: Count | None = None
    """Threads on a node at most."""
    vm_max_map_count: Count | None = None
    """Memory maps that one process may have."""
    vm_swappiness: Annotated[StrictInt, between(0, 100)] | None = None
    """How readily the kernel swaps."""
    vm_vfs_cache_pressure: Annotated[StrictInt, between(1, 100)] | None = None
    """How readily the kernel reclaims its cache of directories."""


class LinuxOsConfig(Section):
    """Settings of Linux nodes."""

    sysctls: Sysctls | None = None
    transparent_huge_page_enabled: Literal["always", "madvise", "never"] | None = None
    """When the kernel uses large memory pages."""
    transparent_huge_page_defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = (
        None
    )
    """How hard the kernel works for large memory pages."""
    swap_file_size_mb: Annotated[StrictInt, Field(ge=1)] | None = None
    """The size of the swap file, in MB."""


class PoolWindowsProfile(Section):
    """Windows nodes of one pool."""

    disable_outbound_nat: Flag = None
    """Windows pods use their own address for outbound traffic."""


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
