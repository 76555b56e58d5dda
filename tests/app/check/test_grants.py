"""What a cluster grants to identities, changed by somebody: a check finds it, and a policy corrects it."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.azure.identity_access import credential_name
from shared.cluster.failures.errors import Unavailable
from shared.cluster.record import Phase
from shared.ports.azure import GetCluster, ListFederatedCredentials, ListRoleAssignments
from shared.ports.azure.calls import AzureCall
from tests.support import fleet_files
from tests.support.checks import check
from tests.support.identity_access import ACCESS, REGISTRY, SHOP, assignments, credentials, with_identity
from tests.support.one_cluster import ONE, files, record
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import drifted, sweep, tag_by_hand

NAME = credential_name(ONE, "shop")
PLACE = SHOP.subscription, SHOP.resource_group, SHOP.name
SUBJECT = "federatedCredentials[shop].subject"
OURS, THEIRS = "system:serviceaccount:shop:api", "system:serviceaccount:evil:api"
CORRECT = "  drift: {action: correct}\n"
READS = (ListRoleAssignments, ListFederatedCredentials, GetCluster)


def granted(extra: str = "") -> MemoryCloud:
    """Return a cloud in which the cluster is Ready with what its identities may do."""
    cloud = with_identity()
    push(cloud, files(ACCESS + extra))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    return cloud


def change(cloud: MemoryCloud, subject: str = THEIRS) -> None:
    """Change the federated credential as somebody does."""
    properties = {**credentials(cloud)[NAME], "subject": subject}
    cloud.azure.put_federated_credential(*PLACE, NAME, {"properties": properties})


def remove_role(cloud: MemoryCloud) -> None:
    (name,) = assignments(cloud)
    cloud.azure.delete_role_assignment(SHOP.subscription, REGISTRY, name)


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


def test_what_is_as_granted_is_no_drift() -> None:
    cloud = granted()
    check(cloud)
    assert drifted(record(cloud)) == {}


def test_a_changed_credential_and_a_removed_role_are_drift_until_they_are_put_back() -> None:
    cloud = granted()
    change(cloud)
    remove_role(cloud)
    check(cloud)
    found = drifted(record(cloud))
    assert found[SUBJECT] == (f'"{OURS}"', f'"{THEIRS}"')
    assert found["roleAssignments[pull]"][1] == ""
    assert (credentials(cloud)[NAME]["subject"], assignments(cloud)) == (THEIRS, {})
    change(cloud, OURS)
    push(cloud, files(ACCESS + "  tags: {a: b}\n"))
    cloud.run()
    assert len(assignments(cloud)) == 1
    check(cloud)
    assert drifted(record(cloud)) == {}


def test_a_removed_credential_is_drift_and_nobody_is_named_who_removed_it() -> None:
    cloud = granted("  drift: {action: propose}\n")
    with cloud.azure.called_by("ann@example.com"):
        cloud.azure.delete_federated_credential(*PLACE, NAME)
    with cloud.azure.called_by("bob@example.com"):
        tag_by_hand(cloud, ONE, own="x")
    check(cloud)
    drift = record(cloud).drift
    assert drift is not None
    field = next(each for each in drift.fields if each.path == "federatedCredentials[shop]")
    assert (field.action, field.by) == ("report", "")
    assert field.note == "no pull request: a federated credential is taken into the manifest by hand"


def test_grants_are_corrected_where_the_policy_of_drift_says_so() -> None:
    cloud = granted(CORRECT)
    change(cloud)
    remove_role(cloud)
    check(cloud)
    cloud.run()
    assert credentials(cloud)[NAME]["subject"] == OURS
    assert len(assignments(cloud)) == 1
    assert drifted(record(cloud)) == {}


def test_grants_that_are_exempt_are_left_alone_by_the_correction_of_a_tag() -> None:
    fields = "[federatedCredentials, roleAssignments]"
    rule = f"{{name: a, fields: {fields}, action: ignore, owner: a, reason: b, expires: '2030-01-01'}}"
    cloud = granted(f"  tags: {{cost: a}}\n  drift: {{action: correct, rules: [{rule}]}}\n")
    change(cloud)
    remove_role(cloud)
    check(cloud)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    live = cloud.azure.peek(ONE)
    assert live is not None
    assert live["tags"]["cost"] == "a"
    assert credentials(cloud)[NAME]["subject"] == THEIRS
    assert assignments(cloud) == {}
    assert drifted(record(cloud)) == {}


def test_a_role_under_another_name_is_no_drift_because_a_job_leaves_it_too() -> None:
    cloud = granted()
    ((_, properties),) = assignments(cloud).items()
    remove_role(cloud)
    other = "00000000-0000-0000-0000-0000000000aa"
    body = {"properties": {key: properties[key] for key in ("roleDefinitionId", "principalId")}}
    cloud.azure.put_role_assignment(SHOP.subscription, REGISTRY, other, body)
    check(cloud)
    assert drifted(record(cloud)) == {}


def test_an_identity_that_no_longer_exists_is_drift_that_no_job_can_correct() -> None:
    cloud = granted(CORRECT)
    cloud.azure.delete_identity(*PLACE)
    check(cloud)
    drift = record(cloud).drift
    assert drift is not None
    (field,) = drift.fields
    assert (field.path, field.action) == ("federatedCredentials[shop]", "report")
    assert phases(cloud) == {"one": Phase.READY}


@pytest.mark.parametrize("failing", [ListFederatedCredentials, ListRoleAssignments])
def test_a_read_that_fails_decides_nothing(
    failing: type[AzureCall[Any]],
) -> None:
    cloud = granted()
    change(cloud)
    remove_role(cloud)
    check(cloud)
    before = drifted(record(cloud))

    def fail(_: object) -> None:
        raise Unavailable("try again")

    on_azure(cloud, failing, fail)
    change(cloud, OURS)
    check(cloud)
    assert drifted(record(cloud)) == before != {}


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
