"""What a team tries from its own repository, and what Flux's lock-down and Kubernetes' RBAC answer.

The kustomize-controller of the local cloud applies with the rights of the service account
(``localcloud/kubernetes/world/rbac.py`` names whose rules these are).
"""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.kubernetes.flux_lockdown import FLAGS
from shared.kubernetes.flux_objects import KUSTOMIZATION, SOURCE
from shared.resource_ids import ObjectRef
from tests.support.pipeline_runs import cloud_with, phases, push
from tests.support.pulling_systems import ROLES
from tests.support.team_systems import cluster_id, fleet, system

pytestmark = pytest.mark.lives

COMPONENTS = "flux/gotk-components.yaml"
PAY = {"shop": system("shop", "one", namespaces="shop, shop-jobs"), "pay": system("pay", "one")}
CHILD = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: child, namespace: {namespace}}}
spec: {{interval: 1m, path: ./reach, prune: true, sourceRef: {source}{account}}}
"""
OWN_SOURCE = "{kind: GitRepository, name: shop}"
MAP = "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: reached, namespace: {}}}}}"
WEB = {"apps/shop/web.yaml": b"{apiVersion: v1, kind: ConfigMap, metadata: {name: own, namespace: shop}}"}


def tried(manifest: str, *, reach: str = "", more: str = "") -> MemoryCloud:
    """Return a cloud in which the team shop has this in its repository; ``reach`` is what a child applies."""
    cloud = MemoryCloud(throttle=False)
    files = fleet("one", systems=PAY) | WEB
    files["fleet.yaml"] += more.encode()
    files[COMPONENTS] += ROLES.encode()
    push(cloud, files)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    files |= {"apps/shop/tried.yaml": manifest.encode()} | (
        {"reach/reach.yaml": reach.encode()} if reach else {}
    )
    push(cloud, files)
    cloud.run(seconds=60)
    for _ in range(12):
        cloud.sleep(10)
    return cloud


def condition(cloud: MemoryCloud, name: str = "shop") -> str:
    """Return what Flux says of a Kustomization in the team's namespace."""
    found = live(cloud, ObjectRef(KUSTOMIZATION.api_version, "Kustomization", name, "shop"))
    ready = next(document for document in found["status"]["conditions"] if document["type"] == "Ready")
    return f"{ready['status']} {ready['reason']}: {ready['message']}"


def live(cloud: MemoryCloud, ref: ObjectRef) -> Json:
    found = cloud.kubernetes.connect(cluster_id("one")).get(ref)
    assert found is not None
    return found


def reached(cloud: MemoryCloud, namespace: str) -> bool:
    api = cloud.kubernetes.connect(cluster_id("one"))
    return api.get(ObjectRef("v1", "ConfigMap", "reached", namespace)) is not None


@pytest.mark.parametrize("namespace", ["pay", "flux-system", "platform", "default", "kube-system"])
def test_a_team_cannot_write_to_a_namespace_that_is_not_its_own(namespace: str) -> None:
    cloud = tried(MAP.format(namespace))
    text = f'cannot get resource "configmaps" in API group "" in the namespace "{namespace}"'
    assert 'User "system:serviceaccount:shop:shop"' in condition(cloud)
    assert text in condition(cloud)
    assert not reached(cloud, namespace)


def test_a_team_can_write_to_each_of_its_own_namespaces() -> None:
    cloud = tried(MAP.format("shop-jobs"))
    assert condition(cloud).startswith("True ReconciliationSucceeded")
    assert reached(cloud, "shop-jobs")


@pytest.mark.parametrize(
    ("manifest", "resource"),
    [
        ("{apiVersion: v1, kind: Namespace, metadata: {name: more}}", "namespaces"),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, rules: []}",
            "clusterroles",
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: all}, "
            "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, "
            "subjects: [{kind: ServiceAccount, name: shop, namespace: shop}]}",
            "clusterrolebindings",
        ),
        (
            "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: "
            "{pod-security.kubernetes.io/enforce: privileged}}}",
            "namespaces",
        ),
        (
            "{apiVersion: v1, kind: ResourceQuota, metadata: {name: roadstead, namespace: shop}, spec: {}}",
            "resourcequotas",
        ),
        (
            "{apiVersion: v1, kind: LimitRange, metadata: {name: mine, namespace: shop}, spec: {limits: []}}",
            "limitranges",
        ),
    ],
)
def test_a_team_cannot_change_what_confines_it_or_the_whole_cluster(manifest: str, resource: str) -> None:
    cloud = tried(manifest)
    assert condition(cloud).startswith("False ReconciliationFailed")
    assert f'resource "{resource}"' in condition(cloud)
    assert "is forbidden" in condition(cloud)


def test_a_kustomization_of_a_team_that_names_no_account_has_no_rights() -> None:
    child = CHILD.format(namespace="shop", source=OWN_SOURCE, account="")
    cloud = tried(child, reach=MAP.format("pay"))
    assert condition(cloud).startswith("True")
    assert 'User "system:serviceaccount:shop:default"' in condition(cloud, "child")
    assert not reached(cloud, "pay")


def test_a_kustomization_of_a_team_with_its_own_account_stays_in_its_namespaces() -> None:
    child = CHILD.format(namespace="shop", source=OWN_SOURCE, account=", serviceAccountName: shop")
    cloud = tried(child, reach=MAP.format("pay"))
    assert "is forbidden" in condition(cloud, "child")
    assert not reached(cloud, "pay")


def test_a_team_cannot_use_the_source_of_another_namespace() -> None:
    source = "{kind: GitRepository, name: flux-system, namespace: flux-system}"
    child = CHILD.format(namespace="shop", source=source, account=", serviceAccountName: shop")
    cloud = tried(child, reach=MAP.format("shop"))
    blocked = (
        "can't access 'GitRepository/flux-system/flux-system', cross-namespace references have been blocked"
    )
    assert condition(cloud, "child") == f"False AccessDenied: {blocked}"
    assert not reached(cloud, "shop")


def test_a_team_cannot_put_a_kustomization_into_the_namespace_of_flux() -> None:
    account = ", serviceAccountName: kustomize-controller"
    child = CHILD.format(
        namespace="flux-system", source="{kind: GitRepository, name: flux-system}", account=account
    )
    cloud = tried(child, reach=MAP.format("pay"))
    assert 'resource "kustomizations"' in condition(cloud)
    assert not reached(cloud, "pay")


def test_without_the_lock_down_a_kustomization_without_an_account_could_reach_everything() -> None:
    child = CHILD.format(namespace="shop", source=OWN_SOURCE, account="")
    cloud = tried(child, reach=MAP.format("pay"), more="      lockdown: false\n")
    assert condition(cloud, "child").startswith("True")
    assert reached(cloud, "pay")


def test_the_platform_keeps_its_rights_and_a_cluster_without_systems_its_flux() -> None:
    cloud = cloud_with(fleet("one", "two", systems=PAY) | WEB, throttle=False)
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    for name, locked in (("one", True), ("two", False)):
        api = cloud.kubernetes.connect(cluster_id(name))
        controller = api.get(ObjectRef("apps/v1", "Deployment", "kustomize-controller", "flux-system"))
        platform = api.get(KUSTOMIZATION)
        assert controller is not None
        assert platform is not None
        args = controller["spec"]["template"]["spec"]["containers"][0]["args"]
        assert (
            {*FLAGS["kustomize-controller"]} <= {*args}
            if locked
            else not {*FLAGS["kustomize-controller"]} & {*args}
        )
        assert (platform["spec"].get("serviceAccountName") == "kustomize-controller") is locked
        assert api.get(SOURCE) is not None
