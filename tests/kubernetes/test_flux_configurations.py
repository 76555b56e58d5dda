"""The documents of the Flux extension: what the manifest asks for, as Azure's models take it."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.azure.world.body_shapes import read_configuration, read_extension
from localcloud.common.json_copy import copied
from shared.azure.flux_extension import (
    changed_fields,
    configuration_bodies,
    configurations_to_remove,
    extension_body,
    is_outdated,
    reported,
    with_key,
)
from shared.json_tree import Json
from shared.kubernetes.flux_objects import GitCredentials
from shared.kubernetes.flux_readiness import FluxFailure, Progressing, Ready, Suspended, commit_of
from shared.language.model.cluster.flux import Flux
from tests.support.arm_bodies import desired

FACTS = {"cluster_name": "one", "cluster_location": "eastus"}
SOURCES: list[dict[str, Any]] = [
    {"name": "git", "url": "ssh://git@host/a", "secretRef": {"name": "key"}, "semver": "1.x"},
    {"name": "apps", "url": "https://dev.azure.com/a/b/_git/c", "provider": "azure", "tag": "v1"},
    {
        **{
            "name": "oci",
            "kind": "OCIRepository",
            "url": "oci://a.azurecr.io/b",
            "digest": f"sha256:{'0' * 64}",
        },
        **{"provider": "azure", "serviceAccountName": "reader", "interval": "5m"},
    },
    {
        "name": "s3",
        "kind": "Bucket",
        "endpoint": "minio.example.com",
        "bucketName": "b",
        "secretRef": {"name": "k"},
    },
    {
        **{
            "name": "blob",
            "kind": "Bucket",
            "endpoint": "https://a.blob.core.windows.net",
            "bucketName": "b",
        },
        **{"provider": "azure", "secretRef": {"name": "k"}},
    },
]
KUSTOMIZATIONS: list[dict[str, Any]] = [
    {"name": "base", "path": "base"},
    {
        **{"name": "apps", "path": "./apps", "dependsOn": [{"name": "base"}], "wait": True, "force": True},
        **{"interval": "1h30m", "retryInterval": "90s", "timeout": "5m", "prune": False},
        "postBuild": {
            "substitute": {"cluster_location": "here"},
            "substituteFrom": [
                {"kind": "ConfigMap", "name": "cluster-facts"},
                {"kind": "Secret", "name": "s"},
            ],
        },
    },
    {"name": "team", "source": "oci"},
]


def bodies(facts: dict[str, str] | None = None, **flux: Any) -> dict[str, dict[str, Any]]:
    given = {"repository": "https://github.com/example/fleet", "path": "./platform", "install": "extension"}
    return configuration_bodies(desired(flux={**given, **flux}), "example", FACTS if facts is None else facts)


def as_shown(body: Json) -> dict[str, Any]:
    """Return a body as Azure shows it: with null for what it leaves out, and its enums in another case."""
    shown: dict[str, Any] = copied(dict(body))
    nothing = {"bucket": None, "azureBlob": None, "waitForReconciliation": None}
    shown["properties"] = nothing | shown["properties"] | {"scope": "Cluster"}
    for name, kustomization in shown["properties"]["kustomizations"].items():
        filled = {"name": name, "retryIntervalInSeconds": None, "postBuild": None, "dependsOn": None}
        shown["properties"]["kustomizations"][name] = filled | {
            key: document for key, document in kustomization.items() if document
        }
    return shown


def test_each_source_is_a_configuration_with_its_kustomizations_that_azures_models_take() -> None:
    found = bodies(sources=SOURCES, kustomizations=KUSTOMIZATIONS)
    assert {name: sorted(document["properties"]["kustomizations"]) for name, document in found.items()} == {
        "flux-system": ["apps", "base", "flux-system"],
        **{"git": [], "apps": [], "oci": ["team"], "s3": [], "blob": []},
    }
    for body in found.values():
        assert read_configuration(body) == body
    oci, blob = found["oci"]["properties"], found["blob"]["properties"]
    assert oci["ociRepository"] == {
        **{"url": "oci://a.azurecr.io/b", "repositoryRef": {"digest": f"sha256:{'0' * 64}"}},
        **{"syncIntervalInSeconds": 300, "useWorkloadIdentity": True, "serviceAccountName": "reader"},
    }
    assert blob["sourceKind"] == "AzureBlob"
    assert blob["azureBlob"]["localAuthRef"] == "k"
    assert found["git"]["properties"]["gitRepository"]["repositoryRef"] == {"semver": "1.x"}
    assert found["apps"]["properties"]["gitRepository"]["provider"] == "Azure"


def test_a_kustomization_has_the_facts_of_the_cluster_as_variables_below_its_own() -> None:
    apps = bodies(kustomizations=KUSTOMIZATIONS[:2])["flux-system"]["properties"]["kustomizations"]["apps"]
    assert apps == {
        **{"path": "./apps", "dependsOn": ["base"], "wait": True, "force": True, "prune": False},
        **{"syncIntervalInSeconds": 5400, "timeoutInSeconds": 300, "retryIntervalInSeconds": 90},
        "postBuild": {
            "substitute": {"cluster_name": "one", "cluster_location": "here"},
            "substituteFrom": [{"kind": "Secret", "name": "s", "optional": False}],
        },
    }
    base = bodies(kustomizations=KUSTOMIZATIONS[:1])["flux-system"]["properties"]["kustomizations"]["base"]
    assert "postBuild" not in base, "Flux replaces variables only where it is asked to"


def test_what_azure_fills_in_is_no_change() -> None:
    for body in bodies(sources=SOURCES, kustomizations=KUSTOMIZATIONS).values():
        assert changed_fields(body, as_shown(body)) == []


@pytest.mark.parametrize(
    ("path", "value", "changed"),
    [
        (("suspend",), True, ["suspend"]),
        (("gitRepository", "url"), "https://github.com/else", ["gitRepository.url"]),
        (("gitRepository", "repositoryRef", "tag"), "v1", ["gitRepository.repositoryRef"]),
        (("kustomizations", "base", "prune"), False, ["kustomizations[base].prune"]),
        (
            ("kustomizations", "base", "postBuild"),
            {"substitute": {"a": "b"}},
            ["kustomizations[base].postBuild"],
        ),
        (("kustomizations", "more"), {"path": "./more"}, ["kustomizations[more]"]),
    ],
)
def test_what_somebody_changes_is_named(path: tuple[str, ...], value: Any, changed: list[str]) -> None:
    body = bodies(kustomizations=KUSTOMIZATIONS[:2])["flux-system"]
    live = as_shown(body)
    inner = live["properties"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert changed_fields(body, live) == changed


@pytest.mark.parametrize(
    ("source", "fields", "changed"),
    [
        ("blob", ["secretRef"], ["azureBlob.localAuthRef"]),
        ("apps", ["provider"], ["gitRepository.provider"]),
        ("oci", ["digest"], ["ociRepository.repositoryRef"]),
        (
            "oci",
            ["provider", "serviceAccountName"],
            ["ociRepository.serviceAccountName", "ociRepository.useWorkloadIdentity"],
        ),
        ("s3", ["secretRef"], ["bucket.localAuthRef"]),
    ],
)
def test_what_git_takes_back_of_a_source_is_a_change(
    source: str, fields: list[str], changed: list[str]
) -> None:
    live = as_shown(bodies(sources=SOURCES)[source])
    after = [
        {key: value for key, value in document.items() if document["name"] != source or key not in fields}
        for document in SOURCES
    ]
    body = bodies(sources=after)[source]
    assert changed_fields(body, live) == changed
    assert changed_fields(body, as_shown(body)) == []


def test_a_source_that_somebody_has_pulled_without_tls_is_a_change() -> None:
    body = bodies(sources=SOURCES)["s3"]
    live = as_shown(body)
    live["properties"]["bucket"]["insecure"] = False
    assert changed_fields(body, live) == []
    live["properties"]["bucket"]["insecure"] = True
    assert changed_fields(body, live) == ["bucket.insecure"]


def test_a_retry_interval_that_git_takes_back_is_a_change() -> None:
    live = as_shown(bodies(kustomizations=KUSTOMIZATIONS[:2])["flux-system"])
    after = [KUSTOMIZATIONS[0], {k: v for k, v in KUSTOMIZATIONS[1].items() if k != "retryInterval"}]
    body = bodies(kustomizations=after)["flux-system"]
    assert changed_fields(body, live) == ["kustomizations[apps].retryIntervalInSeconds"]


def test_the_provider_that_signs_nobody_in_is_no_change() -> None:
    body = bodies()["flux-system"]
    live = as_shown(body)
    live["properties"]["gitRepository"]["provider"] = "Generic"
    assert changed_fields(body, live) == []


def test_newer_facts_count_for_a_job_and_not_for_a_check() -> None:
    newer = bodies({**FACTS, "cluster_name": "new"}, kustomizations=KUSTOMIZATIONS[:2])["flux-system"]
    live = as_shown(bodies(kustomizations=KUSTOMIZATIONS[:2])["flux-system"])
    assert changed_fields(newer, live) == ["kustomizations[apps].postBuild"]
    assert changed_fields(newer, live, facts=False) == []


def test_the_secret_is_in_the_protected_settings_alone() -> None:
    body = with_key(bodies()["flux-system"], GitCredentials("user", "a-secret"))
    assert read_configuration(body)["properties"]["configurationProtectedSettings"] == {
        "httpsKey": "YS1zZWNyZXQ="
    }
    assert "a-secret" not in str(body)


@pytest.mark.parametrize(
    ("extension", "expected"),
    [
        ({}, {"autoUpgradeMinorVersion": True}),
        ({"version": "1.19.5"}, {"autoUpgradeMinorVersion": False, "version": "1.19.5"}),
        ({"releaseTrain": "Preview"}, {"autoUpgradeMinorVersion": True, "releaseTrain": "Preview"}),
    ],
)
def test_the_extension_stays_at_its_version_or_is_upgraded(extension: Json, expected: Json) -> None:
    flux = Flux.model_validate(
        {"repository": "https://github.com/a/b", "path": ".", "install": "extension", "extension": extension}
    )
    body = extension_body(flux, None)
    assert read_extension(body) == body
    assert expected.items() <= body["properties"].items()
    live = copied(body)
    live["properties"]["configurationSettings"] = {"of": "azure"}
    assert changed_fields(extension_body(flux, live), live) == []


def test_a_source_that_git_no_longer_has_is_to_be_removed_until_that_is_done() -> None:
    def document(*names: str, install: str = "extension") -> Json:
        return {"spec": {"flux": {"install": install, "sources": [{"name": name} for name in names]}}}

    assert configurations_to_remove(document("a", "b"), document("b", "c"), ["z"]) == ("a", "z")
    assert configurations_to_remove(document("a"), document("a"), ["a"]) == ()
    assert configurations_to_remove(document("a", install="components"), document(), []) == ()


def status(state: str, reason: str, message: str, kind: str = "Kustomization") -> dict[str, Any]:
    ready = {
        "type": "Ready",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {
        "kind": kind,
        "name": "a",
        "namespace": "b",
        "complianceState": state,
        "statusConditions": [ready],
    }


def test_each_object_is_judged_by_its_compliance_with_the_reason_of_flux() -> None:
    sha = "c4e327286379495f8b6edc2c9c208095b6cc53ab"
    shown = [
        status("Compliant", "ReconciliationSucceeded", f"Applied revision: main/{sha}"),
        status("Compliant", "Succeeded", f"stored artifact for revision 'main@sha1:{sha}'", "GitRepository"),
        status("Compliant", "InstallSucceeded", "Helm install succeeded", "HelmRelease"),
        status("Non-Compliant", "BuildFailed", "no such file"),
        status("Pending", "Progressing", "Reconciliation in progress"),
        status("Suspended", "", ""),
    ]
    states = [configuration.state for configuration in reported({"properties": {"statuses": shown}})]
    assert states == [
        *(Ready(f"main/{sha}"), Ready(f"main@sha1:{sha}"), Ready("")),
        *(FluxFailure("BuildFailed", "no such file"), Progressing("Progressing: Reconciliation in progress")),
        Suspended(),
    ]
    assert {commit_of(state.revision) for state in states[:2] if isinstance(state, Ready)} == {sha}


@pytest.mark.parametrize(
    ("updated", "outdated"),
    [(None, True), ("2026-01-01T00:00:00Z", True), ("2026-01-01T00:00:02+00:00", False)],
)
def test_a_report_that_is_older_than_the_last_write_counts_for_nothing(
    updated: str | None, outdated: bool
) -> None:
    live = {
        "properties": {"statusUpdatedAt": updated},
        "systemData": {"lastModifiedAt": "2026-01-01T00:00:01.5Z"},
    }
    assert is_outdated(live) is outdated
