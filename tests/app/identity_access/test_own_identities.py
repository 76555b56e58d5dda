"""Identities that clusters have for themselves: created first, named by Flux, deleted last, never taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_lockdown import CLIENT_ID, TENANT_ID
from shared.kubernetes.flux_objects import NAMESPACE
from shared.resource_ids import ObjectRef
from tests.support import fleet_files
from tests.support.identity_access import (
    ISSUER,
    OWN,
    OWN_ACCESS,
    OWN_ACTS,
    SHOP,
    assignments,
    credentials,
    with_identity,
)
from tests.support.one_cluster import ONE, advice, files, pool, record
from tests.support.pipeline_runs import phases, push
from tests.support.sources import WITH_IDENTITY
from tests.support.team_systems import cluster_id, system

pytestmark = pytest.mark.lives

PLACE = OWN.subscription, OWN.resource_group
SHOP_PLACE = (*PLACE, SHOP.name)
ACCOUNT = ObjectRef("v1", "ServiceAccount", "source-controller", NAMESPACE)


def identities(cloud: MemoryCloud) -> dict[str, Any]:
    """Return the identities of the group by their names."""
    return {document["name"]: document for document in cloud.azure.identities.inside(*PLACE)}


def fleet(*names: str) -> dict[str, bytes]:
    """Return clusters with the same text in their manifests, each of which has an identity of its own."""
    extra = OWN_ACCESS + OWN_ACTS
    clusters = {f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=extra) for name in names}
    return fleet_files.fleet() | clusters


def ready(*names: str) -> MemoryCloud:
    """Return a cloud in which these clusters are Ready."""
    cloud = with_identity()
    push(cloud, fleet(*names))
    cloud.run()
    assert phases(cloud) == dict.fromkeys(names, Phase.READY)
    return cloud


def account(cloud: MemoryCloud, name: str = "one") -> dict[str, str]:
    """Return the annotations of the account of source-controller."""
    found = cloud.ports.kubernetes.connect(cluster_id(name)).get(ACCOUNT)
    assert found is not None
    return dict(found["metadata"]["annotations"])


def test_more_clusters_than_an_identity_takes_have_one_each_and_flux_acts_as_it() -> None:
    names = [f"c{number}" for number in range(22)]
    cloud = ready(*names)
    found = identities(cloud)
    assert set(found) == {"shop", *(f"flux-{name}" for name in names)}
    for name in names:
        properties = found[f"flux-{name}"]["properties"]
        assert account(cloud, name)[CLIENT_ID] == properties["clientId"]
        roles = [role["principalId"] for role in assignments(cloud).values()]
        assert roles.count(properties["principalId"]) == 1


def test_a_second_job_writes_no_identity() -> None:
    cloud = ready("one")
    push(cloud, fleet_files.fleet() | {"clusters/one/cluster.yaml": _with_pool()})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    own = [write for write in cloud.azure.accepted if write["accepted"] == "put-identity"]
    assert len(own) == 2, "that of the fixture, and that of the cluster"


def _with_pool() -> bytes:
    return fleet_files.cluster("one", extra=pool() + OWN_ACCESS + OWN_ACTS)


def test_the_identity_goes_with_the_cluster_and_what_is_not_ours_stays() -> None:
    cloud = ready("one", "two")
    push(cloud, fleet("two"))
    cloud.run()
    assert phases(cloud) == {"two": Phase.READY}
    assert set(identities(cloud)) == {"shop", "flux-two"}
    assert len(assignments(cloud)) == 1


def test_an_entry_that_git_no_longer_has_takes_its_identity_with_it() -> None:
    cloud = ready("one")
    push(cloud, files(ISSUER))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert set(identities(cloud)) == {"shop"}


def test_an_identity_of_somebody_else_is_not_taken_over_and_not_deleted() -> None:
    cloud = with_identity(identity=OWN)
    push(cloud, fleet("one"))
    cloud.run(seconds=400, until=lambda: False)
    assert (
        record(cloud).job.next_run.reason == "the identity flux-one exists, and is not that of this cluster"
    )
    assert "Choose another name in identities[flux]" in advice(cloud)
    assert not identities(cloud)["flux-one"]["tags"]
    assert f"give it the tag roadstead-of-cluster={ONE.resource.lower()}" in advice(cloud)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert set(identities(cloud)) == {"flux-one"}


def test_an_identity_that_lost_its_tag_is_the_clusters_again_once_somebody_gives_it_back() -> None:
    cloud = ready("one")
    cloud.azure.identities.put_identity(*PLACE, "flux-one", {"location": "eastus"})
    push(cloud, fleet_files.fleet() | {"clusters/one/cluster.yaml": _with_pool()})
    cloud.run(seconds=400, until=lambda: False)
    assert phases(cloud) == {"one": Phase.UPDATING}
    tags = {"roadstead-of-cluster": ONE.resource.lower()}
    cloud.azure.identities.put_identity(*PLACE, "flux-one", {"location": "eastus", "tags": tags})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_an_identity_that_is_gone_is_created_again_with_its_credential_and_flux_gets_the_new_id() -> None:
    cloud = ready("one")
    cloud.azure.identities.delete_identity(*PLACE, "flux-one")
    push(cloud, fleet_files.fleet() | {"clusters/one/cluster.yaml": _with_pool()})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert len(credentials(cloud, OWN)) == 1


def test_an_identity_that_flux_names_and_that_does_not_exist_is_waited_for() -> None:
    cloud = MemoryCloud(throttle=False)
    push(cloud, files(WITH_IDENTITY + OWN_ACTS.replace("flux-{name}", "later")))
    cloud.run(seconds=300, until=lambda: False)
    failure = record(cloud).job.step.failure
    assert failure is not None
    assert failure.kind == "Dependency"
    assert "userAssignedIdentities/later of spec.flux.workloadIdentity does not exist" in failure.message
    with_identity(cloud, replace(OWN, name="later"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_team_that_acts_as_the_identity_of_flux_is_refused_when_azure_shows_who_it_is() -> None:
    cloud = ready("one")
    properties = identities(cloud)["flux-one"]["properties"]
    acts = f"{{clientId: {properties['clientId']}, tenantId: {properties['tenantId']}}}"
    team = system("shop", "one").replace(
        b"path: ./apps/shop", f"path: ./apps/shop, provider: azure, workloadIdentity: {acts}".encode()
    )
    push(cloud, fleet("one") | {"systems/shop.yaml": team})
    cloud.run(seconds=600, until=lambda: False)
    failure = record(cloud).job.step.failure
    assert failure is not None
    assert failure.kind == "InvalidManifest"
    assert failure.message.startswith(
        "spec.source.workloadIdentity of the system shop is the identity of the"
    )


def test_with_systems_flux_names_the_tenant_that_azure_shows() -> None:
    cloud = ready("one")
    push(cloud, fleet("one") | {"systems/shop.yaml": system("shop", "one")})
    cloud.run()
    assert account(cloud)[TENANT_ID] == identities(cloud)["flux-one"]["properties"]["tenantId"]
