"""The objects of a system, against the schemas of the API server and of Flux's definitions."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from localcloud.common.clock import ManualClock
from localcloud.kubernetes.world.api_errors import StatusError
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, WriteMode
from shared.json_tree import Json
from shared.kubernetes.field_ownership import is_held
from shared.kubernetes.system_objects import KINDS, SYSTEM, TENANT, system_objects
from shared.language.cluster_systems import read_system, stored_system
from shared.language.model.system import SystemSpec
from tests.support.reporting_flux import notification
from tests.support.small_flux import COMPONENTS

GROUP = "AAAAAAAA-0000-0000-0000-000000000021"
WHOLE: dict[str, Any] = {
    "owners": ["shop@example.com"],
    "clusters": {"names": ["one"]},
    "namespaces": ["shop", "shop-jobs"],
    "groups": [{"id": GROUP, "role": "edit"}, {"id": GROUP.replace("21", "22")}],
    "source": {
        "repository": "https://github.com/example/shop",
        "path": "deploy",
        "secretRef": {"name": "git"},
        "environments": {"prod": {"branch": "stable"}},
    },
    "quota": {
        **{"cpu": "4", "memory": "8Gi", "limitsCpu": "8", "limitsMemory": "16Gi", "storage": "1Ti"},
        **{"pods": 20, "loadBalancers": 0},
    },
    "limits": {"defaultRequest": {"cpu": "100m"}, "default": {"memory": "1Gi"}, "max": {"cpu": "2"}},
    "podSecurity": "restricted",
    "alerts": {"type": "slack", "secretRef": {"name": "channel"}, "channel": "#shop"},
}


def world() -> KubernetesWorld:
    """Return a cluster that knows the kinds of a system."""
    clock = ManualClock()
    found = KubernetesWorld(clock)
    of_flux = [
        document
        for document in yaml.safe_load_all(COMPONENTS.read_text())
        if document["kind"].startswith("Custom")
    ]
    for manifest in (*of_flux, notification("Provider"), notification("Alert")):
        apply(found, manifest)
    clock.advance(10)
    found.tick()
    return found


def apply(cluster: KubernetesWorld, manifest: Json) -> Json:
    metadata = manifest["metadata"]
    kind = cluster.kind(manifest["apiVersion"], manifest["kind"])
    assert kind is not None, manifest["kind"]
    at = At(kind, metadata["name"], metadata.get("namespace", ""))
    return cluster.apply(at, manifest, WriteMode(manager="roadstead", force=True))


def objects(**changed: Any) -> tuple[Json, ...]:
    spec = SystemSpec.model_validate({**WHOLE, **changed})
    return system_objects(read_system(stored_system("shop", spec, "prod")))


def named(found: tuple[Json, ...], kind: str, namespace: str = "") -> Json:
    return next(
        document
        for document in found
        if document["kind"] == kind and namespace in ("", document["metadata"].get("namespace", ""))
    )


def test_every_object_is_valid_where_the_api_server_checks_it_and_has_each_of_its_fields_there() -> None:
    cluster, found = world(), objects()
    assert {document["kind"] for document in found} == {kind for _, kind in KINDS} - {
        "OCIRepository",
        "Bucket",
    }
    for manifest in found:
        assert is_held(manifest, apply(cluster, manifest)), manifest["kind"]


def test_the_alert_is_there_before_what_can_fail_because_flux_repeats_no_event() -> None:
    kinds = [document["kind"] for document in objects()]
    assert kinds.index("Provider") < kinds.index("Alert") < kinds.index("GitRepository")
    assert kinds.index("GitRepository") < kinds.index("Kustomization")


IDENTITY = {"clientId": GROUP, "tenantId": GROUP.replace("21", "22")}
CLIENT_ID, TENANT_ID = "azure.workload.identity/client-id", "azure.workload.identity/tenant-id"
AZURE = {"provider": "azure", "workloadIdentity": IDENTITY}


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("GitRepository", {"repository": "https://dev.azure.com/example/a/_git/a", **AZURE}),
        ("OCIRepository", {"repository": "oci://example.azurecr.io/shop", **AZURE}),
        ("Bucket", {"repository": "https://a.blob.core.windows.net", "bucketName": "shop", **AZURE}),
    ],
)
def test_flux_pulls_as_the_account_of_the_system_and_never_as_itself(kind: str, source: Any) -> None:
    found = objects(source=source)
    pulled, account = named(found, kind), named(found, "ServiceAccount")
    assert pulled["spec"]["serviceAccountName"] == account["metadata"]["name"]
    assert pulled["metadata"]["namespace"] == account["metadata"]["namespace"] == "shop"
    assert account["metadata"]["annotations"][CLIENT_ID] == IDENTITY["clientId"]
    assert account["metadata"]["annotations"][TENANT_ID] == IDENTITY["tenantId"]
    assert named(found, "Kustomization")["spec"]["sourceRef"] == {"kind": kind, "name": "shop"}
    assert named(found, "Alert")["spec"]["eventSources"][0]["kind"] == kind


def test_a_source_without_an_identity_gives_the_account_no_annotation_and_names_no_account() -> None:
    found = objects()
    assert set(named(found, "ServiceAccount")["metadata"]["annotations"]) == {"roadstead.dev/applied-digest"}
    assert "serviceAccountName" not in named(found, "GitRepository")["spec"]


@pytest.mark.parametrize(
    ("base", "own", "pulled"),
    [
        ({"tag": "v1"}, {"branch": "next"}, {"ref": {"branch": "next"}}),
        ({"tag": "v1"}, {"semver": "2.x"}, {"ref": {"semver": "2.x"}}),
        (
            {"branch": "stable", "tag": "v1"},
            {"commit": "1" * 40},
            {"ref": {"branch": "stable", "commit": "1" * 40}},
        ),
        ({"tag": "v1"}, {"path": "./other"}, {"ref": {"tag": "v1"}}),
        (
            {},
            {"repository": "oci://e.io/a", "digest": f"sha256:{'0' * 64}"},
            {"ref": {"digest": f"sha256:{'0' * 64}"}},
        ),
    ],
)
def test_an_environment_replaces_what_the_system_pins(base: Any, own: Any, pulled: Any) -> None:
    source = {"repository": "https://github.com/example/shop", **base, "environments": {"prod": own}}
    found = objects(source=source)
    spec = next(
        document["spec"] for document in found if document["kind"] in ("GitRepository", "OCIRepository")
    )
    assert spec | pulled == spec


def test_an_object_with_a_wrong_field_would_not_be_valid() -> None:
    wrong = dict(named(objects(), "NetworkPolicy"))
    wrong["spec"] = {**wrong["spec"], "policyTypes": "Ingress"}
    cluster = world()
    apply(cluster, named(objects(), "Namespace"))
    with pytest.raises(StatusError):
        apply(cluster, wrong)


def test_every_object_is_in_a_namespace_of_the_system_and_has_its_labels() -> None:
    for document in objects():
        metadata = document["metadata"]
        assert metadata.get("namespace", metadata["name"]) in WHOLE["namespaces"]
        assert (metadata["labels"][SYSTEM], metadata["labels"][TENANT]) == ("shop", "shop")


def test_flux_applies_with_the_account_and_in_one_namespace_as_the_target_where_there_is_one() -> None:
    whole = named(objects(), "Kustomization")["spec"]
    assert (whole["serviceAccountName"], whole["path"], whole["prune"]) == ("shop", "./deploy", True)
    assert "targetNamespace" not in whole, "it would put the objects of both namespaces into one"
    assert named(objects(namespaces=["shop"]), "Kustomization")["spec"]["targetNamespace"] == "shop"
    assert named(objects(), "GitRepository")["spec"]["ref"] == {"branch": "stable"}


def test_the_groups_are_subjects_by_their_ids_and_each_role_has_a_binding_in_each_namespace() -> None:
    bindings = [document for document in objects() if document["kind"] == "RoleBinding"]
    places = sorted((binding["metadata"]["namespace"], binding["roleRef"]["name"]) for binding in bindings)
    assert places == [(name, role) for name in WHOLE["namespaces"] for role in ("admin", "edit", "view")]
    edit = next(binding for binding in bindings if binding["roleRef"]["name"] == "edit")
    assert [subject["name"] for subject in edit["subjects"]] == [GROUP.lower()]


def test_what_the_manifest_leaves_out_is_no_object() -> None:
    kinds = {document["kind"] for document in objects(quota={}, limits={}, networkPolicy="none", alerts=None)}
    assert not kinds & {"ResourceQuota", "LimitRange", "NetworkPolicy", "Provider", "Alert"}
