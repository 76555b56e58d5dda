"""The operations on clusters, their node pools, versions and maintenance windows, and on resource groups.

Each profile in ``properties.agentPoolProfiles`` has its own ``eTag``; an operation on a pool changes only
that one, an operation on the cluster both (learn.microsoft.com/azure/aks/use-etags). So the cluster's does
not protect its pools: a PUT of an existing cluster leaves ``agentPoolProfiles`` out, and AKS then leaves the
pools as they are (github.com/Azure/AKS/pull/2889).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from shared.azure.rate_limits import AKS_OTHER, ARM_DELETE, ARM_READ, ARM_WRITE, IN_NETWORK, Limit
from shared.cluster.failures.errors import Dependency, Unavailable
from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.ports.azure.calls import AzureCall, NamedList, PageCall, Request, Write
from shared.resource_ids import ClusterId, GroupId, RegionId, SubscriptionId

_TAGS_VERSION = "2021-04-01"
_GROUP = "/subscriptions/{target.subscription}/resourceGroups/{target.name}"
_TAGS = f"{_GROUP}/providers/Microsoft.Resources/tags/default"
"""A right on these is none on the group (Microsoft's "Tags - Update At Scope")."""
_NETWORK = re.compile(
    "/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft.Network/virtualNetworks/([^/]+)/",
    re.IGNORECASE,
)
_NEEDS = ("id", "name", "location", "properties", "properties.agentPoolProfiles[].name")


@dataclass(frozen=True)
class GetCluster(AzureCall[Json | None]):
    """Return the cluster with its ``properties.agentPoolProfiles``, or None."""

    sdk, limits = "managed_clusters.get", (ARM_READ,)
    absent_is_fine = True
    needs = _NEEDS
    target: ClusterId


@dataclass(frozen=True)
class Conditional(Write):
    """A write to a cluster, or in it, with a condition; Azure responds with a conflict when it does not hold.

    With an ``etag`` the resource must have that version (``If-Match``). With ``only_new`` it must not exist
    yet (``If-None-Match: *``). With neither there is no condition: for a resource that exists and shows no
    version, as with an older API version. The cluster must then have been read a moment ago.
    """

    target: ClusterId
    etag: str | None = field(kw_only=True)
    only_new: bool = field(default=False, kw_only=True)

    @property
    def relies_on(self) -> GetCluster | None:
        """The read of the cluster, which shows the pools too, where no condition protects the write."""
        return None if self.etag or self.only_new else GetCluster(self.target)


@dataclass(frozen=True)
class Unconditional(Write):
    """A write to a cluster, or below it, of which Azure checks no condition: it was read a moment ago."""

    target: ClusterId

    @property
    def relies_on(self) -> GetCluster:
        """The read that shows whose cluster it is, and how it is."""
        return GetCluster(self.target)


@dataclass(frozen=True)
class ListClusters(PageCall):
    """Return a page of the clusters of a subscription, each as ``GetCluster`` returns it."""

    sdk, limits = "managed_clusters.list", (ARM_READ,)
    needs = _NEEDS
    target: SubscriptionId


@dataclass(frozen=True)
class PutCluster(Conditional):
    """Start to create or update the cluster."""

    sdk, limits = "managed_clusters.begin_create_or_update", (ARM_WRITE,)
    body: Json

    @property
    def turns(self) -> Sequence[tuple[Limit, str]]:
        """Creations in one virtual network come one after the other, whatever commit or replay wants them."""
        pools = self.body["properties"].get("agentPoolProfiles") or () if self.only_new else ()
        found = (_NETWORK.match(pool.get("vnetSubnetID") or "") for pool in pools)
        names = {"{2} in {1} of {0}".format(*match.groups()).lower() for match in found if match}
        return [(IN_NETWORK, name) for name in sorted(names)]


@dataclass(frozen=True)
class PatchCluster(Conditional):
    """Start to replace the tags of the cluster, and nothing else; ``body`` has ``tags``."""

    sdk, limits = "managed_clusters.begin_update_tags", (AKS_OTHER, ARM_WRITE)
    body: Json


@dataclass(frozen=True)
class DeleteCluster(Conditional):
    """Start to delete the cluster."""

    sdk, limits = "managed_clusters.begin_delete", (AKS_OTHER, ARM_DELETE)
    absent_is_fine = True


@dataclass(frozen=True)
class StartCluster(Unconditional):
    """Start to start a cluster that is stopped."""

    sdk, limits = "managed_clusters.begin_start", (AKS_OTHER, ARM_WRITE)


@dataclass(frozen=True)
class StopCluster(Unconditional):
    """Start to stop a cluster that runs."""

    sdk, limits = "managed_clusters.begin_stop", (AKS_OTHER, ARM_WRITE)


@dataclass(frozen=True)
class GetKubeconfig(AzureCall[str]):
    """Return a kubeconfig for the cluster (YAML). A secret: never store, log or show it."""

    sdk, limits = "managed_clusters.list_cluster_user_credentials", (AKS_OTHER, ARM_READ)
    target: ClusterId

    def result(self, answer: Json) -> str:
        """Decode the first kubeconfig."""
        for kubeconfig in answer.get("kubeconfigs") or ():
            if kubeconfig.get("value"):
                try:
                    return b64decode(kubeconfig["value"]).decode()
                except ValueError:  # not chained: it may have a part of the credential
                    raise Unavailable("Azure gave a kubeconfig that cannot be read") from None
        raise Dependency("Azure has no credentials for the cluster yet")


# The operations on resource groups.


@dataclass(frozen=True)
class GetTags(AzureCall[Mapping[str, str]]):
    """Return the tags of a resource group."""

    request, limits = Request("GET", _TAGS, _TAGS_VERSION), (ARM_READ,)
    needs = ("properties",)
    target: GroupId

    def result(self, answer: Json) -> Mapping[str, str]:
        """Return the tags; a group may have none."""
        tags = answer["properties"].get("tags") or {}
        if not isinstance(tags, Mapping):
            raise Unavailable(f"Azure shows no object as the tags of {self.target.name}")
        return {name: str(value) for name, value in tags.items()}


@dataclass(frozen=True)
class PatchTags(Write):
    """Set some tags of a resource group and leave the others, at once.

    ``body`` has ``operation``, which is "Merge", and ``properties.tags``.
    """

    request, limits = Request("PATCH", _TAGS, _TAGS_VERSION), (ARM_WRITE,)
    target: GroupId
    body: Json


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


# Azure's activity log: who wrote to the clusters of a subscription, and when.
#
# Source: learn.microsoft.com/azure/azure-monitor/platform/rest-activity-log, and activityLogs_API.json of
# azure-rest-api-specs (2015-04-01), which allows these forms of a filter and no other. It has no ``caller``
# among the fields that can be selected, so whole events come.

PROVIDER = "Microsoft.ContainerService"
_EVENTS = "/subscriptions/{target.subscription}/providers/microsoft.insights/eventtypes/management/values"


def events_between(after: datetime, before: datetime) -> str:
    """Return the filter of the events of AKS between two times."""
    begin, end = (moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for moment in (after, before))
    times = f"eventTimestamp ge '{begin}' and eventTimestamp le '{end}'"
    return f"{times} and resourceProvider eq '{PROVIDER}'"


@dataclass(frozen=True)
class ListActivity(PageCall):
    """Return a page of the events of a subscription that a filter leaves, the newest first.

    Each has ``caller``, ``eventTimestamp``, ``resourceId``, ``operationName.value`` and ``status.value``.
    """

    request, limits = Request("LIST", _EVENTS, "2015-04-01", {"$filter": "{filter}"}), (ARM_READ,)
    target: SubscriptionId
    filter: str


@dataclass(frozen=True)
class PutPool(Conditional):
    """Start to create or update one agent pool; ``body`` has ``properties``."""

    sdk, limits = "agent_pools.begin_create_or_update", (ARM_WRITE,)
    pool: str
    body: Json


@dataclass(frozen=True)
class DeletePool(Conditional):
    """Start to delete one agent pool."""

    sdk, limits = "agent_pools.begin_delete", (AKS_OTHER, ARM_DELETE)
    absent_is_fine = True
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
class ListMaintenance(NamedList):
    """Return the cluster's maintenance configurations by name; raise Dependency when it does not exist."""

    sdk, limits = "maintenance_configurations.list_by_managed_cluster", (AKS_OTHER, ARM_READ)
    target: ClusterId


@dataclass(frozen=True)
class PutMaintenance(Write):
    """Create or replace a maintenance configuration, at once; ``body`` has ``properties``."""

    sdk, limits = "maintenance_configurations.create_or_update", (AKS_OTHER, ARM_WRITE)
    target: ClusterId
    configuration: str
    body: Json
