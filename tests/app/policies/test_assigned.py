"""Policies of clusters: assigned, changed, removed with them, and never those of others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.one_cluster import ONE, cluster, files, pool, ready, record
from tests.support.pipeline_runs import phases, push
from tests.support.policies import (
    ADDON,
    AUDITED,
    BASELINE,
    DENIED,
    DENY,
    POLICIES,
    PRIVILEGED,
    by_hand,
    change_by_hand,
    policies,
    policy_writes,
)

pytestmark = pytest.mark.lives


def after(cloud: MemoryCloud, extra: str) -> None:
    """Push another manifest, and let its job run to its end."""
    push(cloud, files(extra))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_the_policies_of_a_manifest_are_assigned_to_the_cluster_and_to_nothing_else() -> None:
    cloud = ready(POLICIES)
    assert set(policies(cloud)) == {DENIED, AUDITED}
    denied = policies(cloud)[DENIED]
    assert denied["scope"] == ONE.resource
    assert (denied["policyDefinitionId"], denied["enforcementMode"]) == (PRIVILEGED, "Default")
    assert denied["parameters"] == {
        "effect": {"value": "Deny"},
        "excludedNamespaces": {"value": ["kube-system"]},
    }
    assert denied["displayName"] == "privileged of one (Roadstead)"


def test_a_second_job_writes_nothing() -> None:
    cloud = ready(POLICIES)
    after(cloud, POLICIES + "  tags: {a: b}\n")
    assert policy_writes(cloud) == ["put-policy-assignment"] * 2


def test_a_changed_entry_is_written_once_and_another_definition_is_there_before_the_former_goes() -> None:
    cloud = ready(ADDON + "  policies:\n" + DENY)
    after(cloud, ADDON + "  policies:\n" + DENY.replace("Deny", "Audit"))
    assert policies(cloud)[DENIED]["parameters"]["effect"] == {"value": "Audit"}
    after(cloud, ADDON + "  policies:\n" + DENY.replace(PRIVILEGED, BASELINE))
    (name,) = policies(cloud)
    assert name != DENIED
    assert policy_writes(cloud)[-2:] == ["put-policy-assignment", "delete-policy-assignment"]


def test_an_entry_that_git_no_longer_has_is_removed_and_what_a_person_assigned_stays() -> None:
    cloud = ready(POLICIES)
    by_hand(cloud)
    after(cloud, ADDON + "  policies:\n" + DENY)
    assert set(policies(cloud)) == {DENIED, "of-a-person"}
    after(cloud, pool())
    assert set(policies(cloud)) == {"of-a-person"}
    assert record(cloud).removals.companions == ()


def test_what_no_record_knows_of_is_found_by_its_name_and_removed() -> None:
    cloud = ready(POLICIES)
    known = record(cloud)
    spec = {**known.document["spec"], "policies": known.document["spec"]["policies"][:1]}
    cloud.state.save(replace(known, document={**known.document, "spec": spec}))
    after(cloud, pool() + ADDON + "  policies:\n" + DENY)
    assert set(policies(cloud)) == {DENIED}


def test_a_deleted_cluster_leaves_no_policy_and_takes_none_of_a_person() -> None:
    cloud = ready(POLICIES)
    by_hand(cloud)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert set(policies(cloud)) == {"of-a-person"}


def test_a_cluster_that_is_not_deleted_keeps_its_policies() -> None:
    cloud = ready(POLICIES)
    cloud.azure.patch_cluster(ONE, {"tags": {**cluster(cloud)["tags"], "roadstead-fleet": "another"}})
    cloud.sleep(60)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert set(policies(cloud)) == {DENIED, AUDITED}


def test_clusters_of_one_group_have_policies_of_their_own() -> None:
    cloud = MemoryCloud(throttle=False)
    both = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(
            name, extra="  resourceGroup: rg-both\n" + POLICIES
        ).replace(f"  resourceGroup: rg-{name}\n".encode(), b"")
        for name in ("one", "two")
    }
    push(cloud, fleet_files.fleet() | both)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert len(policies(cloud)) == 4
    push(cloud, fleet_files.fleet() | {"clusters/one/cluster.yaml": both["clusters/one/cluster.yaml"]})
    cloud.run()
    assert {policy["scope"].rpartition("/")[2] for policy in policies(cloud).values()} == {"one"}
    assert len(policies(cloud)) == 2


def test_a_definition_that_does_not_exist_is_waited_for_and_a_wrong_parameter_fails_the_job() -> None:
    cloud = MemoryCloud(throttle=False)
    push(cloud, files(ADDON + "  policies:\n" + DENY.replace(PRIVILEGED, PRIVILEGED[:-1] + "0")))
    cloud.run(seconds=400, until=lambda: False)
    failure = record(cloud).job.step.failure
    assert failure is not None
    assert (failure.kind, "could not be found" in failure.message) == ("Dependency", True)
    push(cloud, files(ADDON + "  policies:\n" + DENY.replace("}\n", ", parameters: {nothing: 1}}\n")))
    cloud.run()
    failure = record(cloud).job.step.failure
    assert failure is not None
    assert (record(cloud).phase, failure.kind) == (Phase.FAILED, "InvalidManifest")
    assert "'nothing' which are not defined" in failure.message
    after(cloud, POLICIES)
    assert set(policies(cloud)) == {DENIED, AUDITED}


@pytest.mark.parametrize(
    "changed",
    [
        {"parameters": {"effect": {"value": "Audit"}, "excludedNamespaces": {"value": ["kube-system"]}}},
        {"enforcementMode": "DoNotEnforce"},
        {"notScopes": [f"{ONE.resource}/agentPools/apps"]},
        {"overrides": [{"kind": "policyEffect", "value": "disabled"}]},
        {"resourceSelectors": [{"name": "a", "selectors": []}]},
    ],
)
def test_whatever_somebody_changed_of_an_assignment_is_written_again_by_the_next_job(
    changed: dict[str, object],
) -> None:
    cloud = ready(POLICIES)
    before = policies(cloud)[DENIED]
    change_by_hand(cloud, DENIED, **changed)
    after(cloud, POLICIES + "  tags: {a: b}\n")
    written = policies(cloud)[DENIED]
    assert {**written, "notScopes": written["notScopes"] or []} == before
