"""What a cluster grants to identities: what counts as granted, and what a check reads of it."""

from __future__ import annotations

from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.ports.azure import GetCluster, ListFederatedCredentials, ListRoleAssignments
from shared.ports.azure.calls import AzureCall
from tests.support import fleet_files
from tests.support.checks import check
from tests.support.identity_access import ACCESS, REGISTRY, SHOP, assignments, with_identity
from tests.support.one_cluster import files, record
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import drifted

PLACE = SHOP.subscription, SHOP.resource_group, SHOP.name
CORRECT = "  drift: {action: correct}\n"
READS = (ListRoleAssignments, ListFederatedCredentials, GetCluster)


def granted(extra: str = "") -> MemoryCloud:
    """Return a cloud in which the cluster is Ready with what its identities may do."""
    cloud = with_identity()
    push(cloud, files(ACCESS + extra))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    return cloud


def remove_role(cloud: MemoryCloud) -> None:
    (name,) = assignments(cloud)
    cloud.azure.roles.delete_role_assignment(SHOP.subscription, REGISTRY, name)


def counted(cloud: MemoryCloud) -> list[str]:
    """Return the names of the reads that concern grants, from now on."""
    made: list[str] = []
    azure = cloud.ports.azure

    def read(operation: AzureCall[Any]) -> Any:
        made.append(type(operation).__name__)
        return azure.call(operation)

    for kind in READS:
        on_azure(cloud, kind, read)
    return made


def test_a_role_under_another_name_is_no_drift_because_a_job_leaves_it_too() -> None:
    cloud = granted()
    ((_, properties),) = assignments(cloud).items()
    remove_role(cloud)
    other = "00000000-0000-0000-0000-0000000000aa"
    body = {"properties": {key: properties[key] for key in ("roleDefinitionId", "principalId")}}
    cloud.azure.roles.put_role_assignment(SHOP.subscription, REGISTRY, other, body)
    check(cloud)
    assert drifted(record(cloud)) == {}


def test_an_identity_that_no_longer_exists_is_drift_that_no_job_can_correct() -> None:
    cloud = granted(CORRECT)
    cloud.azure.identities.delete_identity(*PLACE)
    check(cloud)
    drift = record(cloud).divergence.drift
    assert drift is not None
    (field,) = drift.fields
    assert (field.path, field.action) == ("federatedCredentials[shop]", "report")
    assert phases(cloud) == {"one": Phase.READY}


def test_the_clusters_of_a_message_share_the_lists_and_one_without_grants_costs_no_call() -> None:
    cloud = with_identity()
    names = ("one", "two", "three", "four")
    fleet = fleet_files.fleet(*names)
    for name in names[:3]:
        path = f"clusters/{name}/cluster.yaml"
        fleet[path] += ACCESS.replace("serviceAccount: api", f"serviceAccount: {name}").encode()
    push(cloud, fleet)
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    made = counted(cloud)
    check(cloud)
    assert sorted(made) == ["ListFederatedCredentials", "ListRoleAssignments"]
