"""The identity as which the platform's Flux pulls: a team cannot act as it through objects of its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.plan.holds import HoldKind
from shared.resource_ids import ObjectRef
from tests.support.flux_components import FILE
from tests.support.one_cluster import record
from tests.support.operator_clusters import SHOP, instance, operated, running
from tests.support.pipeline_runs import phases, push
from tests.support.pulling_systems import AZURE, OCI, ROLES, TEAM, brought, pulling, with_artifact
from tests.support.sources import CLIENT, WITH_IDENTITY
from tests.support.team_systems import DEPLOYMENT, URL, cluster_id

pytestmark = pytest.mark.lives

SOURCES = "source.toolkit.fluxcd.io/v1"
OWN = ObjectRef(SOURCES, "OCIRepository", "own", "shop")
REACHES_OUT = f"""\
apiVersion: {SOURCES}
kind: OCIRepository
metadata: {{name: own, namespace: shop}}
spec: {{interval: 1m, url: {OCI}, provider: azure}}
"""
GATE = "--feature-gates=ObjectLevelWorkloadIdentity=true"


def found(cloud: MemoryCloud, ref: ObjectRef) -> Json:
    live = cloud.kubernetes.connect(cluster_id("one")).get(ref)
    assert live is not None
    return live


def arguments(cloud: MemoryCloud, controller: str) -> Sequence[str]:
    deployment = found(cloud, ObjectRef("apps/v1", "Deployment", controller, "flux-system"))
    args: Sequence[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return args


def with_platforms_registry() -> MemoryCloud:
    """Return a cloud with an artifact that only the platform's identity may read."""
    cloud = with_artifact()
    cloud.stores.registry.users, cloud.stores.registry.identities = {}, (CLIENT,)
    return cloud


def fleet(*, flux: str = "") -> dict[str, bytes]:
    """Return a fleet whose Flux has an identity, with a team that has a source of its own."""
    files = pulling(URL)
    files[FILE] += ROLES.encode()
    files["clusters/one/cluster.yaml"] = files["clusters/one/cluster.yaml"].replace(
        b"clientId: " + CLIENT.encode() + b"}", b"clientId: " + CLIENT.encode() + b"}" + flux.encode()
    )
    return files | {"apps/shop/web.yaml": DEPLOYMENT, "apps/shop/tried.yaml": REACHES_OUT.encode()}


def refused(cloud: MemoryCloud, files: dict[str, bytes]) -> str:
    """Return why a plan of these files refuses what Flux would apply; the cluster is not created."""
    commit = push(cloud, files)
    cloud.run(seconds=60)
    assert phases(cloud) == {}
    stored = cloud.state.plan(commit)
    assert stored is not None
    (hold,) = (item.hold for item in stored.plan.items)
    assert hold is not None
    assert hold.kind is HoldKind.PLATFORM_REFUSED
    return hold.details["problem"]


def ready(cloud: MemoryCloud, ref: ObjectRef) -> str:
    conditions = found(cloud, ref)["status"]["conditions"]
    one = next(condition for condition in conditions if condition["type"] == "Ready")
    return f"{one['status']} {one['reason']}: {one['message']}"


def test_a_source_of_a_team_that_names_no_account_is_not_pulled_as_the_platform() -> None:
    cloud = with_platforms_registry()
    brought(cloud, fleet(), 300)
    assert "azure tenant ID is not set in the service account annotation" in ready(cloud, OWN)
    assert ready(cloud, OWN).startswith("False AuthenticationFailed")


def test_without_the_lock_down_it_would_be() -> None:
    cloud = with_platforms_registry()
    brought(cloud, fleet(flux=", lockdown: false"), 300)
    assert ready(cloud, OWN).startswith("True")


def test_the_controllers_get_the_gate_and_the_accounts_and_these_the_tenant() -> None:
    cloud = with_platforms_registry()
    brought(cloud, fleet(), 300)
    assert {GATE, "--default-service-account=default"} <= {*arguments(cloud, "source-controller")}
    assert {
        GATE,
        "--default-decryption-service-account=default",
        "--default-kubeconfig-service-account=default",
    } <= {*arguments(cloud, "kustomize-controller")}
    account = found(cloud, ObjectRef("v1", "ServiceAccount", "source-controller", "flux-system"))
    annotations = account["metadata"]["annotations"]
    assert annotations["azure.workload.identity/client-id"] == CLIENT
    assert (
        annotations["azure.workload.identity/tenant-id"]
        == (record(cloud).observation.facts or {})["cluster_tenant_id"]
    )


def test_the_platforms_own_sources_are_still_pulled_as_its_identity() -> None:
    cloud = with_platforms_registry()
    own = f", sources: [{{name: base, kind: OCIRepository, url: {OCI}, provider: azure}}]"
    files = fleet(flux=own)
    del files["apps/shop/tried.yaml"]
    assert brought(cloud, files) is Phase.READY
    base = ObjectRef(SOURCES, "OCIRepository", "base", "flux-system")
    assert ready(cloud, base).startswith("True")
    assert found(cloud, base)["spec"]["serviceAccountName"] == "source-controller"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"source-controller:v1.7.0", b"source-controller:v1.6.2", "source-controller: its image has no"),
        (b"source-controller:v1.7.0", b"source-controller@sha256:0a", "pin Flux 2.7 or later"),
        (
            b"          args:\n",
            b"          args:\n            - --feature-gates=ObjectLevelWorkloadIdentity=false\n",
            "the feature gate ObjectLevelWorkloadIdentity is false",
        ),
    ],
)
def test_a_flux_that_cannot_keep_its_identity_is_refused_and_says_why(
    old: bytes, new: bytes, said: str
) -> None:
    cloud, files = with_platforms_registry(), fleet()
    files[FILE] = files[FILE].replace(old, new)
    problem = refused(cloud, files)
    assert said in problem
    assert "spec.flux.workloadIdentity" in problem
    files["clusters/one/cluster.yaml"] = files["clusters/one/cluster.yaml"].replace(
        f"workloadIdentity: {{clientId: {CLIENT}}}".encode(), b"lockdown: true"
    )
    del files["apps/shop/tried.yaml"]
    assert brought(cloud, files) is Phase.READY


def test_the_gate_comes_with_a_system_that_has_an_identity() -> None:
    cloud = with_artifact()
    cloud.stores.registry.users, cloud.stores.registry.identities = {}, (TEAM,)
    files = pulling(f"{OCI}, {AZURE}")
    files["clusters/one/cluster.yaml"] = files["clusters/one/cluster.yaml"].replace(
        f"workloadIdentity: {{clientId: {CLIENT}}}".encode(), b"lockdown: true"
    )
    assert brought(cloud, files) is Phase.READY
    assert GATE in arguments(cloud, "source-controller")
    assert "--default-service-account=default" not in arguments(cloud, "source-controller")


def test_the_operator_is_asked_to_keep_the_identity() -> None:
    cloud = running(operated_as_identity())
    assert instance(cloud)["spec"]["cluster"] == {
        "multitenant": True,
        "objectLevelWorkloadIdentity": True,
        "multitenantWorkloadIdentity": True,
    }
    assert {GATE, "--default-service-account=default"} <= {*arguments(cloud, "source-controller")}


def operated_as_identity(version: str = "2.7.x") -> dict[str, bytes]:
    """Return a fleet whose Flux the operator installs and has an identity, on a cluster with a system."""
    named = f"install: operator, workloadIdentity: {{clientId: {CLIENT}}}".encode()
    files = operated(version, extra=WITH_IDENTITY) | {"systems/shop.yaml": SHOP, "deploy/a.yaml": DEPLOYMENT}
    return {path: content.replace(b"install: operator", named) for path, content in files.items()}


def test_an_operator_for_a_flux_that_cannot_keep_its_identity_is_refused() -> None:
    cloud = MemoryCloud(throttle=False)
    assert "spec.flux.instance.distribution.version is 2.6.x" in refused(cloud, operated_as_identity("2.6.x"))
    assert brought(cloud, operated_as_identity("2.7.x")) is Phase.READY


def test_an_operator_whose_definition_lacks_the_field_is_refused_because_the_field_would_be_dropped() -> None:
    cloud, files = MemoryCloud(throttle=False), operated_as_identity()
    whole = b'"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}'
    path = next(name for name in files if name.endswith("flux-operator.yaml"))
    assert whole in files[path]
    fields = b'{"type": "object", "properties": {"cluster": {"type": "object", "properties": {}}}}'
    files[path] = files[path].replace(whole, b'"spec": ' + fields)
    assert "this Flux Operator has no multitenantWorkloadIdentity" in refused(cloud, files)


def test_the_tenant_that_the_manifest_gives_comes_before_that_of_the_cluster() -> None:
    cloud, files = with_platforms_registry(), fleet()
    files["clusters/one/cluster.yaml"] = files["clusters/one/cluster.yaml"].replace(
        f"clientId: {CLIENT}".encode(), f"clientId: {CLIENT}, tenantId: {TEAM}".encode()
    )
    brought(cloud, files, 300)
    account = found(cloud, ObjectRef("v1", "ServiceAccount", "kustomize-controller", "flux-system"))
    assert account["metadata"]["annotations"]["azure.workload.identity/tenant-id"] == TEAM
