"""The operations on resource groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.fleet.json_tree import Json
from shared.fleet.resource_ids import GroupId
from shared.jobs.rate_limits import ARM_DELETE, ARM_READ, ARM_WRITE
from shared.ports.azure.calls import AzureCall, Write


@dataclass(frozen=True)
class GetGroup(AzureCall[Json | None]):
    """Return the group (``location``, ``tags``, ``properties.provisioningState``), or None."""

    service, sdk, limits = "resource", "resource_groups.get", (ARM_READ,)
    absent_is_fine = True
    needs = ("id", "name", "location")
    target: GroupId


@dataclass(frozen=True)
class ListResources(AzureCall[Sequence[str]]):
    """Return the resource ids inside the group; empty when the group does not exist."""

    service, sdk, limits = "resource", "resources.list_by_resource_group", (ARM_READ,)
    absent_is_fine = True
    needs = ("id",)
    target: GroupId

    def result(self, answer: Sequence[Json] | None) -> Sequence[str]:
        """Return the ids of the resources."""
        return [str(resource["id"]) for resource in answer or ()]


@dataclass(frozen=True)
class PutGroup(Write):
    """Create or overwrite the group: ARM takes no condition. ``body`` has ``location`` and ``tags``."""

    service, sdk, limits = "resource", "resource_groups.create_or_update", (ARM_WRITE,)
    target: GroupId
    body: Json


@dataclass(frozen=True)
class DeleteGroup(Write):
    """Start to delete the group with its content; no condition protects it, so its read must be fresh."""

    service, sdk, limits = "resource", "resource_groups.begin_delete", (ARM_DELETE,)
    absent_is_fine = True
    target: GroupId

    @property
    def relies_on(self) -> ListResources:
        """The read of the group's content."""
        return ListResources(self.target)
