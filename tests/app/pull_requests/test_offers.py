"""What Azure has left for a pull request, on its comment: it annotates the plan, and stops nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from localcloud.azure.world.access.role_assignments import ROLES
from localcloud.azure.world.catalog import REGIONS, SUBSCRIPTION
from shared.app.api.acts.cluster import read_readiness
from shared.app.offers import REGIONS as MOST_REGIONS
from shared.cluster.failures.errors import Unavailable
from shared.ports.azure import AzureCall, ListComputeUsages
from tests.support import fleet_files
from tests.support.proposals import Repo
from tests.support.replaced_ports import around, calls_of
from tests.support.workloads import pod

pytestmark = pytest.mark.lives

NETWORK, WORKER = ROLES["Network Contributor"], "00000000-0000-0000-0000-00000000000e"
HEADING = "#### What Azure has"


def test_a_pull_request_that_azure_has_everything_for_has_no_word_of_it(repo: Repo) -> None:
    assert HEADING not in repo.proposed("")


def test_cores_that_are_not_left_are_told_and_the_plan_stays_as_it_is(repo: Repo) -> None:
    repo.cloud.azure.engine.quotas.limit(SUBSCRIPTION, "eastus", "cores", 1)
    comment = repo.proposed("")
    assert HEADING in comment
    assert "quota: eastus has 0 of 1 cores left, this commit needs" in comment
    assert "1 cluster would fail (three)" in comment
    assert repo.status(repo.cloud.repository.head("topic"))[1] == "success"


def test_clusters_that_the_quota_of_the_region_does_not_allow_are_told(repo: Repo) -> None:
    repo.cloud.azure.engine.quotas.limit(SUBSCRIPTION, "eastus", "ManagedClusters", 2)
    comment = repo.proposed("")
    assert "quota: eastus has 0 of 2 managed clusters left, this commit needs 1" in comment
    assert "1 cluster would fail (three)" in comment


def test_a_region_that_azure_does_not_have_is_told_before_the_merge(repo: Repo) -> None:
    three = fleet_files.cluster("three").replace(b"location: eastus", b"location: westeuropa")
    repo.push(fleet_files.fleet("one", "two"))
    (comment,) = repo.comments(
        repo.propose(fleet_files.fleet("one", "two") | {"clusters/three/cluster.yaml": three})
    )
    assert "location westeuropa" in comment
    assert "did you mean westeurope?" in comment


def test_lists_are_read_once_for_a_region_and_kept_for_the_next_pull_request(repo: Repo) -> None:
    calls = calls_of(repo.cloud, "azure", "call")
    number = repo.propose(fleet_files.fleet("one", "two", "three", "four"))
    first = sorted(call.name for call in calls)
    lists = ["list_cluster_usages", "list_compute_usages", "list_locations", "list_network_usages"]
    lists += ["list_providers", "list_sizes", "list_versions"]
    assert first == lists
    repo.tell(number, repo.cloud.repository.push(fleet_files.fleet("one", "two", "five"), branch="topic"))
    assert "five" in repo.comments(number)[0]
    assert len(calls) == len(first)


def test_an_azure_that_does_not_answer_is_unknown_and_the_plan_is_there(repo: Repo) -> None:
    answers = repo.cloud.ports.azure.call

    def refuse(operation: AzureCall[Any]) -> Any:
        if isinstance(operation, ListComputeUsages):
            raise Unavailable("nobody answers")
        return answers(operation)

    around(repo.cloud, "azure", call=refuse)
    comment = repo.proposed("")
    assert "how many cores are left in eastus is unknown: Azure did not say" in comment
    assert "three" in comment


def test_a_right_that_the_worker_lacks_is_told_and_one_list_serves_all_clusters(repo: Repo) -> None:
    config = replace(repo.cloud.ports.config, identities={"worker": WORKER})
    repo.cloud.with_ports(lambda ports: replace(ports, config=config))
    hub = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/hub"
    subnet, action = f"{hub}/subnets/aks", "Microsoft.Network/virtualNetworks/subnets/join/action"
    calls = calls_of(repo.cloud, "azure", "call")
    lacks = f"the worker lacks {action} on virtualNetworks/hub/subnets/aks of the resource group net (three)"
    three = fleet_files.cluster("three", extra=f"      vnetSubnetID: {subnet}\n")
    number = repo.propose(fleet_files.fleet("one", "two") | {"clusters/three/cluster.yaml": three})
    assert lacks in repo.comments(number)[0]
    assert Counter(call.name for call in calls)["list_grants"] == 1
    role = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{NETWORK}"
    body = {"properties": {"principalId": WORKER, "roleDefinitionId": role}}
    repo.cloud.azure.roles.put_role_assignment(SUBSCRIPTION, hub, str(UUID(int=7)), body)
    repo.cloud.clock.advance(600)
    four = fleet_files.cluster("four", extra=f"      vnetSubnetID: {subnet}\n")
    files = fleet_files.fleet("one", "two") | {"clusters/four/cluster.yaml": four}
    repo.tell(number, repo.cloud.repository.push(files, branch="topic"))
    assert "four" in repo.comments(number)[0]
    assert "permission:" not in repo.comments(number)[0]


def test_what_the_identity_of_a_cluster_lacks_is_told_and_what_nobody_knows_too(repo: Repo) -> None:
    config = replace(repo.cloud.ports.config, identities={"worker": WORKER})
    repo.cloud.with_ports(lambda ports: replace(ports, config=config))
    azure = repo.cloud.azure
    net = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-one/providers"
    for name in ("aks", "nodes"):
        azure.identities.put_identity(SUBSCRIPTION, "rg-one", name, {"location": "eastus"})
    identity, nodes, zone = (
        f"{net}/Microsoft.ManagedIdentity/userAssignedIdentities/aks",
        f"{net}/Microsoft.ManagedIdentity/userAssignedIdentities/nodes",
        f"{net}/Microsoft.Network/privateDnsZones/privatelink.eastus.azmk8s.io",
    )
    role = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions"
    principal = azure.identities.get_identity(SUBSCRIPTION, "rg-one", "aks")["properties"]["principalId"]
    body = {"principalId": principal, "roleDefinitionId": f"{role}/{ROLES['Managed Identity Operator']}"}
    azure.roles.put_role_assignment(SUBSCRIPTION, nodes, str(UUID(int=7)), {"properties": body})
    calls = calls_of(repo.cloud, "azure", "call")

    def private(name: str, of: str) -> dict[str, bytes]:
        extra = (
            f"  identity: {{type: UserAssigned, userAssignedIdentity: {of}}}\n"
            f"  identityProfile: {{kubeletidentity: {{resourceId: {nodes}}}}}\n"
            f"  apiServerAccessProfile: {{enablePrivateCluster: true, privateDNSZone: {zone}}}\n"
        )
        return {f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=extra)}

    files = fleet_files.fleet("one", "two")
    added = private("three", identity) | private("four", identity) | private("five", f"{identity}2")
    (comment,) = repo.comments(repo.propose(files | added))
    lacks = "userAssignedIdentities/aks of the resource group rg-one lacks"
    assert f"{lacks} Microsoft.Network/privateDnsZones/A/write on privateDnsZones/privatelink" in comment
    assert "(four, three)" in comment
    assert "aks of the resource group rg-one lacks Microsoft.ManagedIdentity" not in comment
    assert "whether an identity may use privateDnsZones/privatelink.eastus.azmk8s.io" in comment
    assert "is unknown (five)" in comment
    read = Counter(call.name for call in calls)
    assert (read["list_identities"], read["list_grants"], read["get_identity"]) == (1, 2, 0)


def test_a_feature_that_is_not_registered_is_told_before_the_merge(repo: Repo) -> None:
    repo.cloud.azure.offers.unregister("Microsoft.Compute/EncryptionAtHost")
    comment = repo.proposed("      enableEncryptionAtHost: true\n")
    assert "has not registered the feature Microsoft.Compute/EncryptionAtHost (three)" in comment


def test_what_blocks_an_upgrade_is_told_with_its_age_and_what_nobody_has_read_too(repo: Repo) -> None:
    cloud, files = repo.cloud, fleet_files.fleet("one", "two")
    api = cloud.kubernetes.connect(cloud.state.clusters_named(["one"])[0].desired.id)
    api.apply(pod("debug", api.list("v1", "Node")[0]["metadata"]["name"]))
    read_readiness(["one"], "ann", cloud.ports)
    cloud.run()
    newer = {name: text.replace(b'"1.36"', b'"1.37"') for name, text in files.items()}
    assert newer != files
    (comment,) = repo.comments(repo.propose(newer))
    assert "upgrade: one to Kubernetes 1.37: Pod default/debug has no controller" in comment
    assert "(owner of the workload; read 20" in comment
    assert "upgrade: nobody has read whether it can be done: two" in comment


def test_regions_that_are_too_many_to_ask_about_are_counted(repo: Repo) -> None:
    names = sorted(REGIONS)[: MOST_REGIONS + 2]
    added = {
        f"clusters/c{place}/cluster.yaml": fleet_files.cluster(f"c{place}").replace(b"eastus", name.encode())
        for place, name in enumerate(names)
    }
    (comment,) = repo.comments(repo.propose(fleet_files.fleet("one", "two") | added))
    assert "Azure was not asked about 2 more regions" in comment
