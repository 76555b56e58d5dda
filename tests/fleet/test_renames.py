"""A renamed folder is a delete and a creation, and both wait for an approval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from shared.fleet.planning.make_plan import make_plan
from shared.fleet.planning.plan import Action
from shared.fleet.planning.renames import renames
from tests.support.desired_clusters import NOW, desired, fleet, record, with_field

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
    return renames({old["name"]: old}, {new["name"]: new}) == {old["name"]: new["name"]}


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


def test_each_cluster_is_in_one_pair_at_most() -> None:
    removed = {name: stored(name) for name in ("a", "b", "c")}
    added = {name: stored(name) for name in ("x", "y")}
    assert renames(removed, added) == {"a": "x", "b": "y"}
    assert renames({"a": removed["a"]}, added) == {"a": "x"}
