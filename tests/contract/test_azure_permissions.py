"""The role of each app in a target subscription allows the calls of its functions, and no other change.

The tables below are from Microsoft's pages "Azure permissions for Containers" and "AKS service permissions".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from localcloud.azure.wire.authorization import action_of, allows
from localcloud.memory.memory_cloud import QUEUES
from shared.cluster.failures.errors import Unauthorized
from shared.configuration.settings import App
from shared.ports.azure import AzureCall, DeleteCluster, DeleteGroup
from shared.ports.pull_requests import OwnBranches
from tests.support.azure_operations import OPERATIONS
from tests.support.deployed_rights import actions, permission_of, receiver, senders
from tests.support.whole_life import lived_through

ROOT = Path(__file__).parent.parent.parent
CONTAINERS = "Microsoft.ContainerService/managedClusters"
EXTENSIONS = "Microsoft.KubernetesConfiguration"
GROUPS = "Microsoft.Resources/subscriptions/resourceGroups"
IDENTITIES = "Microsoft.ManagedIdentity/userAssignedIdentities"
FEDERATION = f"{IDENTITIES}/federatedIdentityCredentials"
ASSIGNMENTS = "Microsoft.Authorization/roleAssignments"
POLICY_ASSIGNMENTS = "Microsoft.Authorization/policyAssignments"

CHANGES = frozenset(
    {
        *(f"{GROUPS}/{verb}" for verb in ("write", "delete")),
        *(f"{CONTAINERS}/{verb}" for verb in ("write", "delete", "listClusterUserCredential/action")),
        *(f"{CONTAINERS}/{verb}/action" for verb in ("start", "stop")),
        *(f"{CONTAINERS}/agentPools/{verb}" for verb in ("write", "delete")),
        f"{CONTAINERS}/agentPools/upgradeNodeImageVersion/action",
        *(f"{CONTAINERS}/maintenanceConfigurations/{verb}" for verb in ("write", "delete")),
        *(f"{CONTAINERS}/managedNamespaces/{verb}" for verb in ("write", "delete")),
        f"{EXTENSIONS}/extensions/write",
        *(f"{EXTENSIONS}/fluxConfigurations/{verb}" for verb in ("write", "delete")),
        *(f"{IDENTITIES}/{verb}" for verb in ("write", "delete")),
        *(f"{FEDERATION}/{verb}" for verb in ("write", "delete")),
        *(f"{ASSIGNMENTS}/{verb}" for verb in ("write", "delete")),
        *(f"{POLICY_ASSIGNMENTS}/{verb}" for verb in ("write", "delete")),
        "Microsoft.PolicyInsights/policyStates/queryResults/action",
        "Microsoft.CostManagement/query/action",
        "Microsoft.Resources/tags/write",
    }
)
"""The changes that an operation may make, and a read that is an action, by the names of the pages for
Containers, for Management and governance, and for Hybrid and multicloud."""

OF_FLUX = f"{EXTENSIONS}/*/read".lower()
"""The page for Hybrid and multicloud has no name for the versions of extensions in a region, and Azure takes
no role with a name that its provider lacks."""
NETWORK = "Microsoft.Network"
LINKED: Mapping[str, tuple[str, ...]] = {
    "a public address": (f"{NETWORK}/publicIPAddresses/join/action",),
    "a public address prefix": (f"{NETWORK}/publicIPPrefixes/join/action",),
    "a subnet": (f"{NETWORK}/virtualNetworks/subnets/join/action",),
    "an application gateway": (
        f"{NETWORK}/applicationGateways/read",
        f"{NETWORK}/applicationGateways/write",
        f"{NETWORK}/virtualNetworks/subnets/join/action",
    ),
    "a user-assigned identity": ("Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",),
    "a Log Analytics workspace": (
        "Microsoft.OperationalInsights/workspaces/read",
        "Microsoft.OperationalInsights/workspaces/sharedkeys/read",
        # Defender for Containers fetches the keys with a POST, in the name of whoever writes the cluster.
        "Microsoft.OperationalInsights/workspaces/sharedKeys/action",
        "Microsoft.OperationsManagement/solutions/read",
        "Microsoft.OperationsManagement/solutions/write",
    ),
    "a disk encryption set": ("Microsoft.Compute/diskEncryptionSets/read",),
    "a proximity placement group": ("Microsoft.Compute/proximityPlacementGroups/write",),
    "a load balancer whose backend pools have addresses": (
        f"{NETWORK}/virtualNetworks/joinLoadBalancer/action",
    ),
}
"""What whoever writes a cluster needs on the resources that it names, from "AKS service permissions"."""
BY_THE_CLUSTER = frozenset(
    {
        *("a private DNS zone", "a DNS zone", "a key vault", "a registry", "a node pool snapshot"),
        *("an application security group", "a dedicated host group", "a capacity reservation group"),
    }
)
"""What that page does not ask of whoever writes a cluster: the cluster's identities need roles on it."""


def test_the_names_follow_from_the_requests() -> None:
    cluster = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/c"
    expected = {
        ("PUT", cluster): f"{CONTAINERS}/write",
        ("DELETE", f"{cluster}/agentPools/p"): f"{CONTAINERS}/agentPools/delete",
        ("POST", f"{cluster}/listClusterUserCredential"): f"{CONTAINERS}/listClusterUserCredential/action",
        ("DELETE", "/subscriptions/s/resourcegroups/g"): f"{GROUPS}/delete",
        ("GET", "/subscriptions/s/resourceGroups/g/resources"): f"{GROUPS}/resources/read",
    }
    assert {request: action_of(*request) for request in expected} == {
        request: name.lower() for request, name in expected.items()
    }


@pytest.mark.parametrize("kind", OPERATIONS)
def test_the_name_of_each_operation_is_one_of_microsofts_pages(kind: type[AzureCall[Any]]) -> None:
    name = permission_of(kind)
    known = {change.lower() for change in CHANGES}
    assert name.endswith("/read") or name in known, f"CHANGES has no {name}: does a page of Microsoft's?"


def test_the_worker_may_use_whatever_azure_asks_for_a_resource_that_a_manifest_may_name() -> None:
    reference = (ROOT / "docs" / "reference.md").read_text()
    named = {kind.strip() for kind in re.findall(r"the resource id of (an? [^(;|]+)", reference)}
    assert len(named) > 10
    assert named - set(LINKED) - BY_THE_CLUSTER == set(), "see Microsoft's page on AKS service permissions"
    assert "backendPoolType" in reference
    needed = {name for names in LINKED.values() for name in names}
    assert {name for name in needed if not allows(actions(App.WORKER), name)} == set()


def test_every_call_of_every_function_is_made_by_an_identity_whose_role_has_it_and_nothing_else() -> None:
    cloud = lived_through()
    assert cloud.refused == [], "\n".join(("infra/access.bicep lets no role do this:", *cloud.refused))
    never = sorted(kind.__name__ for kind in set(OPERATIONS).difference(*cloud.calls.values()))
    assert never == [], f"tests/support/whole_life.py: no function calls {', '.join(never)}"
    linked = {name.lower() for names in LINKED.values() for name in names}
    for app in App:
        used = {permission_of(kind) for kind in cloud.calls[app]}
        extra = linked if app is App.WORKER else set()
        granted = {name.lower() for name in actions(app)}
        unused = sorted(granted - extra - used - {"*/read", OF_FLUX})
        assert unused == [], f"infra/access.bicep: nothing of {app} in tests/support/whole_life.py uses it"
        assert all(allows(actions(app), name) for name in used), app


def test_only_the_deleter_may_delete_a_cluster_or_a_group_and_it_changes_nothing() -> None:
    deletes = {f"{CONTAINERS}/delete", f"{GROUPS}/delete"}
    grants = {f"{service}/delete" for service in (IDENTITIES, FEDERATION, ASSIGNMENTS, POLICY_ASSIGNMENTS)}
    changes = {app: {name for name in actions(app) if not name.endswith("/read")} for app in App}
    asks = {"Microsoft.CostManagement/query/action"}  # a read, whose question is a body
    assert changes[App.CONTROL] - asks == {"Microsoft.Resources/tags/write"}
    assert changes[App.DELETER] == deletes | grants
    assert not any("*" in name for names in changes.values() for name in names)
    for app in (App.CONTROL, App.WORKER):
        assert [name for name in deletes if allows(actions(app), name)] == [], app


@pytest.mark.lives
def test_an_app_may_send_only_to_the_queues_to_which_its_functions_send() -> None:
    cloud = lived_through()
    assert {queue: receiver(queue) for queue in QUEUES} == {
        "plans": App.CONTROL,
        "previews": App.CONTROL,
        "jobs": App.WORKER,
        "changes": App.WORKER,
        "deletes": App.DELETER,
    }
    for queue in QUEUES:
        needed = {app for app in App if queue in cloud.sent[app]}
        assert senders(queue) == needed | {receiver(queue)}, queue


def test_only_the_app_of_the_sweeps_writes_to_the_fleet_repository() -> None:
    written = lived_through().written
    assert set(written) == {name for name in vars(OwnBranches) if not name.startswith("_")}
    assert set.union(*written.values()) == {App.CONTROL}


@pytest.mark.lives
@pytest.mark.parametrize("app", [App.CONTROL, App.WORKER])
def test_an_app_that_is_taken_over_cannot_delete_a_cluster(app: App) -> None:
    cloud = lived_through(until_deleted=False)
    (cluster, *_) = cloud.azure.ids()
    attacker = cloud.acting_as(app, cloud.ports).azure
    for operation in (DeleteCluster(cluster, etag=None), DeleteGroup(cluster.group)):
        with pytest.raises(Unauthorized):
            attacker.call(operation)
    assert cluster in cloud.azure.ids()
