"""The operations on node pools, versions and maintenance windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.azure.rate_limits import AKS_OTHER, ARM_DELETE, ARM_READ, ARM_WRITE
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.ports.azure.calls import AzureCall, Write
from shared.ports.azure.clusters import Conditional
from shared.resource_ids import ClusterId, RegionId


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


# The operations on versions and maintenance windows.


@dataclass(frozen=True)
class GetUpgradeProfile(AzureCall[Json]):
    """Return what the cluster may be upgraded to; raise Dependency when it does not exist.

    ``properties.controlPlaneProfile`` and each of ``properties.agentPoolProfiles`` (by ``name``) have
    ``kubernetesVersion`` ("1.36.2", as it is now) and ``upgrades`` ([{"kubernetesVersion": "1.36.3"}],
    with "isPreview": true for previews); no ``upgrades`` when there are none.
    """

    sdk, limits = "managed_clusters.get_upgrade_profile", (AKS_OTHER, ARM_READ)
    needs = ("properties",)
    target: ClusterId


@dataclass(frozen=True)
class GetPoolUpgradeProfile(AzureCall[Json]):
    """Return what one node pool may be upgraded or rolled back to; raise Dependency when it does not exist.

    ``properties.latestNodeImageVersion`` is the image to which AKS would upgrade it now.
    ``properties.recentlyUsedVersions`` has what it ran before ([{"orchestratorVersion": "1.36.2",
    "nodeImageVersion": "...", "timestamp": "..."}]), in any order; none when there is nothing.
    """

    sdk, limits = "agent_pools.get_upgrade_profile", (AKS_OTHER, ARM_READ)
    needs = ("properties",)
    target: ClusterId
    pool: str


@dataclass(frozen=True)
class ListVersions(AzureCall[Json]):
    """Return the Kubernetes versions that a region offers.

    Each of ``values`` has ``version`` ("1.36"), ``patchVersions`` ({"1.36.2": {"upgrades": ["1.36.3"]}})
    and, where it applies, "isDefault": true or "isPreview": true.
    """

    sdk, limits = "managed_clusters.list_kubernetes_versions", (AKS_OTHER, ARM_READ)
    read_seconds = 4.0
    target: RegionId


@dataclass(frozen=True)
class ListMaintenance(AzureCall[Mapping[str, Json]]):
    """Return the cluster's maintenance configurations by name; raise Dependency when it does not exist."""

    sdk, limits = "maintenance_configurations.list_by_managed_cluster", (AKS_OTHER, ARM_READ)
    needs = ("name", "properties")
    target: ClusterId

    def result(self, answer: Sequence[Json]) -> Mapping[str, Json]:
        """Return the configurations by name."""
        return {str(configuration["name"]): configuration for configuration in answer}


@dataclass(frozen=True)
class PutMaintenance(Write):
    """Create or replace a maintenance configuration, at once; ``body`` has ``properties``."""

    sdk, limits = "maintenance_configurations.create_or_update", (AKS_OTHER, ARM_WRITE)
    target: ClusterId
    configuration: str
    body: Json
