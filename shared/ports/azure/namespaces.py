"""The operations on the namespaces of a cluster that AKS manages.

Source: ManagedNamespacesOperations of azure-mgmt-containerservice. Its writes take no condition; each relies
on the read that shows whose cluster it is. A namespace ends with its cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.fleet.json_tree import Json
from shared.fleet.resource_ids import ClusterId
from shared.jobs.rate_limits import AKS_OTHER, ARM_DELETE, ARM_READ, ARM_WRITE
from shared.ports.azure.calls import AzureCall, Write
from shared.ports.azure.clusters import GetCluster


@dataclass(frozen=True)
class ListManagedNamespaces(AzureCall[Mapping[str, Json]]):
    """Return the managed namespaces of a cluster by name; raise Dependency when it does not exist.

    ``properties.provisioningState`` of each says how far its last write is.
    """

    sdk, limits = "managed_namespaces.list_by_managed_cluster", (AKS_OTHER, ARM_READ)
    needs = ("name", "properties")
    target: ClusterId

    def result(self, answer: Sequence[Json]) -> Mapping[str, Json]:
        """Return the namespaces by name."""
        return {str(namespace["name"]): namespace for namespace in answer}


@dataclass(frozen=True)
class _WriteOfNamespace(Write):
    """A write that Azure checks no condition of."""

    target: ClusterId

    @property
    def relies_on(self) -> GetCluster:
        """The read of the cluster."""
        return GetCluster(self.target)


@dataclass(frozen=True)
class PutManagedNamespace(_WriteOfNamespace):
    """Start to create or replace a managed namespace."""

    sdk, limits = "managed_namespaces.begin_create_or_update", (AKS_OTHER, ARM_WRITE)
    target: ClusterId
    namespace: str
    body: Json


@dataclass(frozen=True)
class DeleteManagedNamespace(_WriteOfNamespace):
    """Start to delete a managed namespace; its delete policy says whether the namespace itself goes."""

    sdk, limits = "managed_namespaces.begin_delete", (AKS_OTHER, ARM_DELETE)
    absent_is_fine = True
    target: ClusterId
    namespace: str
