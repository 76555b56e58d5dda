"""A renamed folder is a delete and a creation, and both wait for an approval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from shared.plan.make_plan import make_plan
from shared.plan.plan import Action
from shared.plan.replacements import Look, Rename, likeness, renames
from tests.support.desired_clusters import NOW, changed, desired, fleet, record, with_field

COMMIT = "a" * 40
POOL = {"name": "system", "mode": "System", "vmSize": "Standard_D8s_v5", "count": 1}


def stored(name: str, **fields: Any) -> Mapping[str, Any]:
    spec = {
        "location": "eastus",
        "resourceGroup": f"rg-{name}",
        "nodePools": [{"name": "system", "count": 1}],
    }
    return {"name": name, "spec": spec | fields}


def looks_renamed(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return bool(likeness(Look.of(old), Look.of(new)))


def test_a_rename_holds_the_delete_and_the_creation_until_the_delete_is_approved() -> None:
    new = with_field(desired("b"), "resourceGroup", "rg-b")
    plan = make_plan(COMMIT, fleet(new), record(desired("a")), now=NOW)
    old_item, new_item = plan.items
    assert (old_item.action, new_item.action) == (Action.ON_HOLD, Action.ON_HOLD)
    for item in plan.items:
        assert "it looks like a rename of a to b, which would delete a and create b empty" in item.reason
    assert plan.deletes_needing_approval == {"a"}
    assert not new_item.needs_approval
    plan = make_plan(COMMIT, fleet(new), record(desired("a")), now=NOW, approved=frozenset({"a"}))
    assert [item.action for item in plan.items] == [Action.DELETE, Action.CREATE]


def test_a_commit_that_is_half_invalid_deletes_nothing() -> None:
    rows, wanted = record(desired("a"), desired("c")), fleet(desired("c"), invalid=("b",))
    plan = make_plan(COMMIT, wanted, rows, now=NOW)
    assert [item.action for item in plan.items] == [Action.ON_HOLD, Action.INVALID, Action.UNCHANGED]
    assert plan.items[0].reason == (
        "a commit that is half invalid deletes nothing, because nobody knows what the manifest of b says of "
        "a; correct the manifest or restore the folder a; roadstead approve releases the delete"
    )
    assert plan.deletes_needing_approval == {"a"}
    assert plan.items[0].hold is not None
    assert not plan.items[0].hold.by_review
    plan = make_plan(COMMIT, wanted, rows, now=NOW, approved=frozenset({"a"}))
    assert plan.items[0].action is Action.DELETE


def test_a_recorded_cluster_that_has_become_invalid_holds_the_deletes_of_others_too() -> None:
    wanted = fleet(invalid=("c",))
    plan = make_plan(COMMIT, wanted, record(desired("a"), desired("c")), now=NOW)
    assert [item.action for item in plan.items] == [Action.ON_HOLD, Action.INVALID]
    assert plan.deletes_needing_approval == {"a"}


def test_a_cluster_that_is_being_deleted_holds_no_new_one() -> None:
    going = {"a": replace(record(desired("a"))["a"], deleting=True)}
    plan = make_plan(COMMIT, fleet(desired("b")), going, now=NOW)
    assert {item.cluster: item.action for item in plan.items} == {"a": Action.UNCHANGED, "b": Action.CREATE}


def test_clusters_that_differ_in_what_makes_them_recognisable_are_no_rename() -> None:
    new = with_field(desired("b"), "nodePools", [POOL])
    plan = make_plan(COMMIT, fleet(new), record(desired("a")), now=NOW)
    assert {item.cluster: item.action for item in plan.items} == {"a": Action.DELETE, "b": Action.CREATE}


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": {"team": "shop"}},
        {"kubernetesVersion": "1.37"},
        {"deletionProtection": True},
        {"flux": {"path": "./clusters/new-one/apps"}},
    ],
)
def test_what_often_differs_and_the_own_name_do_not_count(fields: Mapping[str, Any]) -> None:
    before = {"flux": {"path": "./clusters/old/apps"}} if "flux" in fields else {}
    assert looks_renamed(stored("old", **before), stored("new-one", **fields))


@pytest.mark.parametrize("name", ["dnsPrefix", "fqdnSubdomain", "nodeResourceGroup"])
def test_a_name_in_azure_that_both_have_is_a_rename_whatever_else_differs(name: str) -> None:
    old = stored("old", **{name: "shop"})
    assert looks_renamed(old, stored("new", **{name: "shop"}, nodePools=[POOL], location="westus"))
    assert not looks_renamed(old, stored("new", **{name: "web"}, nodePools=[POOL]))


def test_another_region_is_no_rename() -> None:
    assert not looks_renamed(stored("old"), stored("new", location="westus"))


def test_a_name_inside_another_word_is_not_the_own_name() -> None:
    old, new = stored("a", diskSet="data"), stored("b", diskSet="dbtb")
    assert not looks_renamed(old, new)


OWN: Mapping[str, Any] = {
    "environment": "production",
    "class": "small",
    "labels": {"team": "shop"},
    "tags": {"team": "shop"},
    "resourceGroup": "shop",
    "kubernetesVersion": "1.36",
    "dnsPrefix": "shop",
}
"""What the manifest of a removed cluster says of it."""
DIFFERING: list[tuple[Mapping[str, Any], str]] = [
    ({}, "the dnsPrefix shop"),
    ({"dnsPrefix": None}, ""),
    ({"dnsPrefix": "web", "count": 3}, ""),
    ({"dnsPrefix": "shop", "count": 3, "environment": "test", "class": "large"}, "the dnsPrefix shop"),
]
ALIKE: list[tuple[Mapping[str, Any], str]] = [
    ({}, "the same spec"),
    ({"deletionProtection": True, "suspend": {"until": "2026-01-31"}, "drift": {}}, "the same spec"),
    ({"labels": {"team": "web"}}, "the same spec, but for labels"),
    ({"environment": "test", "tags": {"team": "web"}}, "the same spec, but for environment and tags"),
    ({"class": "large", "resourceGroup": "web"}, "the same spec, but for class and resourceGroup"),
    ({"labels": {}, "tags": {"team": "web"}, "resourceGroup": "web"}, ""),
    ({"environment": "test", "class": "large", "kubernetesVersion": "1.37"}, ""),
    ({"count": 3}, ""),
]


def described(name: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    of_document = {key: fields[key] for key in ("environment", "class", "labels") if key in fields}
    return {**stored(name, **{key: fields[key] for key in fields.keys() - of_document.keys()}), **of_document}


@pytest.mark.parametrize(("fields", "common"), DIFFERING)
def test_a_name_in_azure_makes_two_clusters_alike(fields: Mapping[str, Any], common: str) -> None:
    assert likeness(Look.of(described("a", OWN)), Look.of(described("b", {**OWN, **fields}))) == common


@pytest.mark.parametrize(("fields", "common"), ALIKE)
def test_so_does_the_same_spec_with_two_differences_at_most(fields: Mapping[str, Any], common: str) -> None:
    own = {key: value for key, value in OWN.items() if key != "dnsPrefix"}
    assert likeness(Look.of(described("a", own)), Look.of(described("b", {**own, **fields}))) == common


def test_two_clusters_that_are_not_alike_are_deleted_and_created() -> None:
    old = with_field(desired("a"), "tags", {"team": "shop"})
    new = changed(with_field(desired("b"), "kubernetesVersion", "1.37"), labels={"team": "web"})
    plan = make_plan(COMMIT, fleet(new), record(old), now=NOW)
    assert {item.cluster: item.action for item in plan.items} == {"a": Action.DELETE, "b": Action.CREATE}


def test_a_hold_says_what_makes_the_two_look_like_one() -> None:
    new = changed(desired("b"), labels={"team": "web"})
    plan = make_plan(COMMIT, fleet(new), record(desired("a")), now=NOW)
    assert plan.items[0].reason == (
        "it looks like a rename of a to b, which would delete a and create b empty: both have the same spec, "
        "but for labels; if they are two clusters, roadstead approve releases both; otherwise restore the "
        "folder a"
    )


def test_each_cluster_is_in_one_pair_at_most() -> None:
    removed = {name: stored(name) for name in ("a", "b", "c")}
    added = {name: stored(name) for name in ("x", "y")}
    x, y = Rename("x", "the same spec"), Rename("y", "the same spec")
    assert renames(removed, added) == {"a": x, "b": y}
    assert renames({"a": removed["a"]}, added) == {"a": x}


def test_a_cluster_is_paired_with_one_that_is_alike_and_not_with_another_of_the_same_spec() -> None:
    own = {key: value for key, value in OWN.items() if key != "dnsPrefix"}
    other = own | {"labels": {}, "tags": {}, "resourceGroup": "web"}
    added = {"x": described("x", other), "y": described("y", own)}
    assert renames({"a": described("a", own)}, added) == {"a": Rename("y", "the same spec")}
