"""The operations on clusters.

Each profile in ``properties.agentPoolProfiles`` has its own ``eTag``; an operation on a pool changes only
that one, an operation on the cluster both (learn.microsoft.com/azure/aks/use-etags). So the cluster's does
not protect its pools: a PUT of an existing cluster leaves ``agentPoolProfiles`` out, and AKS then leaves the
pools as they are (github.com/Azure/AKS/pull/2889).
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field

from shared.fleet.json_tree import Json
from shared.fleet.resource_ids import ClusterId, SubscriptionId
from shared.jobs.failures.errors import Dependency, Unavailable
from shared.jobs.rate_limits import AKS_OTHER, ARM_DELETE, ARM_READ, ARM_WRITE
from shared.ports.azure.calls import AzureCall, PageCall, Write

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
class ListClusters(PageCall):
    """Return a page of the clusters of a subscription, each as ``GetCluster`` returns it."""

    sdk, limits = "managed_clusters.list", (ARM_READ,)
    needs = _NEEDS
    target: SubscriptionId


@dataclass(frozen=True)
class PutCluster(Conditional):
    """Start to create or update the cluster."""

    sdk, limits = "managed_clusters.begin_create_or_update", (ARM_WRITE,)
    target: ClusterId
    body: Json


@dataclass(frozen=True)
class PatchCluster(Conditional):
    """Start to replace the tags of the cluster, and nothing else; ``body`` has ``tags``."""

    sdk, limits = "managed_clusters.begin_update_tags", (AKS_OTHER, ARM_WRITE)
    target: ClusterId
    body: Json


@dataclass(frozen=True)
class DeleteCluster(Conditional):
    """Start to delete the cluster."""

    sdk, limits = "managed_clusters.begin_delete", (AKS_OTHER, ARM_DELETE)
    absent_is_fine = True
    target: ClusterId


@dataclass(frozen=True)
class StartCluster(Write):
    """Start to start a cluster that is stopped. Azure checks no condition: it was read a moment ago."""

    sdk, limits = "managed_clusters.begin_start", (AKS_OTHER, ARM_WRITE)
    target: ClusterId

    @property
    def relies_on(self) -> GetCluster:
        """The read that shows whose cluster it is, and that it is stopped."""
        return GetCluster(self.target)


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
