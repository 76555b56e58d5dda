"""Taking a system from clusters: guarded like a delete, then exactly its objects that we applied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.plans import plan_view
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import ref_of
from shared.kubernetes.system_objects import SYSTEM
from shared.plan.plan import Action
from shared.resource_ids import ObjectRef
from tests.support.pipeline_runs import cloud_with, phases, push, record_of, status, step_until
from tests.support.team_systems import DEPLOYMENT, approve, cluster_id, fleet, item, objects, system

pytestmark = pytest.mark.lives

SHOP, PAY = system("shop", "one, two"), system("pay", "one")
BOTH = {"shop": SHOP, "pay": PAY}
WEB = ObjectRef("apps/v1", "Deployment", "web", "shop")


def hydrated(systems: dict[str, bytes] | None = None) -> MemoryCloud:
    cloud = cloud_with(fleet("one", "two", systems=BOTH if systems is None else systems), throttle=False)
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    return cloud


def after(cloud: MemoryCloud, systems: dict[str, bytes], *, budget: int = 0, extra: str = "") -> str:
    """Push other systems, and run; return the commit."""
    files = fleet("one", "two", systems=systems, budget=budget)
    files["clusters/one/cluster.yaml"] += extra.encode()
    commit = push(cloud, files)
    cloud.run()
    return commit


def message(cloud: MemoryCloud) -> str:
    """Return what the events of the cluster say."""
    return " ".join(event.message for event in cloud.state.events("one", 50))


def test_a_removed_system_stays_until_its_removal_is_approved_and_everything_says_so() -> None:
    cloud = hydrated()
    before = {name: objects(cloud, name) for name in ("one", "two")}
    commit = after(cloud, {"pay": PAY})
    assert {name: objects(cloud, name) for name in ("one", "two")} == before
    held = item(cloud, "one")
    assert (held.action, held.needs_approval, held.retained) == (Action.ON_HOLD, True, ("shop",))
    assert held.reason.startswith("it would lose namespaces of shop (shop), which stay: the commit takes 2")
    assert status(cloud, commit)[0] == "failure"
    assert "it would lose namespaces of shop (shop)" in status(cloud, commit)[1]
    why = why_view("one", cloud.ports)
    assert why is not None
    assert "what commit" in why["doing"]
    assert "roadstead approve" in why["suggestedAction"]
    view = plan_view(commit, cloud.ports)
    assert view is not None
    assert view["needsApproval"] == ["one", "two"]
    assert [object_view["retainedSystems"] for object_view in view["items"]] == [["shop"], ["shop"]]

    approve(cloud, "one", "two")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert objects(cloud, "two") == []
    assert objects(cloud, "one") == [ref for ref in before["one"] if "pay" in ref]
    assert cloud.kubernetes.connect(cluster_id("one")).get(WEB) is None
    assert status(cloud, commit)[0] == "success"
    assert "approved by op" in message(cloud)


def test_an_approval_of_other_clusters_than_those_that_need_it_removes_nothing() -> None:
    cloud = hydrated()
    before = objects(cloud, "one")
    after(cloud, {"pay": PAY})
    approve(cloud, "one")
    cloud.run()
    assert objects(cloud, "one") == before


def test_the_budget_of_the_fleet_allows_removals_without_an_approval() -> None:
    cloud = hydrated()
    after(cloud, {"pay": PAY}, budget=2)
    shown = [(change.path, change.old, change.destroys) for change in item(cloud, "two").changes]
    assert shown == [("systems[shop]", "shop (shop)", True)]
    assert objects(cloud, "two") == []
    assert objects(cloud, "one", "shop") == []
    assert objects(cloud, "one", "pay")


def test_a_protected_system_needs_an_approval_whatever_the_budget_allows() -> None:
    protected = system("shop", "one, two", extra="  protection: true\n")
    cloud = hydrated({"shop": protected, "pay": PAY})
    before = objects(cloud, "one")
    after(cloud, {"pay": PAY}, budget=100)
    assert item(cloud, "one").reason.startswith(
        "it would lose namespaces of shop (shop), which stay: protection"
    )
    assert objects(cloud, "one") == before


def test_a_moved_selector_removes_the_system_from_the_cluster_that_it_leaves_only() -> None:
    cloud = hydrated()
    before = objects(cloud, "one")
    after(cloud, {"shop": system("shop", "one"), "pay": PAY}, budget=1)
    assert objects(cloud, "two") == []
    assert objects(cloud, "one") == before
    assert item(cloud, "one").action is Action.UNCHANGED


def test_the_rest_of_a_change_is_carried_out_while_the_removal_of_a_system_waits() -> None:
    cloud = hydrated()
    before = objects(cloud, "one")
    after(cloud, {"pay": PAY}, extra="  tags: {a: b}\n")
    changed = item(cloud, "one")
    assert (changed.action, changed.needs_approval) == (Action.UPDATE, True)
    record = record_of(cloud, "one")
    assert record.document["spec"]["tags"]["a"] == "b"
    assert [document["name"] for document in record.document["systems"]] == ["pay", "shop"]
    assert objects(cloud, "one") == before
    assert phases(cloud)["one"] is Phase.READY


def test_a_restored_system_needs_no_approval_any_more() -> None:
    cloud = hydrated()
    before = objects(cloud, "one")
    after(cloud, {"pay": PAY})
    commit = after(cloud, BOTH)
    assert item(cloud, "one").action is Action.UNCHANGED
    assert status(cloud, commit)[0] == "success"
    assert objects(cloud, "one") == before


@pytest.mark.parametrize(
    "broken",
    [
        SHOP.replace(b"namespaces: [shop]", b"namespaces: [kube-system]"),
        SHOP.replace(b"namespaces: [shop]", b"namespaces: []"),
        b"kind: [",
    ],
)
def test_a_system_whose_manifest_is_invalid_stays_at_its_last_valid_spec(broken: bytes) -> None:
    cloud = hydrated()
    before = {name: objects(cloud, name) for name in ("one", "two")}
    after(cloud, {"shop": broken, "pay": PAY}, budget=100)
    assert {name: objects(cloud, name) for name in ("one", "two")} == before
    assert item(cloud, "one").action is Action.UNCHANGED


def returned(systems: dict[str, bytes]) -> MemoryCloud:
    """Return a cloud in which git has a cluster again, with other systems, before its delete began."""
    cloud = hydrated()
    push(cloud, fleet("two", systems={"pay": system("pay", "two"), "shop": system("shop", "two")}))
    step_until(cloud, lambda: phases(cloud)["one"] == Phase.DELETING)
    push(cloud, fleet("one", "two", systems=systems))
    cloud.run()
    return cloud


def has_web(cloud: MemoryCloud) -> bool:
    return cloud.kubernetes.connect(cluster_id("one")).get(WEB) is not None


def test_a_cluster_that_git_has_again_keeps_a_system_that_became_invalid_meanwhile() -> None:
    cloud = returned({"shop": b"kind: [", "pay": PAY})
    assert has_web(cloud)


def test_a_cluster_that_git_has_again_loses_no_system_without_an_approval() -> None:
    cloud = returned({"pay": PAY})
    assert has_web(cloud)
    assert item(cloud, "one").retained == ("shop",)
    approve(cloud, "one", "two")
    cloud.run()
    assert not has_web(cloud)


def test_nothing_is_removed_while_fleet_yaml_is_invalid() -> None:
    cloud = hydrated()
    before = objects(cloud, "one")
    files = fleet("one", "two", systems={"pay": PAY}, budget=100)
    files["fleet.yaml"] = files["fleet.yaml"].replace(b"namespaceBudget: 100", b"namespaceBudget: many")
    push(cloud, files)
    cloud.run()
    assert objects(cloud, "one") == before


def test_a_system_does_not_get_the_namespace_of_one_whose_removal_waits() -> None:
    cloud = hydrated({"shop": SHOP})
    before = objects(cloud, "one")
    store = {"store": system("store", "one, two", namespaces="shop")}
    after(cloud, store)
    assert objects(cloud, "one") == before
    approve(cloud, "one", "two")
    cloud.run()
    assert objects(cloud, "one", "shop") == []
    assert "Namespace shop" in objects(cloud, "one", "store")
    assert "Kustomization shop/store" in objects(cloud, "one", "store")
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}


def test_a_namespace_that_leaves_a_system_is_removed_alone() -> None:
    wide = system("shop", "one, two", namespaces="shop, jobs", path="./teams/two")
    folder = {"teams/two/web.yaml": DEPLOYMENT.replace(b"{name: web}", b"{name: web, namespace: shop}", 1)}
    cloud = cloud_with(fleet("one", "two", systems={"shop": wide}) | folder, throttle=False)
    assert "Namespace jobs" in objects(cloud, "one")
    narrow = system("shop", "one, two", path="./teams/two")
    push(cloud, fleet("one", "two", systems={"shop": narrow}, budget=2) | folder)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    left = objects(cloud, "one")
    assert not [name for name in left if "jobs" in name]
    assert "Kustomization shop/shop" in left
    assert cloud.kubernetes.connect(cluster_id("one")).get(WEB) is not None


@pytest.mark.parametrize("given", ["jobs", "shop"], ids=["another namespace", "the first namespace"])
def test_a_team_has_no_rights_left_in_a_namespace_that_another_one_was_given(given: str) -> None:
    wide = system("shop", "one, two", namespaces="shop, jobs", path="./teams/empty")
    folder = {"teams/empty/kustomization.yaml": b"resources: []\n"}
    cloud = cloud_with(fleet("one", "two", systems={"shop": wide}) | folder, throttle=False)
    assert f"RoleBinding {given}/shop-reconciler-admin" in objects(cloud, "one", "shop")
    stays = "shop" if given == "jobs" else "jobs"
    systems = {
        "shop": system("shop", "one, two", namespaces=stays, path="./teams/empty"),
        "store": system("store", "one, two", namespaces=given, path="./teams/empty"),
    }
    push(cloud, fleet("one", "two", systems=systems, budget=2) | folder)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert not [name for name in objects(cloud, "one", "shop") if f" {given}" in name]
    assert f"RoleBinding {given}/store-reconciler-admin" in objects(cloud, "one", "store")
    assert f"Kustomization {stays}/shop" in objects(cloud, "one", "shop")


def test_a_namespace_that_cannot_end_names_its_finalizers_and_itself() -> None:
    cloud = hydrated()
    api = cloud.kubernetes.connect(cluster_id("one"))
    metadata = {"name": "volume", "namespace": "shop", "finalizers": ["example.org/hold"]}
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    api.apply(held)
    push(cloud, fleet("one", "two", systems={"pay": PAY}, budget=5))
    cloud.run(seconds=120)
    record = record_of(cloud, "one")
    reason = record.job.reason
    assert "the Namespace shop is being deleted, with everything in it: " in reason
    assert "example.org/hold in 1 resource instances" in reason
    assert "configmaps. has 1 resource instances" in reason
    assert "flux-system" not in reason
    api.apply({**held, "metadata": {**metadata, "finalizers": []}})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}


def test_what_a_manifest_no_longer_asks_for_goes_without_an_approval() -> None:
    cloud = hydrated({"shop": system("shop", "one, two", extra='  quota: {cpu: "4"}\n')})
    assert "ResourceQuota shop/roadstead" in objects(cloud, "one")
    after(cloud, {"shop": SHOP})
    assert "ResourceQuota shop/roadstead" not in objects(cloud, "one")
    assert "Namespace shop" in objects(cloud, "one")


def test_a_namespace_that_somebody_else_wrote_too_stays_and_is_named() -> None:
    cloud = hydrated()
    world = cloud.kubernetes.world(cluster_id("one"))
    assert world is not None
    api = cloud.kubernetes.connect(cluster_id("one"))
    namespace = api.get(ObjectRef("v1", "Namespace", "shop", ""))
    assert namespace is not None
    metadata = {**namespace["metadata"], "annotations": {**namespace["metadata"]["annotations"], "a": "b"}}
    kind = world.kind("v1", "Namespace")
    assert kind is not None
    world.replace(
        At(kind, "shop", ""), {**namespace, "metadata": metadata}, WriteMode(manager="kubectl-edit")
    )
    after(cloud, {"pay": PAY}, budget=2)
    assert objects(cloud, "one", "shop") == ["Namespace shop"]
    assert "the Namespace shop stays, because kubectl-edit wrote it too" in message(cloud)
    assert objects(cloud, "two", "shop") == []


def test_an_object_that_copies_our_labels_is_not_removed() -> None:
    cloud = hydrated()
    api = cloud.kubernetes.connect(cluster_id("one"))
    quota = {"apiVersion": "v1", "kind": "ServiceAccount"}
    account = api.get(ObjectRef("v1", "ServiceAccount", "pay", "pay"))
    assert account is not None
    world = cloud.kubernetes.world(cluster_id("one"))
    assert world is not None
    kind = world.kind("v1", "ServiceAccount")
    assert kind is not None
    metadata = {
        "name": "theirs",
        "labels": {SYSTEM: "shop"},
        "annotations": account["metadata"]["annotations"],
    }
    world.create(kind, "pay", {**quota, "metadata": metadata}, WriteMode(manager="kubectl-create"))
    after(cloud, {"pay": PAY}, budget=2)
    left = [ref_of(document) for document in api.list("v1", "ServiceAccount", labels=SYSTEM)]
    assert ObjectRef("v1", "ServiceAccount", "theirs", "pay") in left


def test_objects_of_a_system_that_no_accepted_commit_removed_stay_and_are_named() -> None:
    cloud = hydrated()
    record = record_of(cloud, "one")
    document = {
        **record.document,
        "systems": [document for document in record.document["systems"] if document["name"] == "pay"],
    }
    cloud.state.save(replace(record, document=document, digest="another"))
    after(cloud, {"pay": PAY}, extra="  tags: {a: b}\n")
    assert "Namespace shop" in objects(cloud, "one")
    assert "objects of the system shop, which git does not have here, stay" in message(cloud)
