"""Node pools."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, model_validator

from shared.fleet.manifests.base import Labels, Manifest, PoolName, SubnetId, Taint, VmSize


class NodePool(Manifest):
    """A node pool; a fixed ``count``, or ``minCount`` and ``maxCount`` for the cluster autoscaler."""

    name: PoolName
    mode: Literal["System", "User"] = "User"
    vm_size: VmSize
    count: Annotated[StrictInt, Field(ge=0, le=1000)] | None = None
    min_count: Annotated[StrictInt, Field(ge=0, le=1000)] | None = None
    max_count: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    availability_zones: tuple[Literal["1", "2", "3"], ...] = ()
    node_labels: Labels = Field(default_factory=dict)
    node_taints: tuple[Taint, ...] = ()
    vnet_subnet_id: SubnetId | None = Field(default=None, alias="vnetSubnetID")
    os_disk_size_gb: Annotated[StrictInt, Field(ge=30, le=2048)] | None = Field(
        default=None, alias="osDiskSizeGB"
    )
    max_pods: Annotated[StrictInt, Field(ge=10, le=250)] | None = None

    @property
    def autoscaling(self) -> bool:
        """Whether the cluster autoscaler owns the count."""
        return self.max_count is not None

    @model_validator(mode="after")
    def _sized_one_way(self) -> Self:
        if self.count is not None and (self.min_count is not None or self.max_count is not None):
            raise ValueError(
                "has both count and minCount/maxCount; keep one (count: null takes a default away)"
            )
        if (self.min_count is None) != (self.max_count is None):
            raise ValueError("minCount and maxCount go together; add the other one")
        if self.count is None and self.max_count is None:
            raise ValueError("needs a size: count, or minCount and maxCount for the autoscaler")
        if self.min_count is not None and self.max_count is not None and self.min_count > self.max_count:
            raise ValueError(f"minCount {self.min_count} is more than maxCount {self.max_count}")
        if self.mode == "System" and (self.count == 0 or self.min_count == 0):
            raise ValueError("a System pool needs at least one node")
        return self
