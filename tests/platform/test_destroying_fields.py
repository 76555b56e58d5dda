"""Fields that differ and destroy: what a change of one does on a cluster."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shared.platform.changes.effects import Cause, Fate
from shared.platform.changes.fixed_fields import FIXED
from shared.platform.changes.guards import judge
from tests.platform.changed_objects import DEFAULTED, EVERY_ENTRY, REFUSED, TAKEN, replaced
from tests.platform.effects import change_of, effects, found
from tests.platform.inventories import (
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
    [*EVERY_ENTRY, *REFUSED],
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


def test_each_entry_of_the_table_has_a_change_that_it_refuses() -> None:
    refused = [(new["kind"], field) for _, new, field in (*EVERY_ENTRY, *REFUSED)]
    for entry in FIXED:
        fields = (field for kind, field in refused if kind == entry.kind)
        assert any(re.match(rf"{re.escape(entry.path)}(?![a-zA-Z])", field) for field in fields), entry


@pytest.mark.parametrize(
    ("old", "new"),
    TAKEN,
)
def test_what_the_api_server_accepts_is_a_plain_change_with_force_too(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert change_of(old, new, force=True).effect is Fate.CHANGED


@pytest.mark.parametrize(
    ("of_spec", "of_region", "counts"),
    [
        ("", "self == oldSelf", True),
        ("self.region == oldSelf.region", "", True),
        ("!has(oldSelf.region) || has(self.region) && self.region == oldSelf.region", "", True),
        ("!has(oldSelf.region) || (self.region == oldSelf.region)", "", True),
        ("self.mode == 'free' || self.region == oldSelf.region", "", False),
        ("!has(oldSelf.locked) || self.region == oldSelf.region", "", False),
        ("self.region >= oldSelf.region", "", False),
    ],
)
def test_a_definitions_own_rule_counts_for_the_objects_of_its_kind(
    of_spec: str, of_region: str, counts: bool
) -> None:
    rules = [[{"rule": rule}] if rule else [] for rule in (of_spec, of_region)]
    region = {"x-kubernetes-validations": rules[1], "type": "string"}
    spec = {"x-kubernetes-validations": rules[0], "properties": {"region": region}}
    schema = {"openAPIV3Schema": {"properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    known = definition("Backup", spec={"versions": [version]})
    old, new = (
        manifest("Backup", "a/b", "data.example.com/v1", spec={"region": region}) for region in ("a", "b")
    )
    before, after = inventory(owner("p", known, old)), inventory(owner("p", known, new))
    assert found(before, after)["Backup a/b"].detail == ("spec.region" if counts else "")


@pytest.mark.parametrize(
    ("old", "new", "field"),
    DEFAULTED,
)
def test_what_kubernetes_has_filled_in_stays_when_it_has_no_place_any_more(
    old: dict[str, Any], new: dict[str, Any], field: str
) -> None:
    """Reports: kubernetes/kubernetes#24198, gimlet-io/onechart#35. A real API server refuses each."""
    known = change_of(old, new)
    expected = (Fate.STUCK, Cause.DEFAULTED) if field else (Fate.CHANGED, Cause.NONE)
    assert ((known.effect, known.cause), known.detail) == (expected, field)
    if field:
        assert change_of(old, new, force=True).effect is Fate.RECREATED
        written = change_of(old, replaced(old["kind"], rollingUpdate={"maxUnavailable": 1}))
        assert written.effect is Fate.CHANGED
        (guard,) = judge(inventory(owner("p", old)), inventory(owner("p", new)), 20).guards
        assert f"Kubernetes has filled in {field} of {old['kind']} a/b" in guard.cause
        assert guard.remedy.startswith(f"first commit {field} as the clusters have it")


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
