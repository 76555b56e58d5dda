"""Azure as Roadstead uses it: one verb, ``Azure.call``, and one small class for each operation.

A class declares what every layer needs to know of its operation, and no layer repeats it:

- the adapter calls ``sdk`` of the client library of ``service`` with the fields as arguments;
- the lease guard checks the lease before an operation that ``writes``, and the age of ``relies_on``;
- the rate limiter takes a token of each of ``limits``, and records the request id of each write;
- the local cloud answers with the method of its Azure world that has the operation's ``name``;
- fault injection and the tests see the operation itself.

To add an operation, add its class here and call it: CONTRIBUTING.md has an example.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from shared.fleet.json_tree import Json
from shared.fleet.resource_ids import ClusterId, GroupId, RegionId, SubscriptionId
from shared.jobs.failures.errors import Dependency
from shared.jobs.rate_limits import AKS_OTHER, ARM_DELETE, ARM_READ, ARM_WRITE, Limit

T = TypeVar("T")
_NOT_ARGUMENTS = ("target", "etag", "only_new", "page")


@dataclass(frozen=True)
class Written:
    """Azure's response to a write: its id of the request, for support, and whether the resource is new.

    The id is "" in a response without one, which is possible when there was nothing to do.
    """

    request_id: str = ""
    created: bool = False


@dataclass(frozen=True)
class AzureCall(Generic[T]):
    """One operation on a resource, a region or a subscription; a read has only fields that can be hashed.

    ``sdk`` is the operation group and the method in the client library, ``absent_is_fine`` whether a
    resource that does not exist is a result and not an error.
    """

    sdk: ClassVar[str]
    limits: ClassVar[Sequence[Limit]]
    name: ClassVar[str]
    service: ClassVar[Literal["containerservice", "resource", "monitor"]] = "containerservice"
    writes: ClassVar[bool] = False
    absent_is_fine: ClassVar[bool] = False
    target: GroupId | ClusterId | RegionId | SubscriptionId

    def __init_subclass__(cls) -> None:
        """Name the operation after its class: "put_pool"."""
        cls.name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the operation takes after its target, without its condition."""
        return tuple(getattr(self, each.name) for each in fields(self) if each.name not in _NOT_ARGUMENTS)

    @property
    def relies_on(self) -> AzureCall[Any] | None:
        """The read that must be fresh before this write, where Azure itself checks no condition."""
        return None

    def result(self, answer: Any) -> T:
        """Return the result for Azure's response.

        ``answer`` is ARM's document, a list of them, or ``Written``; None where the resource does not exist.
        """
        result: T = answer
        return result

    def __str__(self) -> str:
        return f"{self.name} {'/'.join(astuple(self.target)[1:])}"


@dataclass(frozen=True)
class Write(AzureCall[Written]):
    """A change. Azure starts an operation and returns; ``properties.provisioningState`` shows its end."""

    writes = True

    def result(self, answer: Written | None) -> Written:
        """Return Azure's response; a resource that does not exist needs no delete."""
        return answer or Written()


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
class Page:
    """A page of a list: Azure's documents, and where the next page begins, "" on the last one."""

    documents: Sequence[Json]
    next: str


@dataclass(frozen=True)
class PageCall(AzureCall[Page]):
    """One page of a list, which is one request; ``page`` is the ``next`` of the page before, "" for none."""

    page: str = field(default="", kw_only=True)


class Azure(Protocol):
    """Azure Resource Manager, for resource groups and AKS clusters as ARM JSON."""

    def call(self, operation: AzureCall[T]) -> T:
        """Make the operation's one request and return its result."""
        ...


# Resource groups


@dataclass(frozen=True)
class GetGroup(AzureCall[Json | None]):
    """Return the group (``location``, ``tags``, ``properties.provisioningState``), or None."""

    service, sdk, limits = "resource", "resource_groups.get", (ARM_READ,)
    absent_is_fine = True
    target: GroupId


@dataclass(frozen=True)
class ListResources(AzureCall[Sequence[str]]):
    """Return the resource ids inside the group; empty when the group does not exist."""

    service, sdk, limits = "resource", "resources.list_by_resource_group", (ARM_READ,)
    absent_is_fine = True
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


# Clusters. Each profile in ``properties.agentPoolProfiles`` has its own ``eTag``; an operation on a pool
# changes only that one, an operation on the cluster both (learn.microsoft.com/azure/aks/use-etags). So the
# cluster's does not protect its pools: a PUT of an existing cluster leaves ``agentPoolProfiles`` out, and AKS
# then leaves the pools as they are (github.com/Azure/AKS/pull/2889).


@dataclass(frozen=True)
class GetCluster(AzureCall[Json | None]):
    """Return the cluster with its ``properties.agentPoolProfiles``, or None."""

    sdk, limits = "managed_clusters.get", (ARM_READ,)
    absent_is_fine = True
    target: ClusterId


@dataclass(frozen=True)
class ListClusters(PageCall):
    """Return a page of the clusters of a subscription, each as ``GetCluster`` returns it."""

    sdk, limits = "managed_clusters.list", (ARM_READ,)
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
class GetKubeconfig(AzureCall[str]):
    """Return a kubeconfig for the cluster (YAML). A secret: never store, log or show it."""

    sdk, limits = "managed_clusters.list_cluster_user_credentials", (AKS_OTHER, ARM_READ)
    target: ClusterId

    def result(self, answer: Json) -> str:
        """Decode the first kubeconfig."""
        for kubeconfig in answer.get("kubeconfigs") or ():
            if kubeconfig.get("value"):
                return b64decode(kubeconfig["value"]).decode()
        raise Dependency("Azure has no credentials for the cluster yet")


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


# Versions and maintenance


@dataclass(frozen=True)
class UpgradeNodeImage(Write):
    """Start to bring one agent pool to the newest node image, unless it has that image already."""

    sdk, limits = "agent_pools.begin_upgrade_node_image_version", (AKS_OTHER, ARM_WRITE)
    target: ClusterId
    pool: str


@dataclass(frozen=True)
class GetUpgradeProfile(AzureCall[Json]):
    """Return what the cluster may be upgraded to; raise Dependency when it does not exist.

    ``properties.controlPlaneProfile`` and each of ``properties.agentPoolProfiles`` (by ``name``) have
    ``kubernetesVersion`` ("1.33.4", as it is now) and ``upgrades`` ([{"kubernetesVersion": "1.33.5"}],
    with "isPreview": true for previews); no ``upgrades`` when there are none.
    """

    sdk, limits = "managed_clusters.get_upgrade_profile", (AKS_OTHER, ARM_READ)
    target: ClusterId


@dataclass(frozen=True)
class ListVersions(AzureCall[Json]):
    """Return the Kubernetes versions that a region offers.

    Each of ``values`` has ``version`` ("1.33"), ``patchVersions`` ({"1.33.4": {"upgrades": ["1.33.5"]}})
    and, where it applies, "isDefault": true or "isPreview": true.
    """

    sdk, limits = "managed_clusters.list_kubernetes_versions", (AKS_OTHER, ARM_READ)
    target: RegionId


@dataclass(frozen=True)
class ListMaintenance(AzureCall[Mapping[str, Json]]):
    """Return the cluster's maintenance configurations by name; raise Dependency when it does not exist."""

    sdk, limits = "maintenance_configurations.list_by_managed_cluster", (AKS_OTHER, ARM_READ)
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
