"""The operations on policy assignments, on what Azure Policy found, and on managed namespaces.

Sources: policyAssignments of Microsoft.Authorization (2025-03-01) and policyStates of
Microsoft.PolicyInsights (2019-10-01) in github.com/Azure/azure-rest-api-specs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.azure.rate_limits import AKS_OTHER, ARM_DELETE, ARM_READ, ARM_WRITE
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.ports.azure.calls import AzureCall, Request, Write
from shared.ports.azure.clusters import GetCluster
from shared.resource_ids import ClusterId, GroupId

_OF_GROUP = "/subscriptions/{target.subscription}/resourceGroups/{target.name}"
_ASSIGNMENTS, _VERSION = "/providers/Microsoft.Authorization/policyAssignments", "2025-03-01"
_ASSIGNMENT = f"{{target.resource}}{_ASSIGNMENTS}/{{assignment}}"
_STATES = "{target.resource}/providers/Microsoft.PolicyInsights/policyStates/latest/queryResults"
_MOST = 1000
"""How many states one request reads: those of fifty initiatives with twenty definitions each."""


@dataclass(frozen=True)
class ListPolicyAssignments(AzureCall[Sequence[Json] | None]):
    """Return the policy assignments of a group, of what is above it and of what is in it; None without it.

    Those of a cluster are among them, also if it no longer exists.
    """

    request, limits = Request("LIST", f"{_OF_GROUP}{_ASSIGNMENTS}", _VERSION), (ARM_READ,)
    absent_is_fine = True
    needs = ("id", "name", "properties")
    target: GroupId


@dataclass(frozen=True)
class PutPolicyAssignment(Write):
    """Create or replace a policy assignment of a cluster, at once; ``body`` has ``properties``."""

    request, limits = Request("PUT", _ASSIGNMENT, _VERSION), (ARM_WRITE,)
    target: ClusterId
    assignment: str
    body: Json


@dataclass(frozen=True)
class DeletePolicyAssignment(Write):
    """Delete a policy assignment of a cluster, at once, also if the cluster no longer exists."""

    request, limits = Request("DELETE", _ASSIGNMENT, _VERSION), (ARM_DELETE,)
    absent_is_fine = True
    target: ClusterId
    assignment: str


@dataclass(frozen=True)
class QueryPolicyStates(AzureCall[Sequence[Json]]):
    """Return the newest states of a cluster that a filter leaves, the non-compliant first: one page."""

    request, limits = Request("QUERY", _STATES, "2019-10-01"), (ARM_READ,)
    target: ClusterId
    filter: str

    @property
    def query(self) -> Mapping[str, str]:
        """The filter, and what of the states is asked for."""
        return {
            "$filter": self.filter,
            "$top": str(_MOST),
            "$orderby": "complianceState desc",
            "$select": "policyAssignmentName,policyDefinitionReferenceId,complianceState,timestamp",
        }


def states_of(assignments: Sequence[str]) -> str:
    """Return the filter for the states of assignments, by their names."""
    return " or ".join(f"policyAssignmentName eq '{name}'" for name in assignments)


# The operations on the namespaces of a cluster that AKS manages.
#
# Source: ManagedNamespacesOperations of azure-mgmt-containerservice. Its writes take no condition; each
# relies on the read that shows whose cluster it is. A namespace ends with its cluster.


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
