"""What a system pulls besides git over HTTPS, and as whose identity: the team's, and never the platform's."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.resource_ids import ObjectRef
from tests.support.flux_components import FILE
from tests.support.pulling_systems import AZURE, OCI, TEAM, brought, pulling, with_artifact
from tests.support.sources import CLIENT
from tests.support.team_systems import DEPLOYMENT, URL, cluster_id, objects

pytestmark = pytest.mark.lives

WEB = ObjectRef("apps/v1", "Deployment", "web", "shop")
CONTAINER = "https://store.blob.core.windows.net, bucketName: shop"
SECRET = ObjectRef("v1", "Secret", "git", "shop")


def runs(cloud: MemoryCloud) -> bool:
    """Return whether Flux has applied what the team has."""
    return cloud.kubernetes.connect(cluster_id("one")).get(WEB) is not None


def doing(cloud: MemoryCloud) -> str:
    why = why_view("one", cloud.ports)
    assert why is not None
    return str(why["doing"])


def test_a_system_pulls_an_artifact_and_moves_there_from_git_with_its_own_objects_only() -> None:
    cloud = with_artifact()
    assert brought(cloud, pulling(URL)) is Phase.READY
    before = set(objects(cloud, "one", "shop"))
    uid = live(cloud, WEB)
    assert brought(cloud, pulling(OCI)) is Phase.READY
    after = set(objects(cloud, "one", "shop"))
    assert before - after == {"GitRepository shop/shop"}
    assert after - before == {"OCIRepository shop/shop"}
    assert live(cloud, WEB) == uid


def live(cloud: MemoryCloud, ref: ObjectRef) -> str:
    found = cloud.kubernetes.connect(cluster_id("one")).get(ref)
    assert found is not None
    return str(found["metadata"]["uid"])


def test_a_private_registry_lets_the_teams_identity_in() -> None:
    cloud = with_artifact()
    cloud.stores.registry.users, cloud.stores.registry.identities = {}, (TEAM,)
    assert brought(cloud, pulling(f"{OCI}, {AZURE}")) is Phase.READY
    assert runs(cloud)


def test_a_system_does_not_get_what_only_the_platforms_identity_may_read() -> None:
    cloud = with_artifact()
    cloud.stores.registry.users, cloud.stores.registry.identities = {}, (CLIENT,)
    assert brought(cloud, pulling(f"{OCI}, {AZURE}"), 300) is not Phase.READY
    assert "the system shop of shop-team@example.com: OCIRepository shop/shop" in doing(cloud)
    assert not runs(cloud)


def test_a_flux_without_the_feature_gate_does_not_fall_back_to_its_own_identity() -> None:
    cloud = with_artifact()
    cloud.stores.registry.users, cloud.stores.registry.identities = {}, (CLIENT, TEAM)
    files = pulling(f"{OCI}, {AZURE}")
    files[FILE] = files[FILE].replace(b"source-controller:v1.7.0", b"source-controller:v1.6.2")
    manifest = files["clusters/one/cluster.yaml"]
    files["clusters/one/cluster.yaml"] = manifest.replace(b"  flux: {", b"  flux: {lockdown: false, ")
    assert brought(cloud, files, 300) is not Phase.READY
    assert "FeatureGateDisabled" in doing(cloud)
    why = why_view("one", cloud.ports)
    assert why is not None
    assert "feature gate ObjectLevelWorkloadIdentity" in why["suggestedAction"]
    assert not runs(cloud)


@pytest.mark.parametrize(("readers", "ready"), [({TEAM}, True), ({CLIENT}, False)])
def test_a_container_is_read_as_the_team(readers: set[str], ready: bool) -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.stores.containers["shop"], cloud.stores.readers = {"apps/shop/web.yaml": DEPLOYMENT}, readers
    phase = brought(cloud, pulling(f"{CONTAINER}, {AZURE}"), 300)
    assert (phase is Phase.READY, runs(cloud)) == (ready, ready)
