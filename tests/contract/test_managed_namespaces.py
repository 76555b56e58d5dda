"""Managed namespaces, in both implementations of the port; and what AKS makes of them in a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.kubernetes.world.object_store import WriteMode
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import Conflict, Dependency, InvalidManifest, Refused
from shared.json_tree import Json
from shared.ports.azure import DeleteManagedNamespace, ListManagedNamespaces, PutManagedNamespace
from shared.resource_ids import ObjectRef
from tests.support.azure_ports import CLUSTER, Azure
from tests.support.one_cluster import ONE, ready

pytestmark = pytest.mark.lives

QUOTA = {"cpuRequest": "500m", "memoryLimit": "2Gi"}


def body(**properties: Any) -> dict[str, Any]:
    return {"location": "westeurope", "tags": {"a": "b"}, "properties": properties}


def test_a_namespace_is_created_replaced_listed_and_deleted(azure: Azure) -> None:
    azure.with_cluster()
    assert azure.call(ListManagedNamespaces(CLUSTER)) == {}
    assert azure.call(PutManagedNamespace(CLUSTER, "shop", body(deletePolicy="Keep"))).created
    shown = azure.call(ListManagedNamespaces(CLUSTER))["shop"]
    assert shown["properties"]["provisioningState"] == "Creating"
    with pytest.raises(Conflict):
        azure.call(PutManagedNamespace(CLUSTER, "shop", body()))
    azure.clock.advance(2)
    again = azure.call(PutManagedNamespace(CLUSTER, "shop", body(defaultResourceQuota=QUOTA)))
    assert (again.created, bool(again.request_id)) == (False, True)
    azure.clock.advance(2)
    shown = azure.call(ListManagedNamespaces(CLUSTER))["shop"]
    assert shown["id"] == f"{CLUSTER.resource}/managedNamespaces/shop"
    assert (shown["tags"], shown["location"]) == ({"a": "b"}, "westeurope")
    assert shown["properties"]["provisioningState"] == "Succeeded"
    assert shown["properties"]["defaultResourceQuota"] == QUOTA
    assert shown["properties"]["defaultNetworkPolicy"] == {
        "ingress": "AllowSameNamespace",
        "egress": "AllowAll",
    }
    assert azure.call(DeleteManagedNamespace(CLUSTER, "shop")).request_id
    azure.clock.advance(2)
    assert azure.call(ListManagedNamespaces(CLUSTER)) == {}
    azure.call(DeleteManagedNamespace(CLUSTER, "shop"))


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("kube-system", {}),
        ("gatekeeper-system", {}),
        ("aks-istio-shop", {}),
        ("shop", {"deletePolicy": "Perhaps"}),
        ("shop", {"defaultNetworkPolicy": {"ingress": "Some"}}),
        ("shop", {"labels": {"a": 1}}),
        ("shop", {"quota": {}}),
    ],
)
def test_what_azure_does_not_know_is_refused(azure: Azure, name: str, properties: dict[str, Any]) -> None:
    azure.with_cluster()
    with pytest.raises(InvalidManifest):
        azure.call(PutManagedNamespace(CLUSTER, name, body(**properties)))


def test_without_its_cluster_there_is_no_namespace(azure: Azure) -> None:
    azure.with_cluster()
    other = replace(CLUSTER, name="none")
    with pytest.raises(Dependency):
        azure.call(ListManagedNamespaces(other))
    with pytest.raises(Dependency):
        azure.call(PutManagedNamespace(other, "shop", body()))
    azure.call(DeleteManagedNamespace(other, "shop"))


def write(cloud: MemoryCloud, name: str = "shop", **properties: Any) -> None:
    cloud.azure.put_managed_namespace(ONE, name, body(**properties))
    cloud.sleep(2)


def live(cloud: MemoryCloud, api: str, kind: str, name: str, namespace: str = "") -> Json | None:
    return cloud.kubernetes.connect(ONE).get(ObjectRef(api, kind, name, namespace))


def test_aks_has_the_namespace_with_its_quota_and_policy_and_nobody_else_changes_them() -> None:
    cloud = ready()
    rules = {"ingress": "AllowSameNamespace", "egress": "DenyAll"}
    write(cloud, labels={"a": "b"}, defaultResourceQuota=QUOTA, defaultNetworkPolicy=rules)
    namespace = live(cloud, "v1", "Namespace", "shop")
    assert namespace is not None
    labels = {"a": "b", "kubernetes.azure.com/managedByArm": "true"}
    assert namespace["metadata"]["labels"] == labels
    quota = live(cloud, "v1", "ResourceQuota", "defaultresourcequota", "shop")
    assert quota is not None
    assert quota["spec"]["hard"] == {"requests.cpu": "500m", "limits.memory": "2Gi"}
    policy = live(cloud, "networking.k8s.io/v1", "NetworkPolicy", "defaultnetworkpolicy", "shop")
    assert policy is not None
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {}}]}]
    assert "egress" not in policy["spec"]
    api = cloud.kubernetes.connect(ONE)
    changed = {**namespace, "metadata": {**namespace["metadata"], "labels": {**labels, "c": "d"}}}
    with pytest.raises(Refused, match="not allowed because it is managed by ARM"):
        api.replace(changed)
    for document in (namespace, quota, policy):
        with pytest.raises(Refused, match="managed by ARM"):
            api.delete(document)
    with pytest.raises(Refused, match="managed by ARM"):
        api.replace({**quota, "spec": {"hard": {"requests.cpu": "64"}}})


@pytest.mark.parametrize(("policy", "stays"), [("Keep", True), ("Delete", False)])
def test_the_delete_policy_says_whether_the_namespace_goes(policy: str, *, stays: bool) -> None:
    cloud = ready()
    write(cloud, deletePolicy=policy, defaultResourceQuota=QUOTA)
    cloud.azure.delete_managed_namespace(ONE, "shop")
    cloud.sleep(10)
    namespace = live(cloud, "v1", "Namespace", "shop")
    assert (namespace is not None) is stays
    if namespace is not None:
        assert "managedByArm" not in str(namespace["metadata"]["labels"])
        cloud.kubernetes.connect(ONE).delete(namespace)


@pytest.mark.parametrize(
    ("policy", "labels", "taken"),
    [
        ("Never", {"team": "a"}, False),
        ("IfIdentical", {"team": "b"}, False),
        ("IfIdentical", {"team": "a"}, True),
        ("Always", {"team": "b"}, True),
    ],
)
def test_a_namespace_that_exists_is_taken_over_as_the_adoption_policy_says(
    policy: str, labels: dict[str, str], *, taken: bool
) -> None:
    cloud = ready()
    world = cloud.kubernetes.world(ONE)
    assert world is not None
    kind = world.kind("v1", "Namespace")
    assert kind is not None
    world.create(
        kind, "", {"metadata": {"name": "shop", "labels": {"team": "a"}}}, WriteMode(manager="kubectl")
    )
    call = PutManagedNamespace(ONE, "shop", body(adoptionPolicy=policy, labels=labels))
    if not taken:
        with pytest.raises(InvalidManifest, match="already exists"):
            cloud.ports.azure.call(call)
        return
    cloud.ports.azure.call(call)
    cloud.sleep(2)
    namespace = live(cloud, "v1", "Namespace", "shop")
    assert namespace is not None
    assert namespace["metadata"]["labels"]["team"] == labels["team"]
