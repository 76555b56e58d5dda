"""Azure as Roadstead uses it: one verb, ``Azure.call``, and one small class for each operation.

A class declares what every layer needs to know of its operation, and no layer repeats it:

- the adapter calls ``sdk`` of the client library of ``service`` with the fields as arguments, or sends
  ``request``;
- the lease guard checks the lease before an operation that ``writes``, and the age of ``relies_on``;
- the rate limiter takes a token of each of ``limits``, and records the request id of each write;
- the local cloud answers with the method of its Azure world that has the operation's ``name``;
- fault injection and the tests see the operation itself.

To add an operation, add its class to a module of this package, name it here, and call it. CONTRIBUTING.md has
an example.
"""

from __future__ import annotations

from shared.ports.azure.calls import Azure, AzureCall, Page, PageCall, Write, WriteResponse, every_document
from shared.ports.azure.clusters import (
    Conditional,
    DeleteCluster,
    DeleteGroup,
    DeletePool,
    GetCluster,
    GetGroup,
    GetKubeconfig,
    GetPoolUpgradeProfile,
    GetTags,
    GetUpgradeProfile,
    ListClusters,
    ListMaintenance,
    ListResources,
    ListVersions,
    PatchCluster,
    PatchTags,
    PutCluster,
    PutGroup,
    PutMaintenance,
    PutPool,
    StartCluster,
    StopCluster,
    UpgradeNodeImage,
)
from shared.ports.azure.costs import GetCosts
from shared.ports.azure.flux_extension import (
    DeleteFluxConfiguration,
    GetExtension,
    ListFluxConfigurations,
    PutExtension,
    PutFluxConfiguration,
)
from shared.ports.azure.identity_access import (
    DeleteFederatedCredential,
    DeleteIdentity,
    DeleteRoleAssignment,
    GetFederatedCredential,
    GetIdentity,
    GetRoleAssignment,
    ListFederatedCredentials,
    ListRoleAssignments,
    ListRoles,
    PutFederatedCredential,
    PutIdentity,
    PutRoleAssignment,
)
from shared.ports.azure.offers import (
    ListAlertRules,
    ListAlerts,
    ListClusterUsages,
    ListComputeUsages,
    ListFeatures,
    ListGrants,
    ListIdentities,
    ListLocations,
    ListNetworks,
    ListNetworkUsages,
    ListProviders,
    ListRoleDefinitions,
    ListSizes,
)
from shared.ports.azure.policies import (
    DeleteManagedNamespace,
    DeletePolicyAssignment,
    ListManagedNamespaces,
    ListPolicyAssignments,
    PutManagedNamespace,
    PutPolicyAssignment,
    QueryPolicyStates,
    states_of,
)

__all__ = [
    "Azure",
    "AzureCall",
    "Conditional",
    "DeleteCluster",
    "DeleteFederatedCredential",
    "DeleteFluxConfiguration",
    "DeleteGroup",
    "DeleteIdentity",
    "DeleteManagedNamespace",
    "DeletePolicyAssignment",
    "DeletePool",
    "DeleteRoleAssignment",
    "GetCluster",
    "GetCosts",
    "GetExtension",
    "GetFederatedCredential",
    "GetGroup",
    "GetIdentity",
    "GetKubeconfig",
    "GetPoolUpgradeProfile",
    "GetRoleAssignment",
    "GetTags",
    "GetUpgradeProfile",
    "ListAlertRules",
    "ListAlerts",
    "ListClusterUsages",
    "ListClusters",
    "ListComputeUsages",
    "ListFeatures",
    "ListFederatedCredentials",
    "ListFluxConfigurations",
    "ListGrants",
    "ListIdentities",
    "ListLocations",
    "ListMaintenance",
    "ListManagedNamespaces",
    "ListNetworkUsages",
    "ListNetworks",
    "ListPolicyAssignments",
    "ListProviders",
    "ListResources",
    "ListRoleAssignments",
    "ListRoleDefinitions",
    "ListRoles",
    "ListSizes",
    "ListVersions",
    "Page",
    "PageCall",
    "PatchCluster",
    "PatchTags",
    "PutCluster",
    "PutExtension",
    "PutFederatedCredential",
    "PutFluxConfiguration",
    "PutGroup",
    "PutIdentity",
    "PutMaintenance",
    "PutManagedNamespace",
    "PutPolicyAssignment",
    "PutPool",
    "PutRoleAssignment",
    "QueryPolicyStates",
    "StartCluster",
    "StopCluster",
    "UpgradeNodeImage",
    "Write",
    "WriteResponse",
    "every_document",
    "states_of",
]
