"""Whose fields become ours, and which fields an apply took from others."""

from __future__ import annotations

from typing import Any

import pytest

from shared.kubernetes.field_ownership import lost_fields, same, transferred


def entry(manager: str, fields: dict[str, Any], operation: str = "Update", **more: str) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


def ours(fields: dict[str, Any]) -> dict[str, Any]:
    return entry("roadstead", fields, "Apply")


def source(*entries: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": "flux-system", "managedFields": list(entries)},
        "spec": {"ref": {"branch": "main", "tag": "v1"}, "url": "https://github.com/example/fleet"},
    }


BRANCH: dict[str, Any] = {"f:spec": {"f:ref": {"f:branch": {}}, "f:url": {}}}
TAG: dict[str, Any] = {"f:spec": {".": {}, "f:ref": {".": {}, "f:tag": {}}}}


def fields_of(live: Any, manager: str) -> Any:
    return next(
        document["fieldsV1"]
        for document in live["metadata"]["managedFields"]
        if document["manager"] == manager
    )


def test_the_fields_of_a_former_manager_become_ours() -> None:
    found = transferred(source(ours(BRANCH), entry("kubectl-edit", TAG)), entirely=True)
    assert found is not None
    assert [document["manager"] for document in found["metadata"]["managedFields"]] == ["roadstead"]
    assert fields_of(found, "roadstead")["f:spec"]["f:ref"] == {".": {}, "f:branch": {}, "f:tag": {}}


def test_an_object_that_somebody_else_created_gets_an_entry_of_ours() -> None:
    found = transferred(source(entry("flux", TAG, "Apply")), entirely=True)
    assert found is not None
    (one,) = found["metadata"]["managedFields"]
    assert (one["manager"], one["operation"], one["apiVersion"]) == (
        "roadstead",
        "Apply",
        "source.toolkit.fluxcd.io/v1",
    )
    assert one["fieldsV1"] == TAG


@pytest.mark.parametrize(
    "other",
    [
        entry("gotk-kustomize-controller", {"f:metadata": {"f:finalizers": {}}}),
        entry("gotk-source-controller", {"f:status": {"f:artifact": {}}}, subresource="status"),
        entry("flux", {"f:spec": {"f:suspend": {}}}),
        entry("flux", {"f:metadata": {"f:annotations": {"f:reconcile.fluxcd.io/requestedAt": {}}}}),
        entry("somebody", {"f:spec": {"f:url": {}}}),
        entry("somebody", {"f:spec": {".": {}}}),
    ],
    ids=["finalizers", "status", "suspend", "a request", "a field that we set too", "only the spec itself"],
)
def test_what_is_not_a_field_of_ours_to_remove_stays_with_its_manager(other: dict[str, Any]) -> None:
    assert transferred(source(ours(BRANCH), other), entirely=True) is None


def test_a_manager_keeps_what_is_not_content() -> None:
    mixed: dict[str, Any] = {
        "f:metadata": {"f:labels": {"f:team": {}}},
        "f:spec": {"f:suspend": {}, "f:ref": {"f:tag": {}}},
    }
    found = transferred(source(ours(BRANCH), entry("kubectl-edit", mixed)), entirely=True)
    assert fields_of(found, "kubectl-edit") == {
        "f:metadata": {"f:labels": {"f:team": {}}},
        "f:spec": {"f:suspend": {}},
    }


@pytest.mark.parametrize(
    ("manager", "becomes_ours"),
    [("flux", True), ("kubectl-client-side-apply", True), ("kubectl-edit", False), ("vpa-updater", False)],
)
def test_of_a_component_only_the_fields_of_installers_become_ours(manager: str, becomes_ours: bool) -> None:
    found = transferred(source(ours(BRANCH), entry(manager, TAG)), entirely=False)
    assert (found is not None) == becomes_ours


def test_the_fields_that_an_apply_took_are_named_with_their_manager() -> None:
    before = source(
        ours({"f:spec": {"f:url": {}}}),
        entry("kubectl-edit", {"f:spec": {"f:path": {}, "f:ref": {"f:branch": {}}, "f:timeout": {}}}),
        entry("flux", {"f:metadata": {"f:annotations": {"f:reconcile.fluxcd.io/requestedAt": {}}}}),
    )
    after = source(ours(BRANCH), entry("kubectl-edit", {"f:spec": {"f:timeout": {}}}))
    assert lost_fields(before, after) == ["spec.path, spec.ref.branch of kubectl-edit"]


def test_states_differ_in_their_content_and_not_in_what_the_server_counts() -> None:
    one = source(ours(BRANCH))
    counted = {"resourceVersion": "7", "generation": 3}
    other = {**one, "metadata": {"name": "flux-system", **counted}, "status": {"artifact": {}}}
    assert same(one, other)
    assert not same(one, {**one, "spec": {}})
    assert not same(one, {**one, "metadata": {**one["metadata"], "labels": {"a": "b"}}})
