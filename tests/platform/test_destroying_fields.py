"""Fields that differ and destroy: what a change of one does on a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from shared.platform.changes.effects import Cause, Fate
from tests.platform.effects import change_of, effects, found
from tests.platform.inventories import (
    claim,
    definition,
    deployment,
    inventory,
    manifest,
    owner,
    release,
    stateful_set,
)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (
            stateful_set("10Gi"),
            stateful_set("20Gi"),
            "spec.volumeClaimTemplates[data].spec.resources.requests.storage",
        ),
        (stateful_set(), stateful_set(spec={"serviceName": "other"}), "spec.serviceName"),
        (
            stateful_set(),
            stateful_set(spec={"podManagementPolicy": "Parallel"}),
            "spec.podManagementPolicy",
        ),
        (claim("a/b", "10Gi"), claim("a/b", "5Gi"), "spec.resources.requests.storage"),
        (
            manifest("Secret", "a/b", type="Opaque"),
            manifest("Secret", "a/b", type="kubernetes.io/tls"),
            "type",
        ),
        (
            manifest("ConfigMap", "a/b", data={"a": "1"}, immutable=True),
            manifest("ConfigMap", "a/b", data={"a": "2"}, immutable=True),
            "data.a",
        ),
        (
            manifest("Service", "a/b", spec={}),
            manifest("Service", "a/b", spec={"clusterIP": "None"}),
            "spec.clusterIP",
        ),
        (
            manifest("Service", "a/b", spec={"ipFamilies": ["IPv4"]}),
            manifest("Service", "a/b", spec={"ipFamilies": ["IPv6", "IPv4"]}),
            "spec.ipFamilies",
        ),
        (
            manifest("RoleBinding", "a/b", "rbac.authorization.k8s.io/v1", roleRef={"name": "view"}),
            manifest("RoleBinding", "a/b", "rbac.authorization.k8s.io/v1", roleRef={"name": "edit"}),
            "roleRef.name",
        ),
        (definition("Backup"), definition("Backup", spec={"scope": "Cluster"}), "spec.scope"),
        (
            definition("Backup", {"v1": "storage"}),
            definition("Backup", {"v2": "storage"}),
            "spec.versions",
        ),
        (
            manifest("StorageClass", "fast", "storage.k8s.io/v1", provisioner="disk.csi.azure.com"),
            manifest(
                "StorageClass",
                "fast",
                "storage.k8s.io/v1",
                provisioner="disk.csi.azure.com",
                reclaimPolicy="Retain",
            ),
            "reclaimPolicy",
        ),
    ],
)
def test_a_field_that_never_changes_stops_the_path_or_with_force_makes_the_object_again(
    old: dict[str, Any], new: dict[str, Any], field: str
) -> None:
    stuck = change_of(old, new)
    assert (stuck.effect, stuck.cause, stuck.detail) == (Fate.STUCK, Cause.FIXED_FIELD, field)
    assert change_of(old, new, force=True).effect is Fate.RECREATED
    for which in (old, new):
        which["metadata"]["annotations"] = {"kustomize.toolkit.fluxcd.io/force": "Enabled"}
    assert change_of(old, new).effect is Fate.RECREATED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (stateful_set(), stateful_set(spec={"podManagementPolicy": "OrderedReady"})),
        (stateful_set(), stateful_set(spec={"replicas": 3})),
        (claim("a/b", "5Gi"), claim("a/b", "10Gi")),
        (
            manifest("Service", "a/b", spec={"clusterIP": "None"}),
            manifest("Service", "a/b", spec={"type": "ClusterIP"}),
        ),
        (
            manifest("Service", "a/b", spec={"ipFamilies": ["IPv4"]}),
            manifest("Service", "a/b", spec={"ipFamilies": ["IPv4", "IPv6"]}),
        ),
        (
            manifest("Service", "a/b", spec={}),
            manifest("Service", "a/b", spec={"ipFamilies": ["IPv6"]}),
        ),
        (
            manifest("ConfigMap", "a/b", data={"a": "1"}),
            manifest("ConfigMap", "a/b", data={"a": "2"}, immutable=True),
        ),
        (manifest("Secret", "a/b"), manifest("Secret", "a/b", type="Opaque")),
        (definition("Backup", {"v1": "storage"}), definition("Backup", {"v1": "served", "v2": "storage"})),
        (deployment("a/b", "x:1"), deployment("a/b", "x:2")),
    ],
)
def test_what_the_api_server_accepts_is_a_plain_change_with_force_too(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert change_of(old, new, force=True).effect is Fate.CHANGED


def test_a_definitions_own_rule_counts_for_the_objects_of_its_kind() -> None:
    rule = {"x-kubernetes-validations": [{"rule": "self == oldSelf"}], "type": "string"}
    schema = {"openAPIV3Schema": {"properties": {"spec": {"properties": {"region": rule}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    known = definition("Backup", spec={"versions": [version]})
    old, new = (
        manifest("Backup", "a/b", "data.example.com/v1", spec={"region": region}) for region in ("a", "b")
    )
    before, after = inventory(owner("p", known, old)), inventory(owner("p", known, new))
    assert found(before, after)["Backup a/b"].detail == "spec.region"


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ({}, {"releaseName": "other"}, "spec.releaseName"),
        ({}, {"targetNamespace": "other"}, "spec.targetNamespace"),
        ({}, {"storageNamespace": "other"}, "spec.storageNamespace"),
        ({"targetNamespace": "b"}, {"targetNamespace": "c", "releaseName": "b-x"}, "spec.targetNamespace"),
        ({}, {"releaseName": "x"}, ""),
        ({}, {"targetNamespace": "a", "releaseName": "x", "storageNamespace": "a"}, ""),
        ({}, {"values": {"replicas": 2}}, ""),
    ],
)
def test_a_release_with_another_target_is_uninstalled(
    old: dict[str, Any], new: dict[str, Any], field: str
) -> None:
    change = change_of(release("a/x", **old), release("a/x", **new))
    assert change.effect is (Fate.UNINSTALLED if field else Fate.CHANGED)
    assert change.detail == field


def test_a_release_that_is_suspended_is_not_uninstalled() -> None:
    rest = deployment("a/c")
    before = inventory(owner("p", release("a/x", suspend=True), rest))
    assert effects(before, inventory(owner("p", rest)))["HelmRelease a/x"] == (
        Fate.KEPT,
        Cause.SUSPENDED,
    )


def test_fewer_replicas_delete_claims_where_the_policy_says_so() -> None:
    old, new = (stateful_set(claims="Delete", spec={"replicas": number}) for number in (3, 1))
    assert change_of(old, new).effect is Fate.SHRUNK
    assert change_of(new, old).effect is Fate.CHANGED


def test_a_version_that_is_not_served_any_more_is_named() -> None:
    change = change_of(
        definition("Backup", {"v1": "served", "v2": "storage"}),
        definition("Backup", {"v1": "unserved", "v2": "storage"}),
    )
    assert (change.effect, change.cause, change.detail) == (Fate.CHANGED, Cause.UNSERVED, "v1")
