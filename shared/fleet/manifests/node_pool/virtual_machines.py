"""The sizes of a node pool of single virtual machines."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StrictInt, model_validator

from shared.fleet.manifests.arm_types import Section, between
from shared.fleet.manifests.base import VmSize


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
        sizes = [size.lower() for size in self.sizes]
        if len(set(sizes)) < len(sizes):
            raise ValueError("has a size twice; keep one entry per size")
        return self

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes of the nodes."""
        return (*(each.size for each in self.manual), *(each.size for each in self.autoscale))

    @property
    def least(self) -> int:
        """The minimum number of nodes."""
        return sum(each.count for each in self.manual) + sum(each.min_count for each in self.autoscale)


class VirtualMachinesProfile(Section):
    """The nodes of a pool with type: VirtualMachines."""

    scale: ScaleProfile
    """The sizes and numbers of nodes."""
