"""The operations on node pools."""

from __future__ import annotations

from dataclasses import dataclass

from shared.fleet.json_tree import Json
from shared.fleet.resource_ids import ClusterId
from shared.jobs.rate_limits import AKS_OTHER, ARM_DELETE, ARM_WRITE
from shared.ports.azure.calls import Write
from shared.ports.azure.clusters import Conditional


@dataclass(frozen=True)
class PutPool(Conditional):
    """Start to create or update one agent pool; ``body`` has ``properties``."""

    sdk, limits = "agent_pools.begin_create_or_update", (ARM_WRITE,)
    target: ClusterId
    pool: str
    body: Json


@dataclass(frozen=True)
class DeletePool(Conditional):
    """Start to delete one agent pool."""

    sdk, limits = "agent_pools.begin_delete", (AKS_OTHER, ARM_DELETE)
    absent_is_fine = True
    target: ClusterId
    pool: str


@dataclass(frozen=True)
class UpgradeNodeImage(Write):
    """Start to bring one agent pool to the newest node image, unless it has that image already."""

    sdk, limits = "agent_pools.begin_upgrade_node_image_version", (AKS_OTHER, ARM_WRITE)
    target: ClusterId
    pool: str
