"""The Azure operations for existing clusters: versions, upgrades, node images, maintenance windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.arm_errors import ArmError, no_pool, no_resource
from localcloud.azure.world.arm_resources import WriteAnswer
from localcloud.azure.world.azure_engine import AzureEngine
from localcloud.azure.world.body_shapes import read_maintenance
from localcloud.azure.world.catalog import (
    DEFAULT_VERSION,
    NODE_IMAGES,
    OFFERED,
    POOL_LAG,
    REGIONS,
    parse,
    region,
    support_plans,
    upgrades,
)
from localcloud.azure.world.clusters.maintenance import maintenance_document
from localcloud.azure.world.completions import set_state
from localcloud.azure.world.pools.rollbacks import recently_used
from localcloud.common.json_copy import copied
from shared.json_tree import Json
from shared.resource_ids import ClusterId


class MaintenanceRequests:
    """The requests about versions and maintenance."""

    engine: AzureEngine
    withheld: set[str]
    """The versions of Kubernetes, of node images and of Flux that no list has yet: Azure gives one region
    after another a new one."""

    def list_versions(self, subscription: str, location: str) -> Json:
        """Return the Kubernetes versions that a region offers."""
        with self.engine.request(subscription, limits.ARM_READ, limits.ANY_OTHER):
            if region(location) not in REGIONS:
                message = f"The provided location '{location}' is not available."
                raise ArmError(400, "LocationNotAvailableForResourceType", message)
            offered = [version for version in OFFERED if version not in self.withheld]
            minors = dict.fromkeys(version.rpartition(".")[0] for version in offered)
            return {"values": [_minor(minor, offered) for minor in minors]}

    def get_upgrade_profile(self, cluster: ClusterId) -> Json:
        """Return what the control plane and each pool may be upgraded to."""
        with self.engine.request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            existing = self.engine.cluster(cluster)
            control_plane = existing.properties["currentKubernetesVersion"]
            pools = [_of_pool(pool, control_plane) for pool in existing.pools.values()]
            return {
                "id": f"{existing.id.resource}/upgradeProfiles/default",
                "name": "default",
                "type": "Microsoft.ContainerService/managedClusters/upgradeProfiles",
                "properties": {
                    "controlPlaneProfile": _profile("Linux", control_plane, upgrades(control_plane)[1:]),
                    "agentPoolProfiles": pools,
                },
            }

    def get_pool_upgrade_profile(self, cluster: ClusterId, pool: str) -> Json:
        """Return what a pool may be upgraded or rolled back to, and the newest node image."""
        with self.engine.request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            existing = self.engine.cluster(cluster)
            resource = f"{existing.id.resource}/agentPools/{pool}"
            if pool not in existing.pools:
                raise no_pool(existing.id.name, pool)
            found = existing.pools[pool]
            profile = dict(_of_pool(found, existing.properties["currentKubernetesVersion"]))
            del profile["name"]
            recent = recently_used(found)
            if recent:
                profile["recentlyUsedVersions"] = recent
            return {
                "id": f"{resource}/upgradeProfiles/default",
                "name": "default",
                "type": "Microsoft.ContainerService/managedClusters/agentPools/upgradeProfiles",
                "properties": {**profile, "latestNodeImageVersion": self._newest_image()},
            }

    def _newest_image(self) -> str:
        return [image for image in NODE_IMAGES if image.rpartition("-")[2] not in self.withheld][-1]

    def list_pool_versions(self, cluster: ClusterId) -> Json:
        """Return the versions that a new pool of a cluster may have."""
        with self.engine.request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            existing = self.engine.cluster(cluster)
            current = existing.properties["currentKubernetesVersion"]
            fit = [
                v
                for v in OFFERED
                if parse(v) <= parse(current) and parse(current)[1] - parse(v)[1] <= POOL_LAG
            ]
            versions = [
                {"default": v == current, "kubernetesVersion": v} for v in dict.fromkeys([*fit, current])
            ]
            return {
                "id": f"{existing.id.resource}/availableAgentPoolVersions",
                "name": "default",
                "type": "Microsoft.ContainerService/managedClusters/availableAgentPoolVersions",
                "properties": {"agentPoolVersions": versions},
            }

    def upgrade_node_image(self, cluster: ClusterId, pool: str) -> WriteAnswer:
        """Start to upgrade a pool to the newest node image; 304 when it has that image."""
        with self.engine.request(cluster.subscription, limits.ARM_WRITE, limits.ANY_OTHER) as now:
            existing = self.engine.cluster(cluster)
            resource = f"{existing.id.resource}/agentPools/{pool}"
            found = existing.pools.get(pool)
            if found is None:
                raise no_pool(existing.id.name, pool)
            self.engine.require_ready(existing)
            if found["nodeImageVersion"] == NODE_IMAGES[-1]:
                return WriteAnswer("", resource, 304)
            operation = self.engine.begin(existing, "upgrade-pool", now, pool)
            set_state(found, "UpgradingNodeImageVersion", self.engine.schedule.unique())
            view = copied(existing.pool_view(pool))
            return self.engine.accept(WriteAnswer("upgrade-pool", resource, 202, view, operation))

    def list_maintenance(self, cluster: ClusterId) -> list[Json]:
        """Return all maintenance configurations of a cluster."""
        with self.engine.request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            return [copied(found) for found in self.engine.cluster(cluster).maintenance.values()]

    def get_maintenance(self, cluster: ClusterId, name: str) -> Json:
        """Return a maintenance configuration."""
        with self.engine.request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            existing = self.engine.cluster(cluster)
            if name not in existing.maintenance:
                raise no_resource(f"{existing.id.resource}/maintenanceConfigurations/{name}")
            return copied(existing.maintenance[name])

    def put_maintenance(self, cluster: ClusterId, name: str, body: Json) -> WriteAnswer:
        """Create or replace a maintenance configuration, at once."""
        with self.engine.request(cluster.subscription, limits.ARM_WRITE, limits.ANY_OTHER) as now:
            existing = self.engine.cluster(cluster)
            document = maintenance_document(existing.id, name, read_maintenance(body), now.date())
            return self.engine.store("put-maintenance", existing.maintenance, name, document)

    def delete_maintenance(self, cluster: ClusterId, name: str) -> WriteAnswer:
        """Delete a maintenance configuration, at once."""
        with self.engine.request(cluster.subscription, limits.ARM_DELETE, limits.ANY_OTHER):
            existing = self.engine.cluster(cluster)
            resource = f"{existing.id.resource}/maintenanceConfigurations/{name}"
            return self.engine.drop("delete-maintenance", existing.maintenance, name, resource)


def _minor(minor: str, offered: Sequence[str]) -> Json:
    patches = [version for version in offered if parse(version)[:2] == parse(minor)]
    return {
        "version": minor,
        **({"isDefault": True} if minor == DEFAULT_VERSION else {}),
        "capabilities": {"supportPlan": support_plans(minor)},
        "patchVersions": {version: {"upgrades": upgrades(version)[1:]} for version in patches},
    }


def _profile(os_type: str, version: str, ahead: list[str]) -> dict[str, Any]:
    profile: dict[str, Any] = {"kubernetesVersion": version, "osType": os_type}
    return profile | ({"upgrades": [{"kubernetesVersion": v} for v in ahead]} if ahead else {})


def _of_pool(pool: Json, control_plane: str) -> Json:
    current = pool["currentOrchestratorVersion"]
    ahead = [version for version in upgrades(current)[1:] if parse(version) <= parse(control_plane)]
    return {"name": pool["name"], **_profile(pool["osType"], current, ahead)}
