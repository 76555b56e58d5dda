"""What a cluster grants to identities: written once, changed where it differs, removed with git."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from localcloud.azure.world.access.role_assignments import ROLES
from localcloud.memory.memory_cloud import MemoryCloud
from shared.azure.companions.identity_access import credential_name
from shared.cluster.failures.errors import from_http
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.ports.azure import PutRoleAssignment, WriteResponse
from tests.support import fleet_files
from tests.support.identity_access import (
    ACCESS,
    CREDENTIAL,
    ISSUER,
    REGISTRY,
    ROLE,
    SECOND_CREDENTIAL,
    SECOND_ROLE,
    SHOP,
    access_writes,
    assignments,
    credentials,
    with_identity,
)
from tests.support.one_cluster import ONE, advice, cluster, files, pool, record
from tests.support.pipeline_runs import phases, push, status
from tests.support.replaced_ports import on_azure

pytestmark = pytest.mark.lives

NAME = credential_name(ONE, "shop")
PLACE = SHOP.subscription, SHOP.resource_group, SHOP.name


def granted(extra: str = ACCESS) -> MemoryCloud:
    """Return a cloud in which the cluster is Ready with what its identities may do."""
    cloud = with_identity()
    push(cloud, files(extra))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    return cloud


def after(cloud: MemoryCloud, extra: str) -> MemoryCloud:
    """Push another manifest, and run until the cluster is Ready."""
    push(cloud, files(extra))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    return cloud


def by_hand(cloud: MemoryCloud, name: str, subject: str) -> None:
    """Create a federated credential as a person does."""
    properties = {"issuer": "https://example.com/", "subject": subject, "audiences": ["x"]}
    cloud.azure.identities.put_federated_credential(*PLACE, name, {"properties": properties})


def test_a_service_account_may_act_as_the_identity_and_the_kubelets_have_their_role() -> None:
    cloud = granted()
    shown = cluster(cloud)["properties"]
    assert credentials(cloud) == {
        NAME: {
            "issuer": shown["oidcIssuerProfile"]["issuerURL"],
            "subject": "system:serviceaccount:shop:api",
            "audiences": ["api://AzureADTokenExchange"],
        }
    }
    (assignment,) = assignments(cloud).values()
    assert assignment["scope"] == REGISTRY
    assert assignment["principalId"] == shown["identityProfile"]["kubeletidentity"]["objectId"]
    assert assignment["roleDefinitionId"].endswith(ROLES["AcrPull"])
    assert assignment["description"].startswith("Roadstead: AcrPull for kubelet, pull of one;")
    condition = record(cloud).condition("IdentityAccessSet")
    assert condition is not None
    assert condition.message == "wrote 1 federated credential: shop; wrote 1 role assignment: pull"


def test_a_cluster_that_gets_an_issuer_later_gets_its_credential_too() -> None:
    cloud = granted("")
    after(cloud, ACCESS)
    assert list(credentials(cloud)) == [NAME]


def test_a_second_job_writes_nothing_of_it() -> None:
    cloud = granted()
    before = access_writes(cloud)
    after(cloud, pool() + ACCESS)
    assert access_writes(cloud) == before == ["put-federated-credential", "put-role-assignment"]


def test_a_cluster_without_entries_costs_no_call() -> None:
    cloud = granted("")
    condition = record(cloud).condition("IdentityAccessSet")
    assert condition is not None
    assert condition.message == ""
    assert not access_writes(cloud)


@pytest.mark.parametrize(
    ("identity", "expected"), [("controlPlane", "principalId"), (SHOP.resource, "identity")]
)
def test_a_role_is_for_the_identity_that_the_manifest_names(identity: str, expected: str) -> None:
    cloud = granted(ROLE.replace("identity: kubelet", f"identity: {identity}"))
    own = cluster(cloud)["identity"]["principalId"]
    shop = cloud.azure.identities.get_identity(*PLACE)["properties"]["principalId"]
    (assignment,) = assignments(cloud).values()
    assert assignment["principalId"] == {"principalId": own, "identity": shop}[expected]


def test_what_somebody_changed_or_removed_is_written_again_by_the_next_job() -> None:
    cloud = granted()
    (name,) = assignments(cloud)
    cloud.azure.roles.delete_role_assignment(SHOP.subscription, REGISTRY, name)
    by_hand(cloud, NAME, "system:serviceaccount:other:api")
    after(cloud, pool() + ACCESS)
    assert credentials(cloud)[NAME]["subject"] == "system:serviceaccount:shop:api"
    assert list(assignments(cloud)) == [name]


def test_entries_that_git_no_longer_has_are_removed_and_nothing_else() -> None:
    cloud = granted()
    by_hand(cloud, "of-a-person", "system:serviceaccount:other:api")
    kubelet = {"principalId": cluster(cloud)["properties"]["identityProfile"]["kubeletidentity"]["objectId"]}
    role = f"/subscriptions/{SHOP.subscription}/providers/x/roleDefinitions/{ROLES['Reader']}"
    theirs = "00000000-0000-0000-0000-000000000009"
    body = {"properties": {**kubelet, "roleDefinitionId": role}}
    cloud.azure.roles.put_role_assignment(SHOP.subscription, REGISTRY, theirs, body)
    after(cloud, ISSUER)
    assert list(credentials(cloud)) == ["of-a-person"]
    assert list(assignments(cloud)) == [theirs]
    assert record(cloud).removals.companions == ()
    condition = record(cloud).condition("IdentityAccessSet")
    assert condition is not None
    assert condition.message == "removed 1 federated credential; removed 1 role assignment"


def test_an_entry_with_another_name_for_the_same_service_account_takes_its_place() -> None:
    cloud = granted()
    after(cloud, ACCESS.replace("name: shop, identity", "name: renamed, identity"))
    assert list(credentials(cloud)) == [credential_name(ONE, "renamed")]


def test_two_entries_that_exchange_their_service_accounts_get_them() -> None:
    cloud = granted(ISSUER + CREDENTIAL + SECOND_CREDENTIAL)
    exchanged = CREDENTIAL.replace("api", "more") + SECOND_CREDENTIAL.replace(
        "serviceAccount: more", "serviceAccount: api"
    )
    after(cloud, ISSUER + exchanged)
    subjects = {
        name: credential["subject"].rpartition(":")[2] for name, credential in credentials(cloud).items()
    }
    assert subjects == {NAME: "more", credential_name(ONE, "more"): "api"}


def test_a_credential_that_somebody_created_for_the_same_counts_and_stays() -> None:
    cloud = granted()
    shown = credentials(cloud)[NAME]
    cloud.azure.identities.delete_federated_credential(*PLACE, NAME)
    cloud.azure.identities.put_federated_credential(*PLACE, "of-a-person", {"properties": shown})
    after(cloud, pool() + ACCESS)
    assert list(credentials(cloud)) == ["of-a-person"]
    after(cloud, ISSUER)
    assert list(credentials(cloud)) == ["of-a-person"]


def test_another_role_is_assigned_before_the_former_one_is_removed() -> None:
    cloud = granted()
    after(cloud, ACCESS.replace("role: AcrPull", "role: Reader"))
    (assignment,) = assignments(cloud).values()
    assert assignment["roleDefinitionId"].endswith(ROLES["Reader"])
    assert access_writes(cloud)[-2:] == ["put-role-assignment", "delete-role-assignment"]


@pytest.mark.parametrize(
    ("before", "now"), [("name: pull", "name: images"), ("role: AcrPull", f"role: {ROLES['AcrPull']}")]
)
def test_a_role_whose_entry_is_written_otherwise_is_assigned_under_a_new_name(before: str, now: str) -> None:
    cloud = granted()
    (former,) = assignments(cloud)
    after(cloud, ACCESS.replace(before, now))
    (name,) = assignments(cloud)
    assert name != former
    assert assignments(cloud)[name]["roleDefinitionId"].endswith(ROLES["AcrPull"])


def test_an_assignment_that_somebody_created_for_the_same_counts_and_stays() -> None:
    cloud = granted(ISSUER)
    kubelet = cluster(cloud)["properties"]["identityProfile"]["kubeletidentity"]["objectId"]
    role = f"/subscriptions/{SHOP.subscription}/providers/x/roleDefinitions/{ROLES['AcrPull']}"
    theirs = "00000000-0000-0000-0000-000000000009"
    body = {"properties": {"principalId": kubelet, "roleDefinitionId": role}}
    cloud.azure.roles.put_role_assignment(SHOP.subscription, REGISTRY, theirs, body)
    after(cloud, ACCESS)
    assert list(assignments(cloud)) == [theirs]
    after(cloud, ISSUER)
    assert list(assignments(cloud)) == [theirs]


def test_a_cluster_that_was_created_again_gives_its_role_to_its_new_identity() -> None:
    cloud = granted(ISSUER + ROLE.replace("kubelet", "controlPlane"))
    (name,) = assignments(cloud)
    new = "00000000-0000-0000-0000-0000000000cc"
    cloud.azure.engine.cluster(ONE).document["identity"]["principalId"] = new
    after(cloud, pool() + ISSUER + ROLE.replace("kubelet", "controlPlane"))
    assert {key: assignment["principalId"] for key, assignment in assignments(cloud).items()} == {name: new}


def test_a_deleted_cluster_leaves_no_credential_and_no_assignment() -> None:
    cloud = granted()
    by_hand(cloud, "of-a-person", "system:serviceaccount:other:api")
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert list(credentials(cloud)) == ["of-a-person"]
    assert assignments(cloud) == {}


def test_what_an_earlier_commit_granted_goes_with_the_cluster_too() -> None:
    cloud = granted()
    cloud.azure.interventions.stick_next("one")
    push(cloud, files(ISSUER + '  kubernetesVersion: "1.37"\n'))
    cloud.run(seconds=120, until=lambda: False)
    assert len(record(cloud).removals.companions) == 2
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert (credentials(cloud), assignments(cloud)) == ({}, {})


def test_a_cluster_that_is_not_deleted_keeps_what_its_identities_may_do() -> None:
    cloud = granted()
    cloud.azure.patch_cluster(ONE, {"tags": {**cluster(cloud)["tags"], "roadstead-fleet": "another"}})
    cloud.sleep(60)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert len(credentials(cloud)) == len(assignments(cloud)) == 1


def test_two_clusters_that_write_to_one_identity_wait_for_each_other() -> None:
    cloud = with_identity()
    cloud.azure.identities.others_write(*PLACE, times=3)
    push(cloud, files(ACCESS))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert list(credentials(cloud)) == [NAME]


def test_an_identity_that_others_have_filled_is_waited_for_with_what_to_do() -> None:
    cloud = with_identity()
    for number in range(20):
        by_hand(cloud, f"other-{number:02}", f"system:serviceaccount:n{number}:a")
    push(cloud, files(ACCESS))
    cloud.run(seconds=400, until=lambda: False)
    assert record(cloud).job.active
    assert "Too many Federated Identity Credentials" in record(cloud).job.next_run.reason
    assert "Remove some from the identity, or name another" in advice(cloud)
    assert len(credentials(cloud)) == 20
    cloud.azure.identities.delete_federated_credential(*PLACE, "other-00")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert NAME in credentials(cloud)


def test_the_one_too_many_is_refused_in_the_plan_before_any_write_and_what_exists_stays() -> None:
    cloud = with_identity()
    line = CREDENTIAL.splitlines(keepends=True)[1]
    entries = "".join(line.replace("shop,", f"s{n},", 1).replace("api", f"a{n}") for n in range(20))
    full = files(ISSUER + "  federatedCredentials:\n" + entries)
    push(cloud, full)
    cloud.run()
    before = credentials(cloud)
    assert len(before) == 20
    two = fleet_files.cluster("two", extra=ACCESS)
    commit = push(cloud, full | {"clusters/two/cluster.yaml": two})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert credentials(cloud) == before
    state, description = status(cloud, commit)
    assert state == "failure"
    assert "clusters/two/cluster.yaml" in description
    plan = cloud.state.plan(commit)
    assert plan is not None
    (problem,) = plan.plan.problems
    assert problem.endswith("and git has 21: of one (20), two (1); name another identity")


def test_two_clusters_share_an_identity_and_each_removes_its_own() -> None:
    cloud = with_identity()
    both = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=ACCESS) for name in ("one", "two")
    }
    push(cloud, fleet_files.fleet() | both)
    cloud.run()
    assert len(credentials(cloud)) == len(assignments(cloud)) == 2
    push(cloud, fleet_files.fleet() | {"clusters/one/cluster.yaml": both["clusters/one/cluster.yaml"]})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert list(credentials(cloud)) == [NAME]
    assert len(assignments(cloud)) == 1


def test_a_role_that_does_not_exist_fails_the_job_and_an_identity_is_waited_for() -> None:
    cloud = with_identity()
    push(cloud, files(ROLE.replace("AcrPull", "No Such Role")))
    cloud.run()
    failure = record(cloud).job.step.failure
    assert failure is not None
    assert (failure.kind, record(cloud).phase) == ("InvalidManifest", Phase.FAILED)
    assert "there is no role No Such Role in the subscription" in failure.message
    cloud = MemoryCloud(throttle=False)
    push(cloud, files(ACCESS))
    cloud.run(seconds=400, until=lambda: False)
    failure = record(cloud).job.step.failure
    assert failure is not None
    assert failure.kind == "Dependency"
    with_identity(cloud)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_scope_that_does_not_exist_is_waited_for_and_named() -> None:
    """ARM's answer: learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-not-found."""
    cloud = with_identity()
    azure = cloud.ports.azure

    def missing(_: PutRoleAssignment) -> WriteResponse:
        text = "The Resource 'Microsoft.ContainerRegistry/registries/shared' was not found."
        raise from_http(404, "ResourceNotFound", text)

    on_azure(cloud, PutRoleAssignment, missing)
    push(cloud, files(ACCESS))
    cloud.run(seconds=400, until=lambda: False)
    job = record(cloud).job
    assert (job.active, job.restarts, job.step.name) == (True, 0, Step.IDENTITY_ACCESS)
    assert job.step.failure is not None
    assert job.step.failure.kind == "Dependency"
    assert job.step.failure.message.startswith("the place of the role assignment pull does not exist: ")
    on_azure(cloud, PutRoleAssignment, azure.call)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert len(assignments(cloud)) == 1


def test_what_no_record_knows_of_is_found_by_its_name_and_removed() -> None:
    cloud = granted(ISSUER + CREDENTIAL + SECOND_CREDENTIAL + ROLE + SECOND_ROLE)
    assert (len(credentials(cloud)), len(assignments(cloud))) == (2, 2)
    known = record(cloud)
    cloud.state.save(replace(known, document=_without_the_second(known.document)))
    after(cloud, pool() + ACCESS)
    assert list(credentials(cloud)) == [NAME]
    assert len(assignments(cloud)) == 1


def _without_the_second(document: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = {**document["spec"]}
    for field in ("federatedCredentials", "roleAssignments"):
        spec[field] = spec[field][:1]
    return {**document, "spec": spec}
