"""Parts of a node pool: upgrades, security, GPU, gateway, images, single virtual machines."""

from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from shared.language.model.arm_types import Flag, Section, UtcMoment, between, resource
from shared.language.model.base import VmSize, rule, twice

Surge = Annotated[
    StrictStr, rule(r"[0-9]{1,4}|([0-9]|[1-9][0-9]|100)%", 'a number or percentage in quotes, such as "33%"')
]


class PoolUpgradeSettings(Section):
    """How nodes are replaced in an upgrade."""

    max_surge: Surge | None = None
    """How many nodes, or what percentage of the pool, are added during an upgrade."""
    max_unavailable: Surge | None = None
    """How many nodes, or what percentage of the pool, may be unavailable during an upgrade."""
    drain_timeout_in_minutes: Annotated[StrictInt, between(5, 1440)] | None = None
    """How many minutes the drain of a node may take."""
    node_soak_duration_in_minutes: Annotated[StrictInt, between(0, 30)] | None = None
    """How many minutes to wait between two nodes."""
    undrainable_node_behavior: Literal["Cordon", "Schedule"] | None = None
    """What happens to a node that cannot be drained."""

    @model_validator(mode="after")
    def _some_node_can_be_replaced(self) -> Self:
        if _is_zero(self.max_surge) and (self.max_unavailable is None or _is_zero(self.max_unavailable)):
            raise ValueError('maxSurge: "0" needs maxUnavailable above 0, so that an upgrade replaces nodes')
        return self


def _is_zero(surge: str | None) -> bool:
    return surge is not None and int(surge.rstrip("%")) == 0


class PoolRollback(Section):
    """A rollback of the pool to what it ran before its last upgrade; it is carried out once.

    `roadstead rollback` proposes it. It needs the pool's `orchestratorVersion`, which is the version that it
    goes back to.
    """

    node_image_version: Annotated[
        StrictStr, rule(r"AKS[A-Za-z0-9.-]{1,120}", "a version of a node image as Azure shows it")
    ]
    """The node image that the pool ran with `orchestratorVersion`, as Azure lists it."""
    last_used: UtcMoment
    """Until when the pool ran both, as Azure lists it: this names the upgrade that is undone."""


class PoolSecurityProfile(Section):
    """Trusted launch and SSH."""

    enable_vtpm: Flag = None
    """Nodes have a virtual TPM (trusted launch)."""
    enable_secure_boot: Flag = None
    """Nodes boot only signed code (trusted launch)."""
    ssh_access: Literal["LocalUser", "Disabled", "EntraId"] | None = None
    """Who can sign in on nodes with SSH."""


class Nvidia(Section):
    """Who manages NVIDIA's components."""

    management_mode: Literal["Unmanaged", "Managed"]
    """Whether AKS manages the components."""


class GpuProfile(Section):
    """Drivers of GPUs."""

    driver: Literal["Install", "None"] | None = None
    """Whether AKS installs the driver."""
    nvidia: Nvidia | None = None


class GatewayProfile(Section):
    """A pool for static egress."""

    public_ip_prefix_size: Annotated[StrictInt, between(28, 31)] | None = None
    """The length of the prefix of the pool's public addresses."""


class CreationData(Section):
    """The snapshot that a pool is created from."""

    source_resource_id: Annotated[
        StrictStr, resource("Microsoft.ContainerService", "snapshots", "a node pool snapshot")
    ]
    """The snapshot."""


class PowerState(Section):
    """Whether a pool other than a System pool runs; Azure charges nothing for the nodes of a stopped one."""

    code: Literal["Running", "Stopped"]
    """Stopped stops all nodes, which Roadstead does not drain; Running starts as many as there were."""


class ManualScale(Section):
    """A fixed number of nodes of one size."""

    size: VmSize
    """The size of the nodes."""
    count: Annotated[StrictInt, between(0, 1000)]
    """The number of nodes."""


class AutoScale(Section):
    """A range of nodes of one size for the cluster autoscaler."""

    size: VmSize
    """The size of the nodes."""
    min_count: Annotated[StrictInt, between(0, 1000)]
    """The minimum number of nodes."""
    max_count: Annotated[StrictInt, between(1, 1000)]
    """The maximum number of nodes."""

    @model_validator(mode="after")
    def _range(self) -> Self:
        if self.min_count > self.max_count:
            raise ValueError(
                f"minCount {self.min_count} is more than maxCount {self.max_count}; raise maxCount or "
                "lower minCount"
            )
        return self


class ScaleProfile(Section):
    """The sizes, either with fixed numbers or with ranges."""

    manual: Annotated[tuple[ManualScale, ...], Field(max_length=5)] = ()
    """Fixed numbers of nodes, one entry per size."""
    autoscale: Annotated[tuple[AutoScale, ...], Field(max_length=5)] = ()
    """Ranges for the cluster autoscaler, one entry per size."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.manual) == bool(self.autoscale):
            raise ValueError("needs either manual or autoscale; keep one of the two")
        if twice(size.lower() for size in self.sizes) is not None:
            raise ValueError("has a size twice; keep one entry per size")
        return self

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes of the nodes."""
        return (*(profile.size for profile in self.manual), *(profile.size for profile in self.autoscale))

    @property
    def least(self) -> int:
        """The minimum number of nodes."""
        return sum(profile.count for profile in self.manual) + sum(
            profile.min_count for profile in self.autoscale
        )


class VirtualMachinesProfile(Section):
    """The nodes of a pool with type: VirtualMachines."""

    scale: ScaleProfile
    """The sizes and numbers of nodes."""
