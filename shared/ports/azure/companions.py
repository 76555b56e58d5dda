"""The operations on what a cluster has around it: policies, namespaces, identities, roles, Flux.

Sources, in github.com/Azure/azure-rest-api-specs: policyAssignments of Microsoft.Authorization (2025-03-01),
policyStates of Microsoft.PolicyInsights (2019-10-01), ManagedIdentity.json (2023-01-31) and
authorization-RoleAssignmentsCalls.json (2022-04-01). Azure refuses two writes at once to the federated
credentials of an identity
(learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations).

Flux as Microsoft's extension, and what it pulls and applies, are resources of
Microsoft.KubernetesConfiguration below the cluster. They have no ETags, and end with the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.azure.rate_limits import AKS_OTHER, ARM_DELETE, ARM_READ, ARM_WRITE
from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.ports.azure.calls import AzureCall, NamedList, Request, Write
from shared.ports.azure.clusters import Unconditional
from shared.resource_ids import ClusterId, GroupId, ManagedIdentityId, SubscriptionId

_OF_GROUP = "/subscriptions/{target.subscription}/resourceGroups/{target.name}"
_ASSIGNMENTS, _VERSION = "/providers/Microsoft.Authorization/policyAssignments", "2025-03-01"
_ASSIGNMENT = f"{{target.resource}}{_ASSIGNMENTS}/{{assignment}}"
_STATES = "{target.resource}/providers/Microsoft.PolicyInsights/policyStates/latest/queryResults"
_MOST = 1000
"""How many states one request reads: those of fifty initiatives with twenty definitions each."""
_OF_STATES = {
    "$filter": "{filter}",
    "$top": str(_MOST),
    "$orderby": "complianceState desc",
    "$select": "policyAssignmentName,policyDefinitionReferenceId,complianceState,timestamp",
}


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

    request, limits = Request("QUERY", _STATES, "2019-10-01", _OF_STATES), (ARM_READ,)
    target: ClusterId
    filter: str


def states_of(assignments: Sequence[str]) -> str:
    """Return the filter for the states of assignments, by their names."""
    return " or ".join(f"policyAssignmentName eq '{name}'" for name in assignments)


# The operations on the namespaces of a cluster that AKS manages.
#
# Source: ManagedNamespacesOperations of azure-mgmt-containerservice. Its writes take no condition; each
# relies on the read that shows whose cluster it is. A namespace ends with its cluster.


@dataclass(frozen=True)
class ListManagedNamespaces(NamedList):
    """Return the managed namespaces of a cluster by name; raise Dependency when it does not exist.

    ``properties.provisioningState`` of each says how far its last write is.
    """

    sdk, limits = "managed_namespaces.list_by_managed_cluster", (AKS_OTHER, ARM_READ)
    target: ClusterId


@dataclass(frozen=True)
class PutManagedNamespace(Unconditional):
    """Start to create or replace a managed namespace."""

    sdk, limits = "managed_namespaces.begin_create_or_update", (AKS_OTHER, ARM_WRITE)
    namespace: str
    body: Json


@dataclass(frozen=True)
class DeleteManagedNamespace(Unconditional):
    """Start to delete a managed namespace; its delete policy says whether the namespace itself goes."""

    sdk, limits = "managed_namespaces.begin_delete", (AKS_OTHER, ARM_DELETE)
    absent_is_fine = True
    namespace: str


_IDENTITIES, _CREDENTIALS = "2023-01-31", "{target.resource}/federatedIdentityCredentials"
_ROLES, _OF_ROLES = "2022-04-01", "/providers/Microsoft.Authorization"
_OF_SUBSCRIPTION = f"/subscriptions/{{target.subscription}}{_OF_ROLES}"
_ROLE_ASSIGNMENT = f"{{scope}}{_OF_ROLES}/roleAssignments/{{assignment}}"


@dataclass(frozen=True)
class GetIdentity(AzureCall[Json | None]):
    """Return a user-assigned identity, or None; ``properties`` has principalId, clientId and tenantId."""

    request, limits = Request("GET", "{target.resource}", _IDENTITIES), (ARM_READ,)
    absent_is_fine = True
    needs = ("id", "properties.principalId", "properties.clientId", "properties.tenantId")
    target: ManagedIdentityId


@dataclass(frozen=True)
class PutIdentity(Write):
    """Create a user-assigned identity, or write its tags, at once; ``body`` has ``location`` and ``tags``."""

    request, limits = Request("PUT", "{target.resource}", _IDENTITIES), (ARM_WRITE,)
    target: ManagedIdentityId
    body: Json


@dataclass(frozen=True)
class DeleteIdentity(Write):
    """Delete a user-assigned identity with its federated credentials, at once."""

    request, limits = Request("DELETE", "{target.resource}", _IDENTITIES), (ARM_DELETE,)
    absent_is_fine = True
    target: ManagedIdentityId


@dataclass(frozen=True)
class ListFederatedCredentials(AzureCall[Sequence[Json] | None]):
    """Return the federated credentials of an identity, whoever created them; None without the identity."""

    request, limits = Request("LIST", _CREDENTIALS, _IDENTITIES), (ARM_READ,)
    absent_is_fine = True
    needs = ("name", "properties")
    target: ManagedIdentityId


@dataclass(frozen=True)
class GetFederatedCredential(AzureCall[Json | None]):
    """Return a federated credential, or None."""

    request, limits = Request("GET", f"{_CREDENTIALS}/{{credential}}", _IDENTITIES), (ARM_READ,)
    absent_is_fine = True
    needs = ("name", "properties")
    target: ManagedIdentityId
    credential: str


@dataclass(frozen=True)
class PutFederatedCredential(Write):
    """Create or replace a federated credential, at once; ``body`` has ``properties``."""

    request, limits = Request("PUT", f"{_CREDENTIALS}/{{credential}}", _IDENTITIES), (ARM_WRITE,)
    target: ManagedIdentityId
    credential: str
    body: Json


@dataclass(frozen=True)
class DeleteFederatedCredential(Write):
    """Delete a federated credential, at once."""

    request, limits = Request("DELETE", f"{_CREDENTIALS}/{{credential}}", _IDENTITIES), (ARM_DELETE,)
    absent_is_fine = True
    target: ManagedIdentityId
    credential: str


@dataclass(frozen=True)
class ListRoleAssignments(AzureCall[Sequence[Json]]):
    """Return the role assignments in a subscription, at every scope in it and above it.

    They are those of a ``principal``, or of everybody.
    """

    request, limits = Request("LIST", f"{_OF_SUBSCRIPTION}/roleAssignments", _ROLES), (ARM_READ,)
    needs = ("id", "properties")
    target: SubscriptionId
    principal: str = ""

    @property
    def query(self) -> Mapping[str, str]:
        """The filter for a principal."""
        return {"$filter": f"principalId eq '{self.principal}'"} if self.principal else {}


@dataclass(frozen=True)
class ListRoles(AzureCall[Sequence[Json]]):
    """Return the role definitions of a subscription that have a name: none, or one."""

    request = Request(
        "LIST", f"{_OF_SUBSCRIPTION}/roleDefinitions", _ROLES, {"$filter": "roleName eq '{role}'"}
    )
    limits = (ARM_READ,)
    needs = ("id", "properties")
    target: SubscriptionId
    role: str


@dataclass(frozen=True)
class GetRoleAssignment(AzureCall[Json | None]):
    """Return a role assignment, or None."""

    request, limits = Request("GET", _ROLE_ASSIGNMENT, _ROLES), (ARM_READ,)
    absent_is_fine = True
    needs = ("id", "properties")
    target: SubscriptionId
    scope: str
    assignment: str


@dataclass(frozen=True)
class PutRoleAssignment(Write):
    """Create a role assignment, at once: Azure refuses to change one; ``body`` has ``properties``."""

    request, limits = Request("PUT", _ROLE_ASSIGNMENT, _ROLES), (ARM_WRITE,)
    target: SubscriptionId
    scope: str
    assignment: str
    body: Json


@dataclass(frozen=True)
class DeleteRoleAssignment(Write):
    """Delete a role assignment, at once."""

    request, limits = Request("DELETE", _ROLE_ASSIGNMENT, _ROLES), (ARM_DELETE,)
    absent_is_fine = True
    target: SubscriptionId
    scope: str
    assignment: str


class _BelowCluster:
    """The libraries of extensions name a cluster with its provider and its type."""

    target: ClusterId

    @property
    def place(self) -> tuple[str, ...]:
        """The cluster, as these libraries take it."""
        return self.target.resource_group, "Microsoft.ContainerService", "managedClusters", self.target.name


@dataclass(frozen=True)
class _WriteBelow(_BelowCluster, Unconditional):
    """A write of what these libraries have below a cluster."""


@dataclass(frozen=True)
class GetExtension(_BelowCluster, AzureCall[Json | None]):
    """Return an extension of the cluster, or None; ``properties.provisioningState`` says how far it is."""

    service, sdk, limits = "extensions", "extensions.get", (ARM_READ,)
    absent_is_fine = True
    needs = ("name", "properties")
    target: ClusterId
    extension: str


@dataclass(frozen=True)
class PutExtension(_WriteBelow):
    """Start to install an extension, or to change it."""

    service, sdk, limits = "extensions", "extensions.begin_create", (ARM_WRITE,)
    extension: str
    body: Json


@dataclass(frozen=True)
class ListFluxConfigurations(_BelowCluster, NamedList):
    """Return the configurations of the cluster by name, each with the statuses of its objects."""

    service, sdk, limits = "fluxconfigurations", "flux_configurations.list", (ARM_READ,)
    target: ClusterId


@dataclass(frozen=True)
class PutFluxConfiguration(_WriteBelow):
    """Start to create or replace a configuration; its body may hold a credential, and is never shown."""

    service, sdk, limits = "fluxconfigurations", "flux_configurations.begin_create_or_update", (ARM_WRITE,)
    configuration: str
    body: Json = field(repr=False)


@dataclass(frozen=True)
class DeleteFluxConfiguration(_WriteBelow):
    """Start to delete a configuration; the extension deletes what it applied, as its ``prune`` says."""

    service, sdk, limits = "fluxconfigurations", "flux_configurations.begin_delete", (ARM_DELETE,)
    absent_is_fine = True
    configuration: str
