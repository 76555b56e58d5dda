"""Node pools, and the labels and taints of their nodes."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, StrictFloat, StrictInt, StrictStr, model_validator

from shared.kubernetes_versions import numbers
from shared.language.model.arm_types import (
    BASE64,
    COMMANDS_OF_POOLS,
    Flag,
    PrefixId,
    Section,
    Switch,
    between,
    only_untyped,
    resource,
    retired,
)
from shared.language.model.base import (
    Labels,
    Manifest,
    PoolName,
    SubnetId,
    Tags,
    Taint,
    Version,
    VmSize,
    rule,
)
from shared.language.model.node_pool_parts import (
    CreationData,
    GatewayProfile,
    GpuProfile,
    PoolRollback,
    PoolSecurityProfile,
    PoolUpgradeSettings,
    PowerState,
    VirtualMachinesProfile,
)
from shared.language.model.node_pool_system import (
    KubeletConfig,
    LinuxOsConfig,
    LocalDnsProfile,
    PoolNetworkProfile,
    PoolWindowsProfile,
)

NodeTaint = Annotated[
    Taint, rule(r"[^:]+=[^:]*:.+", "key=value:NoSchedule, with the = that AKS requires even without a value")
]

NODE_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io", "node-role.kubernetes.io")
"""The domains of Kubernetes whose labels AKS takes (AKS, "Use labels"; node-role: Azure/AKS#4628)."""


def not_reserved(labels: dict[str, str]) -> dict[str, str]:
    """Return the labels; a ValueError where one is in a domain that AKS or Kubernetes reserves."""
    for key in labels:
        domain = key.rpartition("/")[0]
        if domain == "kubernetes.azure.com":
            raise ValueError(f"{key} is reserved by AKS; use another domain")
        if _is_below(domain, ("kubernetes.io", "k8s.io")) and not _is_below(domain, NODE_DOMAINS):
            raise ValueError(f"{key} is reserved by Kubernetes; use another domain, or {NODE_DOMAINS[1]}")
    return labels


def _is_below(domain: str, parents: tuple[str, ...]) -> bool:
    return any(f".{domain}".endswith(f".{parent}") for parent in parents)


OsSku = Literal[
    "Ubuntu",
    "Ubuntu2204",
    "Ubuntu2404",
    "AzureLinux",
    "AzureLinux3",
    "AzureContainerLinux",
    "Windows2019",
    "Windows2022",
    "Windows2025",
]


KUBELET_OF_WINDOWS = {
    "imageGcHighThreshold",
    "imageGcLowThreshold",
    "containerLogMaxSizeMB",
    "containerLogMaxFiles",
}
"""learn.microsoft.com/azure/aks/custom-node-configuration, "Windows kubelet custom configuration"."""


_RETIRED_TYPES = {
    "AvailabilitySet": "AKS ended them on 2025-09-30, and makes VirtualMachines of them by itself since "
    "2026-09-30 (github.com/Azure/AKS/issues/5021): write VirtualMachines after az aks update "
    "--migrate-vmas-to-vms",
}
_RETIRED_IMAGES = {
    "AzureLinuxOSGuard": "this preview ends on 2026-12-10 and its images go on 2027-03-10 "
    "(github.com/Azure/AKS/releases/tag/2026-09-04): write AzureContainerLinux",
    "Flatcar": "this preview ended on 2026-06-08 and its images went on 2026-09-08 "
    "(github.com/Azure/AKS/releases/tag/2026-05-29): write AzureContainerLinux",
    "WindowsAnnual": "it ended on 2026-05-15 and its images go on 2027-05-15 "
    "(github.com/Azure/AKS/releases/tag/2026-05-29): write Windows2025 in a new node pool",
}
AUTO = "auto"
"""The zones that AKS chooses: a preview of API version 2026-01-02-preview, "Automatic zone placement" of
learn.microsoft.com/azure/aks/configure-automatic-zone-placement."""


def _sorted(zones: tuple[str, ...]) -> tuple[str, ...]:
    if AUTO in zones and len(zones) > 1:
        raise ValueError("auto lets AKS choose the zones; write it alone")
    return tuple(sorted(zones))


Zones = Annotated[tuple[Literal["1", "2", "3", "auto"], ...], AfterValidator(_sorted)]
"""Zones in canonical order, because their order has no meaning."""


class PoolProperties(Section):
    """ARM's properties of a node pool, with a fixed ``count``, or a range for the cluster autoscaler."""

    instead: ClassVar[Mapping[str, str]] = {
        "enableAutoScaling": "set minCount and maxCount: a pool that has both is autoscaled",
        "nodeImageVersion": COMMANDS_OF_POOLS["nodeImageVersion"],
    }

    mode: Literal["System", "User", "Gateway"] = "User"
    """System is for the pods that the cluster needs, User for all others, Gateway for static egress."""
    type: Annotated[Literal["VirtualMachineScaleSets", "VirtualMachines"], retired(_RETIRED_TYPES)] | None = (
        None
    )
    """VirtualMachines has several sizes in one pool; VirtualMachineScaleSets by default for a new pool."""
    virtual_machines_profile: VirtualMachinesProfile | None = None
    vm_size: VmSize | None = None
    """The size of the nodes; required, except with type: VirtualMachines, and for a System pool of AKS
    Automatic, where AKS chooses it."""
    orchestrator_version: Version | None = None
    """The pool's version of Kubernetes; the control plane's version by default."""
    count: Annotated[StrictInt, between(0, 1000)] | None = None
    """A fixed number of nodes; alternatively, set minCount and maxCount."""
    min_count: Annotated[StrictInt, between(0, 1000)] | None = None
    """The minimum number of nodes; the cluster autoscaler chooses between this and maxCount."""
    max_count: Annotated[StrictInt, between(1, 1000)] | None = None
    """The maximum number of nodes."""
    scale_down_mode: Literal["Delete", "Deallocate"] | None = None
    """Whether unneeded nodes are deleted or deallocated."""
    power_state: PowerState | None = None
    availability_zones: Zones = ()
    """The zones that nodes are spread over; their order has no meaning. [auto] lets AKS choose, which is a
    preview; a pool that has several takes that up with its next write."""
    os_type: Literal["Linux", "Windows"] | None = None
    """The nodes' operating system; Linux by default."""
    os_sku: Annotated[OsSku, retired(_RETIRED_IMAGES)] | None = None
    """The nodes' image; Azure's choice by default."""
    os_disk_size_gb: Annotated[StrictInt, between(30, 2048)] | None = None
    """The size of a node's disk, in GB."""
    os_disk_type: Literal["Managed", "Ephemeral"] | None = None
    """Whether a node's disk is a managed disk or is on the node's host."""
    kubelet_disk_type: Literal["OS", "Temporary"] | None = None
    """The disk for containers, images and logs."""
    max_pods: Annotated[StrictInt, between(10, 250)] | None = None
    """The maximum number of pods on a node."""
    vnet_subnet_id: SubnetId | None = None
    """The subnet of the nodes."""
    pod_subnet_id: SubnetId | None = None
    """The subnet of the pods; this needs vnetSubnetID."""
    pod_ip_allocation_mode: Literal["DynamicIndividual", "StaticBlock"] | None = None
    """Whether pods get addresses one by one or nodes get blocks of them."""
    node_labels: Annotated[Labels, AfterValidator(not_reserved)] = Field(default_factory=dict)
    """Labels of the nodes. Roadstead removes one that git no longer has; others that Azure shows stay."""
    node_taints: tuple[NodeTaint, ...] = ()
    """Taints of the nodes. Roadstead removes one that git no longer has; others that Azure shows stay."""
    tags: Tags = Field(default_factory=dict)
    """Tags of the pool in Azure; tags that git does not name stay."""
    scale_set_priority: Literal["Regular", "Spot"] | None = None
    """Spot nodes are cheap, and Azure evicts them when it needs the capacity."""
    scale_set_eviction_policy: Literal["Delete", "Deallocate"] | None = None
    """What happens to an evicted Spot node."""
    spot_max_price: StrictFloat | None = None
    """The maximum price of a Spot node in US dollars an hour; -1 is the on-demand price."""
    upgrade_settings: PoolUpgradeSettings | None = None
    kubelet_config: KubeletConfig | None = None
    linux_os_config: LinuxOsConfig | None = None
    enable_encryption_at_host: Flag = None
    """Disks and caches are encrypted on the host."""
    enable_fips: Flag = None
    """Nodes run an image with validated cryptography."""
    enable_ultra_ssd: Flag = None
    """Nodes can use Ultra disks."""
    enable_node_public_ip: Flag = None
    """Each node has a public address."""
    node_public_ip_prefix_id: PrefixId | None = None
    """The prefix that these addresses come from."""
    proximity_placement_group_id: (
        Annotated[
            StrictStr,
            resource("Microsoft.Compute", "proximityPlacementGroups", "a proximity placement group"),
        ]
        | None
    ) = None
    """Nodes are placed near each other."""
    host_group_id: (
        Annotated[StrictStr, resource("Microsoft.Compute", "hostGroups", "a dedicated host group")] | None
    ) = None
    """Nodes run on dedicated hosts."""
    capacity_reservation_group_id: (
        Annotated[
            StrictStr,
            resource("Microsoft.Compute", "capacityReservationGroups", "a capacity reservation group"),
        ]
        | None
    ) = None
    """Nodes use reserved capacity."""
    gpu_instance_profile: Literal["MIG1g", "MIG2g", "MIG3g", "MIG4g", "MIG7g"] | None = None
    """How each NVIDIA GPU is divided."""
    gpu_profile: GpuProfile | None = None
    workload_runtime: (
        Annotated[
            Literal["OCIContainer", "KataVmIsolation"],
            retired({"WasmWasi": "run WebAssembly with SpinKube on OCIContainer, or remove this line"}),
        ]
        | None
    ) = None
    """The runtime of the pods."""
    message_of_the_day: Annotated[StrictStr, rule(BASE64, "a string encoded in base64")] | None = None
    """The message that users see when they sign in on a node."""
    creation_data: CreationData | None = None
    network_profile: PoolNetworkProfile | None = None
    security_profile: PoolSecurityProfile | None = None
    windows_profile: PoolWindowsProfile | None = None
    gateway_profile: GatewayProfile | None = None
    artifact_streaming_profile: Switch | None = None
    """Containers start before their image is complete."""
    local_dns_profile: LocalDnsProfile | None = None


class PoolAzure(Manifest):
    """Properties of ARM for which the manifest has no field yet."""

    properties: Annotated[
        dict[StrictStr, JsonValue],
        only_untyped(
            (PoolProperties,),
            "pool",
            {"enableAutoScaling": "minCount and maxCount", "name": "name"},
            COMMANDS_OF_POOLS,
        ),
    ]
    """Any JSON object; it is merged into ARM's properties of the pool last."""


class NodePool(PoolProperties):
    """A node pool."""

    name: PoolName
    """The pool's name; a new name is a new pool."""
    rollback: PoolRollback | None = None
    azure: PoolAzure | None = None

    @property
    def autoscaling(self) -> bool:
        """Whether the cluster autoscaler owns the count."""
        machines = self.virtual_machines_profile
        return self.max_count is not None or bool(machines and machines.scale.autoscale)

    @property
    def of_machines(self) -> bool:
        """Whether the nodes are single virtual machines."""
        return self.type == "VirtualMachines"

    @property
    def stopped(self) -> bool:
        """Whether git wants the pool to be stopped."""
        return self.power_state is not None and self.power_state.code == "Stopped"

    @model_validator(mode="after")
    def _rolls_back_to_a_patch(self) -> Self:
        if self.rollback is not None and len(numbers(self.orchestrator_version or "")) != 3:
            raise ValueError(
                "rollback goes with the orchestratorVersion that Azure lists with its image, such as 1.36.2"
            )
        return self

    @model_validator(mode="after")
    def _sized_one_way(self) -> Self:
        if self.count is not None and (self.min_count is not None or self.max_count is not None):
            raise ValueError("has both count and minCount/maxCount; keep one (count: null removes a default)")
        if (self.min_count is None) != (self.max_count is None):
            raise ValueError("minCount and maxCount go together; add the other one")
        if self.count is None and self.max_count is None and not self.of_machines:
            raise ValueError("needs a size: count, or minCount and maxCount for the autoscaler")
        if self.min_count is not None and self.max_count is not None and self.min_count > self.max_count:
            raise ValueError(
                f"minCount {self.min_count} is more than maxCount {self.max_count}; raise maxCount or "
                "lower minCount"
            )
        machines = self.virtual_machines_profile
        least = machines.scale.least if machines else None
        if self.mode == "System" and 0 in (self.count, self.min_count, least):
            raise ValueError("a System pool needs at least one node")
        return self

    @model_validator(mode="after")
    def _mode_fits(self) -> Self:
        windows = self.os_type == "Windows"
        if self.mode != "User" and windows:
            raise ValueError(f"a {self.mode} pool runs Linux; osType: Windows goes with mode: User")
        if self.mode != "User" and self.scale_set_priority == "Spot":
            raise ValueError(
                f"a {self.mode} pool cannot be Spot; scaleSetPriority: Spot goes with mode: User"
            )
        if self.mode == "System" and self.stopped:
            raise ValueError("a System pool cannot be stopped; powerState goes with mode: User or Gateway")
        if self.mode == "Gateway" and self.autoscaling:
            raise ValueError("a Gateway pool has a fixed count; the autoscaler does not serve it")
        if (self.gateway_profile is not None) and self.mode != "Gateway":
            raise ValueError("gatewayProfile goes with mode: Gateway")
        return self

    @model_validator(mode="after")
    def _system_fits(self) -> Self:
        windows = self.os_type == "Windows"
        if windows and len(self.name) > 6:
            raise ValueError(
                f"the name of a Windows pool has at most 6 characters, {self.name} has {len(self.name)}"
            )
        if self.os_sku and self.os_sku.startswith("Windows") != windows:
            right = "Windows" if self.os_sku.startswith("Windows") else "Linux"
            raise ValueError(f"osSKU: {self.os_sku} goes with osType: {right}")
        if self.os_sku == "Windows2025" and not self.enable_fips:
            raise ValueError("osSKU: Windows2025 needs enableFIPS: true")
        if windows and _is_set(self.linux_os_config):
            raise ValueError("linuxOSConfig is for Linux nodes")
        settings = self.kubelet_config
        kubelet = settings.model_dump(by_alias=True, exclude_none=True) if settings else {}
        linux_only = sorted(kubelet.keys() - KUBELET_OF_WINDOWS)
        if windows and linux_only:
            raise ValueError(
                f"kubeletConfig.{linux_only[0]} is for Linux nodes; Windows nodes have "
                f"{', '.join(sorted(KUBELET_OF_WINDOWS))}"
            )
        if _is_set(self.windows_profile) and not windows:
            raise ValueError("windowsProfile goes with osType: Windows")
        return self

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        spot = self.scale_set_priority == "Spot"
        if not spot and (self.scale_set_eviction_policy or self.spot_max_price is not None):
            raise ValueError("scaleSetEvictionPolicy and spotMaxPrice go with scaleSetPriority: Spot")
        if self.spot_max_price is not None and self.spot_max_price != -1 and self.spot_max_price <= 0:
            raise ValueError(
                f"spotMaxPrice must be -1 (the on-demand price) or more than 0, got {self.spot_max_price}"
            )
        if self.spot_max_price is not None and round(self.spot_max_price, 5) != self.spot_max_price:
            raise ValueError(f"spotMaxPrice has at most five decimal places, got {self.spot_max_price}")
        if self.node_public_ip_prefix_id and not self.enable_node_public_ip:
            raise ValueError("nodePublicIPPrefixID needs enableNodePublicIP: true")
        if self.pod_subnet_id and not self.vnet_subnet_id:
            raise ValueError("podSubnetID needs vnetSubnetID")
        return self


def _is_set(part: Manifest | None) -> bool:
    """Return whether an object sets any field; a layer may have ``{}``."""
    return part is not None and _has_value(part.model_dump(exclude_none=True))


def _has_value(value: object) -> bool:
    return any(map(_has_value, value.values())) if isinstance(value, dict) else value is not None
