"""The example with a platform in layers: from one commit to clusters that have everything."""

from __future__ import annotations

import base64

import pytest

from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.object_store import At, Object
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from tests.support.identity_access import with_identity
from tests.support.pipeline_runs import cloud_with, phases, push, status
from tests.support.platform_example import platform_example
from tests.support.policies import policies
from tests.support.service_operator import ORDERS, SERVER, operator_files
from tests.support.team_systems import cluster_id

pytestmark = pytest.mark.lives

TOKEN = "a-token-that-git-keeps-encrypted"
BALTIC = "clusters/baltic-aks/cluster.yaml"
_KINDS = {kind.kind: kind for kind in BUILT_IN}


@pytest.fixture
def files() -> dict[str, bytes]:
    return platform_example()


def found(cloud: MemoryCloud, cluster: str, kind: str, name: str, namespace: str = "") -> Object | None:
    world = cloud.kubernetes.world(cluster_id(cluster))
    assert world is not None
    return world.find(At(_KINDS[kind], name, namespace))


def test_one_commit_makes_every_cluster_ready_with_its_layers_and_its_systems(
    files: dict[str, bytes],
) -> None:
    cloud = MemoryCloud()
    commit = push(cloud, files)
    cloud.run()
    assert phases(cloud) == {"adriatic-aks": Phase.READY, "baltic-aks": Phase.READY}
    assert status(cloud, commit)[0] == "success"
    for cluster in ("adriatic-aks", "baltic-aks"):
        edge = found(cloud, cluster, "Deployment", "edge", "edge")
        assert edge is not None
        assert edge["spec"]["template"]["spec"]["containers"][0]["env"] == [
            {"name": "HOST", "value": f"{cluster}.example.com"}
        ]
        token = found(cloud, cluster, "Secret", "metrics-token", "metrics")
        assert token is not None
        assert base64.b64decode(token["data"]["token"]).decode() == TOKEN
        assert found(cloud, cluster, "Secret", "sealed-secrets-key", "sealed-secrets") is not None
    on = {
        name: [
            team for team in ("shop", "billing", "sandbox") if found(cloud, name, "Deployment", team, team)
        ]
        for name in ("adriatic-aks", "baltic-aks")
    }
    assert on == {"adriatic-aks": ["sandbox"], "baltic-aks": ["shop", "billing"]}


def test_a_database_of_a_team_and_a_policy_belong_to_it(files: dict[str, bytes]) -> None:
    cloud = with_identity(identity=ORDERS)
    more = {path: text for path, text in operator_files().items() if not path.startswith("clusters/")}
    cluster = files[BALTIC].replace(b"spec:", b"spec:\n  class: databases")
    commit = push(cloud, {**files, **more, BALTIC: cluster})
    cloud.run(seconds=3600)
    assert phases(cloud) == {"adriatic-aks": Phase.READY, "baltic-aks": Phase.READY}
    assert status(cloud, commit)[0] == "success"
    server = cloud.kubernetes.connect(cluster_id("baltic-aks")).get(SERVER)
    assert server is not None
    (policy,) = policies(cloud).values()
    assert policy["parameters"]["effect"] == {"value": "Deny"}


def test_another_job_of_the_cluster_writes_none_of_it_again(files: dict[str, bytes]) -> None:
    cloud = cloud_with(files)
    before = versions(cloud)
    assert len(before) > 30
    again = push(cloud, files | {BALTIC: tagged(files)})
    cloud.run()
    assert status(cloud, again)[0] == "success"
    assert versions(cloud) == before


def test_a_team_that_reaches_out_of_its_namespace_is_refused_and_named(files: dict[str, bytes]) -> None:
    cloud = cloud_with(files)
    stolen = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: stolen}\n"
    files = files | {"teams/shop/stolen.yaml": stolen}
    push(cloud, files)  # which the system's source pulls by itself
    cloud.run(seconds=120, until=lambda: False)
    push(cloud, files | {BALTIC: tagged(files)})
    cloud.run(seconds=1200)
    why = why_view("baltic-aks", cloud.ports)
    assert why is not None
    assert "the system shop of shop-team@example.com: Kustomization shop/shop" in why["doing"]
    assert found(cloud, "baltic-aks", "Namespace", "stolen") is None
    push(cloud, {path: text for path, text in files.items() if text != stolen} | {BALTIC: tagged(files)})
    cloud.run()
    assert phases(cloud) == {"adriatic-aks": Phase.READY, "baltic-aks": Phase.READY}


def versions(cloud: MemoryCloud) -> dict[tuple[str, str, str], str]:
    """Return the version of each built-in object in one of the clusters, but for what lives there anyway."""
    world = cloud.kubernetes.world(cluster_id("baltic-aks"))
    assert world is not None
    return {
        (kind.kind, live["metadata"].get("namespace", ""), live["metadata"]["name"]): str(
            live["metadata"]["resourceVersion"]
        )
        for kind in _KINDS.values()
        if kind.kind not in {"Node", "Lease", "Event"}
        for live in world.list(kind)[0]
    }


def tagged(files: dict[str, bytes]) -> bytes:
    return files[BALTIC] + b"  tags: {seen: again}\n"
