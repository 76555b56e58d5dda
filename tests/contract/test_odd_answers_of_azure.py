"""Whatever Azure answers, a read has a result or an error of ours, and the import has a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.arm import ArmAzure
from shared.azure.availability.channels import of_aks
from shared.azure.companions.compliance import compliance_of
from shared.azure.costs import Places, costs_in
from shared.azure.drift.activity import writes_in
from shared.azure.importer import NotImportable, imported
from shared.azure.ownership import OwnerTags
from shared.cluster.failures.errors import ReconcileError, Unavailable
from shared.ports.azure import (
    AzureCall,
    GetCluster,
    GetExtension,
    GetFederatedCredential,
    GetGroup,
    GetIdentity,
    GetKubeconfig,
    GetPoolUpgradeProfile,
    GetRoleAssignment,
    GetTags,
    GetUpgradeProfile,
    ListAlertRules,
    ListAlerts,
    ListClusters,
    ListClusterUsages,
    ListComputeUsages,
    ListExtensionVersions,
    ListFeatures,
    ListFederatedCredentials,
    ListFluxConfigurations,
    ListGrants,
    ListIdentities,
    ListLocations,
    ListMaintenance,
    ListManagedNamespaces,
    ListNetworks,
    ListNetworkUsages,
    ListPolicyAssignments,
    ListProviders,
    ListResources,
    ListRoleAssignments,
    ListRoleDefinitions,
    ListRoles,
    ListSizes,
    ListVersions,
    PageCall,
    QueryPolicyStates,
    every_document,
)
from shared.ports.azure.clusters import ListActivity
from shared.ports.azure.costs import GetCosts, following
from shared.resource_ids import ManagedIdentityId, RegionId, SubscriptionId
from tests.support.azure_operations import OPERATIONS
from tests.support.azure_ports import CLUSTER, StaticCredential
from tests.support.cluster_records import NOW
from tests.support.function_calls import call
from tests.support.odd_bodies import odd_bodies
from tests.support.pipeline_runs import ready
from tests.support.receivers import Inbox

pytestmark = pytest.mark.lives

HERE = SubscriptionId(CLUSTER.subscription)
REGION = RegionId(CLUSTER.subscription, "westeurope")
USAGE = {"name": {"value": "cores"}, "currentValue": 1, "limit": 10}
IDENTITY = ManagedIdentityId.of(
    f"{CLUSTER.resource.partition('/providers')[0]}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/shop"
)
RESOURCE = {
    "id": f"{CLUSTER.resource}/x",
    "name": "x",
    "type": "a/b",
    "location": "westeurope",
    "tags": {"a": "b"},
}
EVENT = {
    "caller": "ann@example.com",
    "resourceId": CLUSTER.resource,
    "eventTimestamp": "2026-01-01T12:00:00Z",
    "operationName": {"value": "Microsoft.ContainerService/managedClusters/write"},
    "status": {"value": "Succeeded"},
}
STATE = {
    "policyAssignmentName": "x",
    "policyDefinitionReferenceId": "y",
    "complianceState": "NonCompliant",
    "timestamp": "2026-01-01T12:00:00Z",
}
ALERT = {
    "severity": "Sev1",
    "monitorCondition": "Fired",
    "alertRule": "r",
    "targetResource": CLUSTER.resource,
}
UPGRADES = {"kubernetesVersion": "1.36.1", "upgrades": [{"kubernetesVersion": "1.37.0"}]}
BILLED = {
    "properties": {
        "columns": [{"name": "Cost"}, {"name": "ResourceId"}, {"name": "Currency"}],
        "rows": [[1.5, CLUSTER.resource, "USD"]],
        "nextLink": None,
    }
}
READS: list[tuple[AzureCall[Any], dict[str, Any]]] = [
    (GetGroup(CLUSTER.group), RESOURCE | {"properties": {"provisioningState": "Succeeded"}}),
    (ListResources(CLUSTER.group), RESOURCE),
    (GetExtension(CLUSTER, "flux"), RESOURCE | {"properties": {"extensionType": "microsoft.flux"}}),
    (ListFluxConfigurations(CLUSTER), RESOURCE | {"properties": {"kustomizations": {"a": {"path": "./"}}}}),
    (ListMaintenance(CLUSTER), RESOURCE | {"properties": {"maintenanceWindow": {"durationHours": 4}}}),
    (ListManagedNamespaces(CLUSTER), RESOURCE | {"properties": {"labels": {"a": "b"}}}),
    (GetKubeconfig(CLUSTER), {"kubeconfigs": [{"name": "user", "value": "YTogYg=="}]}),
    (GetUpgradeProfile(CLUSTER), RESOURCE | {"properties": {"controlPlaneProfile": UPGRADES}}),
    (GetPoolUpgradeProfile(CLUSTER, "apps"), RESOURCE | {"properties": UPGRADES}),
    (ListVersions(REGION), {"values": [{"version": "1.36"}]}),
    (
        ListExtensionVersions(REGION),
        {"properties": {"version": "1.23.0", "supportedClusterTypes": ["managedClusters"]}},
    ),
    (ListLocations(HERE), {"id": "x", "name": "westeurope"}),
    (ListSizes(REGION), {"name": "Standard_D4s_v5", "resourceType": "virtualMachines", "family": "f"}),
    (ListComputeUsages(REGION), USAGE),
    (ListNetworkUsages(REGION), USAGE),
    (ListClusterUsages(REGION), USAGE),
    (ListNetworks(HERE), RESOURCE | {"properties": {"subnets": [{"id": "x"}]}}),
    (ListGrants(HERE, "p"), {"properties": {"scope": "/", "roleDefinitionId": "r"}}),
    (ListIdentities(HERE), RESOURCE | {"properties": {"principalId": "p"}}),
    (ListRoleDefinitions(HERE), RESOURCE | {"properties": {"permissions": [{"actions": ["*"]}]}}),
    (ListProviders(HERE), {"namespace": "Microsoft.Compute", "registrationState": "Registered"}),
    (ListFeatures(HERE, "Microsoft.Compute"), RESOURCE | {"properties": {"state": "Registered"}}),
    (
        GetIdentity(IDENTITY),
        RESOURCE | {"properties": {"principalId": "p", "clientId": "c", "tenantId": "t"}},
    ),
    (ListFederatedCredentials(IDENTITY), RESOURCE | {"properties": {"issuer": "i", "audiences": ["a"]}}),
    (GetFederatedCredential(IDENTITY, "x"), RESOURCE | {"properties": {"issuer": "i"}}),
    (ListRoleAssignments(HERE), RESOURCE | {"properties": {"principalId": "p", "scope": "/"}}),
    (ListRoles(HERE, "Reader"), RESOURCE | {"properties": {"roleName": "Reader"}}),
    (GetRoleAssignment(HERE, CLUSTER.resource, "x"), RESOURCE | {"properties": {"principalId": "p"}}),
    (ListPolicyAssignments(CLUSTER.group), RESOURCE | {"properties": {"parameters": {"a": {"value": 1}}}}),
    (QueryPolicyStates(CLUSTER, "x"), STATE),
    (GetTags(CLUSTER.group), RESOURCE | {"properties": {"tags": {"a": "b"}}}),
    (ListAlertRules(CLUSTER.group), RESOURCE | {"properties": {"enabled": True}}),
    (ListAlerts(HERE, ""), RESOURCE | {"properties": {"essentials": ALERT}}),
    (ListActivity(HERE, filter="x"), EVENT),
    (GetCosts(HERE, "2026-10-01", "2026-10-30"), BILLED),
]
OF_CLUSTERS = {GetCluster, ListClusters}
"""What is read of these has tests of its own below."""
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def azure(inbox: Inbox) -> Iterator[ArmAzure]:
    adapter = ArmAzure(StaticCredential(), base_url=inbox.url)
    yield adapter
    adapter.close()


def is_listed(operation: AzureCall[Any]) -> bool:
    return type(operation).__name__.startswith(("List", "Query")) and not isinstance(operation, ListVersions)


def answered(operation: AzureCall[Any], azure: ArmAzure) -> Any:
    """Return the result, and let read it who reads it first; an error of ours is one, too."""
    try:
        found = azure.call(operation)
    except ReconcileError:
        return None
    if isinstance(operation, ListActivity):
        return writes_in(found.documents)
    if isinstance(operation, GetCosts):
        with suppress(ValueError):
            return (costs_in([found], Places({}, {CLUSTER.resource.lower(): "one"})), following(found))
        return None
    if isinstance(operation, ListExtensionVersions):
        with suppress(LookupError, TypeError, ValueError):  # of which whoever reads them knows nothing
            return of_aks(found)
        return None
    return compliance_of(found, ["x"], NOW) if isinstance(operation, QueryPolicyStates) else found


@pytest.mark.parametrize(("operation", "document"), READS, ids=lambda each: type(each).__name__)
def test_a_read_has_a_result_or_an_error_of_ours(
    operation: AzureCall[Any], document: dict[str, Any], azure: ArmAzure, inbox: Inbox
) -> None:
    body = {"value": [document], "nextLink": ""} if is_listed(operation) else document
    inbox.default = (200, JSON, json.dumps(body))
    assert answered(operation, azure), "the test would show nothing"
    for odd in odd_bodies(body):
        inbox.default = (200, JSON, odd)
        answered(operation, azure)


@pytest.mark.parametrize(
    "operation", [ListMaintenance(CLUSTER), ListRoleAssignments(HERE), ListClusters(HERE)]
)
def test_a_list_whose_pages_link_to_each_other_ends(
    operation: AzureCall[Any], azure: ArmAzure, inbox: Inbox
) -> None:
    pages = [(200, JSON, json.dumps({"value": [], "nextLink": f"{inbox.url}/{page}"})) for page in "ab"]
    inbox.answers += pages * 20
    with pytest.raises(Unavailable, match="earlier one"):
        list(every_document(azure, operation)) if isinstance(operation, PageCall) else azure.call(operation)


@pytest.mark.always
def test_each_read_has_an_answer_here() -> None:
    reads = {kind for kind in OPERATIONS if not kind.writes}
    here = {type(operation) for operation, _ in READS}
    lacking = sorted(kind.__name__ for kind in reads - here - OF_CLUSTERS)
    assert lacking == [], f"READS has no document of {', '.join(lacking)}"


def imports(azure: ArmAzure, cloud: MemoryCloud) -> tuple[int, Any]:
    return call(replace(cloud.ports, azure=azure), "import", query={"resource": CLUSTER.resource})


@pytest.mark.parametrize("status", [200, 304, 400, 404, 409, 429, 500])
@pytest.mark.parametrize(
    "body", [b"{}", b"", b"[]", b'{"properties": 5}', b'{"error": 5}', b'{"error": {"details": 5}}']
)
def test_an_import_says_what_is_wrong_with_the_answer(
    status: int, body: bytes, azure: ArmAzure, inbox: Inbox
) -> None:
    inbox.default = (status, JSON, body)
    answer, said = imports(azure, MemoryCloud())
    assert answer in (404, 409, 502)
    assert said["error"]


def cluster() -> dict[str, Any]:
    cloud = ready("one")
    found = cloud.ports.azure.call(GetCluster(cloud.state.clusters()[0].desired.id))
    assert found is not None
    document: dict[str, Any] = json.loads(json.dumps(found))
    return document


def test_no_document_of_a_cluster_ends_an_import_with_a_server_error(azure: ArmAzure, inbox: Inbox) -> None:
    document = cluster()
    for odd in odd_bodies(document, 300):
        inbox.default = (200, JSON, odd)
        try:
            found = azure.call(GetCluster(CLUSTER))
        except ReconcileError:
            continue
        assert found is not None
        try:
            imported(CLUSTER, OwnerTags("example", "example/fleet", "x", ""), found, {})
        except NotImportable:
            continue
