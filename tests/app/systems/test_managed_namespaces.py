"""Namespaces of systems that Azure manages: what is in Azure and in the cluster, and who may have them."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.kubernetes.world.object_store import WriteMode
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports.azure import ListManagedNamespaces
from shared.resource_ids import ObjectRef
from tests.support.one_cluster import ENTRA
from tests.support.pipeline_runs import phases, push, record_of
from tests.support.replaced_ports import on_azure
from tests.support.team_systems import DEPLOYMENT, approve, cluster_id, fleet, item, objects, system

pytestmark = pytest.mark.lives

QUOTA = "  quota: {cpu: '0.5', memory: 8Gi, pods: 20}\n"
ONE = cluster_id("one")


def managed(*, namespaces: str = "shop", clusters: str = "one", more: str = "", extra: str = "") -> bytes:
    """Return the system shop with managed namespaces; ``more`` is more of these, as flow YAML."""
    of_azure = f"  managedNamespaces: {{{more}}}\n"
    path = "./teams/two" if "," in namespaces else ""
    return system("shop", clusters, namespaces=namespaces, extra=of_azure + extra, path=path)


def after(cloud: MemoryCloud, shop: bytes | None, *, budget: int = 0, extra: str = "") -> str:
    """Push the system shop, or none; run, and return the commit."""
    files = fleet("one", systems={} if shop is None else {"shop": shop}, budget=budget)
    files["teams/two/web.yaml"] = DEPLOYMENT.replace(b"{name: web}", b"{name: web, namespace: shop}", 1)
    files["clusters/one/cluster.yaml"] += extra.encode()
    commit = push(cloud, files)
    cloud.run()
    return commit


def hydrated(shop: bytes) -> MemoryCloud:
    cloud = MemoryCloud(throttle=False)
    after(cloud, shop)
    assert phases(cloud) == {"one": Phase.READY}
    return cloud


def azure(cloud: MemoryCloud) -> dict[str, Any]:
    """Return the managed namespaces in Azure by name."""
    return {namespace["name"]: namespace for namespace in cloud.azure.list_managed_namespaces(ONE)}


def live(cloud: MemoryCloud, kind: str, name: str, namespace: str = "", api: str = "v1") -> Json | None:
    return cloud.kubernetes.connect(ONE).get(ObjectRef(api, kind, name, namespace))


def writes(cloud: MemoryCloud) -> list[str]:
    return [write["accepted"] for write in cloud.azure.accepted if write["accepted"].endswith("-namespace")]


def by_hand(cloud: MemoryCloud, name: str, **labels: str) -> None:
    """Let somebody create a namespace in the cluster."""
    world = cloud.kubernetes.world(ONE)
    assert world is not None
    kind = world.kind("v1", "Namespace")
    assert kind is not None
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    world.create(kind, "", body, WriteMode(manager="kubectl-create"))


def change_by_hand(cloud: MemoryCloud, **changed: Any) -> None:
    """Let somebody change the namespace shop in Azure."""
    one = azure(cloud)["shop"]
    properties = {k: v for k, v in one["properties"].items() if k != "provisioningState"} | changed
    body = {"location": one["location"], "tags": one["tags"], "properties": properties}
    cloud.azure.put_managed_namespace(ONE, "shop", body)
    cloud.sleep(10)


def why(cloud: MemoryCloud) -> str:
    view = why_view("one", cloud.ports)
    assert view is not None
    return f"{view['doing']} {view['suggestedAction']}"


def test_azure_has_the_namespace_with_quota_policy_and_labels_and_the_cluster_has_the_rest() -> None:
    cloud = hydrated(managed(more="labels: {a: b}, annotations: {c: d}", extra=QUOTA))
    one = azure(cloud)["shop"]
    assert one["tags"] == {
        "roadstead-fleet": "example",
        "roadstead-cluster": "one",
        "roadstead-repository": "example/fleet",
    }
    properties = one["properties"]
    assert properties["defaultResourceQuota"] == {"cpuRequest": "500m", "memoryRequest": "8Gi"}
    assert properties["defaultNetworkPolicy"] == {"ingress": "AllowSameNamespace", "egress": "AllowAll"}
    assert (properties["adoptionPolicy"], properties["deletePolicy"]) == ("Never", "Keep")
    namespace = live(cloud, "Namespace", "shop")
    assert namespace is not None
    labels, annotations = namespace["metadata"]["labels"], namespace["metadata"]["annotations"]
    assert labels["a"] == "b"
    assert annotations["c"] == "d"
    assert labels["toolkit.fluxcd.io/tenant"] == "shop"
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert live(cloud, "ResourceQuota", "defaultresourcequota", "shop") is not None
    assert live(cloud, "NetworkPolicy", "defaultnetworkpolicy", "shop", "networking.k8s.io/v1") is not None
    assert objects(cloud, "one", "shop") == [
        "GitRepository shop/shop",
        "Kustomization shop/shop",
        "Namespace shop",
        "ResourceQuota shop/roadstead",
        "RoleBinding shop/shop-reconciler-admin",
        "ServiceAccount shop/shop",
    ]
    rest = live(cloud, "ResourceQuota", "roadstead", "shop")
    assert rest is not None
    assert rest["spec"]["hard"] == {"pods": "20"}
    assert live(cloud, "Deployment", "web", "shop", "apps/v1") is not None


def test_a_second_job_writes_nothing_and_a_change_one_namespace() -> None:
    cloud = hydrated(managed(namespaces="shop, jobs", extra=QUOTA))
    assert writes(cloud) == ["put-namespace"] * 2
    after(cloud, managed(namespaces="shop, jobs", extra=QUOTA), extra="  tags: {a: b}\n")
    assert writes(cloud) == ["put-namespace"] * 2
    after(cloud, managed(namespaces="shop, jobs", more="egress: DenyAll", extra=QUOTA.replace("8Gi", "16Gi")))
    assert phases(cloud) == {"one": Phase.READY}
    assert writes(cloud) == ["put-namespace"] * 4
    changed = azure(cloud)["jobs"]["properties"]
    assert changed["defaultNetworkPolicy"]["egress"] == "DenyAll"
    assert changed["defaultResourceQuota"]["memoryRequest"] == "16Gi"
    isolated = live(cloud, "NetworkPolicy", "roadstead-isolated", "jobs", "networking.k8s.io/v1")
    assert isolated is not None, "Azure's rule knows one namespace, the system has two"


def test_azure_may_write_a_quantity_in_another_unit() -> None:
    cloud = hydrated(managed(extra=QUOTA))
    change_by_hand(cloud, defaultResourceQuota={"cpuRequest": "0.5", "memoryRequest": "8192Mi"})
    after(cloud, managed(extra=QUOTA), extra="  tags: {a: b}\n")
    assert writes(cloud) == ["put-namespace"] * 2


@pytest.mark.parametrize(
    ("policy", "stays"), [("Keep", True), ("Delete", False)], ids=["Keep stays", "Delete goes"]
)
def test_a_removed_system_waits_for_its_approval_and_then_its_delete_policy_decides(
    policy: str, *, stays: bool
) -> None:
    cloud = hydrated(managed(more=f"deletePolicy: {policy}"))
    after(cloud, None)
    assert item(cloud, "one").needs_approval
    assert set(azure(cloud)) == {"shop"}
    assert writes(cloud) == ["put-namespace"]
    approve(cloud, "one")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert azure(cloud) == {}
    namespace = live(cloud, "Namespace", "shop")
    assert (namespace is not None) is stays
    assert "managedByArm" not in str(namespace)
    assert [name for name in objects(cloud, "one") if name != "Namespace shop"] == []
    assert live(cloud, "Deployment", "web", "shop", "apps/v1") is None
    assert writes(cloud) == ["put-namespace", "delete-namespace"]
    record = record_of(cloud, "one")
    assert record.removals.companions == ()


def test_a_namespace_that_git_keeps_stays_although_somebody_lets_azure_delete_it() -> None:
    cloud = hydrated(managed())
    change_by_hand(cloud, deletePolicy="Delete")
    after(cloud, None, budget=1)
    assert azure(cloud) == {}
    assert live(cloud, "Namespace", "shop") is not None


def test_a_namespace_of_the_cluster_comes_under_azure_and_back_with_everything_in_it() -> None:
    cloud = hydrated(system("shop", "one", extra=QUOTA))
    uid = (live(cloud, "Namespace", "shop") or {})["metadata"]["uid"]
    for shop in (managed(more="deletePolicy: Delete", extra=QUOTA), system("shop", "one", extra=QUOTA)):
        after(cloud, shop)
        assert phases(cloud) == {"one": Phase.READY}
        assert (live(cloud, "Namespace", "shop") or {})["metadata"]["uid"] == uid
        assert live(cloud, "Deployment", "web", "shop", "apps/v1") is not None
        quota = live(cloud, "ResourceQuota", "roadstead", "shop")
        assert quota is not None
        in_azure = b"managedNamespaces" in shop
        assert ("requests.cpu" in quota["spec"]["hard"]) is not in_azure
        assert (set(azure(cloud)) == {"shop"}) is in_azure
    after(cloud, None, budget=1)
    assert live(cloud, "Namespace", "shop") is not None, "AKS wrote it too"


def test_a_kept_namespace_that_roadstead_once_created_in_the_cluster_stays() -> None:
    cloud = hydrated(system("shop", "one"))
    after(cloud, managed())
    assert set(azure(cloud)) == {"shop"}
    after(cloud, None, budget=1)
    assert azure(cloud) == {}
    assert live(cloud, "Namespace", "shop") is not None
    after(cloud, None, budget=1, extra="  tags: {a: b}\n")
    assert live(cloud, "Namespace", "shop") is not None


@pytest.mark.parametrize(
    ("policy", "taken"), [("Never", False), ("IfIdentical", False), ("Always", True)], ids=str
)
def test_a_namespace_of_somebody_else_is_taken_over_only_where_the_policy_says_so(
    policy: str, *, taken: bool
) -> None:
    cloud = hydrated(system("pay", "one", namespaces="pay"))
    by_hand(cloud, "shop", team="a")
    after(cloud, managed(more=f"adoptionPolicy: {policy}"))
    assert (set(azure(cloud)) == {"shop"}) is taken
    if policy == "Never":
        assert "the namespace shop, which exists and which Roadstead did not create" in why(cloud)
        assert "adoptionPolicy: Always takes it over" in why(cloud)
    labels = (live(cloud, "Namespace", "shop") or {})["metadata"]["labels"]
    assert (labels.get("roadstead.dev/system") == "shop") is taken
    assert labels["team"] == "a"


@pytest.mark.parametrize(
    ("tags", "policy", "taken"),
    [
        ({}, "Never", False),
        ({}, "IfIdentical", False),
        ({}, "Always", True),
        ({"roadstead-fleet": "other"}, "Always", False),
        ({"roadstead-fleet": "example", "roadstead-cluster": "two"}, "Always", False),
    ],
)
def test_a_managed_namespace_that_roadstead_did_not_create_is_not_touched_unless_adoption_says_so(
    tags: dict[str, str], policy: str, *, taken: bool
) -> None:
    cloud = MemoryCloud(throttle=False)
    after(cloud, None)
    theirs = {"location": "westeurope", "tags": tags, "properties": {"deletePolicy": "Delete"}}
    cloud.azure.put_managed_namespace(ONE, "shop", theirs)
    cloud.sleep(10)
    before = azure(cloud)
    after(cloud, managed(more=f"adoptionPolicy: {policy}"))
    if taken:
        assert azure(cloud)["shop"]["tags"]["roadstead-cluster"] == "one"
        assert azure(cloud)["shop"]["properties"]["deletePolicy"] == "Keep"
        return
    assert azure(cloud) == before
    assert "Roadstead did not create" in why(cloud) or "for another cluster or fleet" in why(cloud)
    after(cloud, None, budget=1)
    assert azure(cloud) == before, "what is not ours is not deleted either"


def test_a_managed_namespace_that_no_accepted_commit_removed_stays_and_is_named() -> None:
    cloud = hydrated(managed(namespaces="shop, jobs"))
    tags = {**azure(cloud)["shop"]["tags"]}
    cloud.azure.put_managed_namespace(ONE, "old", {"location": "westeurope", "tags": tags})
    cloud.sleep(10)
    after(cloud, managed(namespaces="shop, jobs"), extra="  tags: {a: b}\n")
    assert set(azure(cloud)) == {"shop", "jobs", "old"}
    said = " ".join(event.message for event in cloud.state.events("one", 50))
    assert "the managed namespaces old, which git does not have here, stay" in said
    after(cloud, managed(), budget=1)
    assert set(azure(cloud)) == {"shop", "old"}


def test_a_failed_write_is_repeated() -> None:
    cloud = MemoryCloud(throttle=False)
    after(cloud, None)
    cloud.azure.interventions.fail_next("one", "InternalError", "no")
    after(cloud, managed())
    assert phases(cloud) == {"one": Phase.READY}
    assert writes(cloud) == ["put-namespace"] * 2


@pytest.mark.parametrize("sign_in", ["", ENTRA], ids=["local accounts", "Entra ID"])
def test_a_write_that_something_reverts_is_sent_once_and_fails_the_job(sign_in: str) -> None:
    cloud = MemoryCloud(throttle=False)
    azure = cloud.ports.azure

    def reverted(read: ListManagedNamespaces) -> dict[str, Json]:
        return {name: without_labels(document) for name, document in azure.call(read).items()}

    on_azure(cloud, ListManagedNamespaces, reverted)
    after(cloud, managed(more="labels: {a: b}"), extra=sign_in)
    assert phases(cloud) == {"one": Phase.FAILED}
    assert writes(cloud) == ["put-namespace"]


def without_labels(one: Json) -> Json:
    properties = {key: value for key, value in one["properties"].items() if key != "labels"}
    return {**one, "properties": properties}


def test_a_stopped_cluster_is_waited_for() -> None:
    cloud = MemoryCloud(throttle=False)
    after(cloud, None)
    cloud.azure.stop_cluster(ONE)
    cloud.sleep(10)
    push(cloud, fleet("one", systems={"shop": managed()}))
    cloud.run(seconds=300, until=lambda: False)
    assert "the cluster is stopped" in why(cloud)
    assert writes(cloud) == []
    cloud.azure.start_cluster(ONE)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert set(azure(cloud)) == {"shop"}


def test_what_git_gave_a_namespace_goes_with_git_and_what_others_gave_it_stays() -> None:
    cloud = hydrated(managed(more="labels: {a: b, c: d}, annotations: {e: f}"))
    theirs = azure(cloud)["shop"]["properties"]["labels"] | {"team": "x"}
    change_by_hand(cloud, labels=theirs)
    after(cloud, managed(more="labels: {a: b, c: d}, annotations: {e: f}"), extra="  tags: {a: b}\n")
    assert writes(cloud) == ["put-namespace"] * 2, "what somebody added is no difference"
    after(cloud, managed(more="labels: {c: g}"))
    metadata = (live(cloud, "Namespace", "shop") or {})["metadata"]
    assert (metadata["labels"]["c"], metadata["labels"]["team"]) == ("g", "x")
    assert "a" not in metadata["labels"]
    assert "e" not in metadata["annotations"]
