"""Differences between two specs: the order of a list counts only where it has a meaning in Azure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.azure.changes.comparison import alike
from shared.azure.changes.field_effects import Effect
from shared.plan.differences import differences
from shared.plan.make_plan import make_plan
from shared.plan.plan import Action
from tests.support.desired_clusters import NOW, desired, fleet, record, with_field

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xy"), inner),
    max_leaves=8,
)
SYSTEM = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}
POOL: dict[str, Any] = {"name": "a", "count": 1, "nodeTaints": ["x=1:NoSchedule", "y=2:NoSchedule"]}


def nested(path: str, value: Any) -> dict[str, Any]:
    """Return a value inside the objects of its path."""
    first, _, rest = path.partition(".")
    return {first: nested(rest, value) if rest else value}


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("apiServerAccessProfile.authorizedIPRanges", ["10.0.0.0/8", "192.0.2.0/24"], None),
        ("aadProfile.adminGroupObjectIDs", ["one", "two", "three"], None),
        ("maintenanceWindows", [{"name": "a"}, {"name": "b"}], None),
        ("azure.properties.someProfile.rules", [{"port": 1}, {"port": 2}], None),
        (
            "nodePools",
            [POOL, {"name": "b"}],
            [{"name": "b"}, {**POOL, "nodeTaints": POOL["nodeTaints"][::-1]}],
        ),
    ],
)
def test_another_order_alone_is_no_change(path: str, old: list[Any], new: list[Any] | None) -> None:
    assert list(differences({"spec": nested(path, old)}, {"spec": nested(path, new or old[::-1])})) == []


def shown(old: Any, new: Any) -> list[tuple[str, str, str]]:
    return [(change.path, change.old, change.new) for change in differences(old, new)]


@pytest.mark.parametrize("path", ["networkProfile.ipFamilies", "networkProfile.podCidrs"])
def test_the_first_address_family_is_the_primary_one(path: str) -> None:
    old, new = ({"spec": {"networkProfile": {path.split(".")[1]: list(order)}}} for order in ("46", "64"))
    assert not alike(old, new)
    assert shown(old, new) == [(f"spec.{path}", '["4", "6"]', '["6", "4"]')]


def test_an_object_that_is_added_or_removed_is_shown_field_by_field_and_a_pool_by_its_name() -> None:
    section = {"enablePrivateCluster": True, "authorizedIPRanges": ["192.0.2.0/24"]}
    old: dict[str, Any] = {"spec": {"nodePools": []}}
    new = {"spec": {"apiServerAccessProfile": section, "nodePools": [POOL]}}
    added = [
        ("spec.apiServerAccessProfile.authorizedIPRanges", "", '["192.0.2.0/24"]'),
        ("spec.apiServerAccessProfile.enablePrivateCluster", "", "true"),
        ("spec.nodePools[a]", "", "a"),
    ]
    assert shown(old, new) == added
    assert shown(new, old) == [(path, after, before) for path, before, after in added]
    assert shown({}, {"x": {}}) == [("x", "", "{}")]


def test_a_commit_that_only_reorders_changes_no_cluster() -> None:
    taints = ["a=b:NoSchedule", "c=d:NoSchedule"]
    before, after = (
        with_field(desired("a"), "nodePools", [{**SYSTEM, "nodeTaints": order}])
        for order in (taints, taints[::-1])
    )
    assert before.digest != after.digest
    plan = make_plan("c" * 40, fleet(after), record(before), now=NOW)
    assert [item.action for item in plan.items] == [Action.UNCHANGED]


@pytest.mark.parametrize(("old", "new"), [([1], [True]), (["a", "a"], ["a"]), ([], None), (0, False)])
def test_values_that_only_python_considers_equal_are_a_change(old: Any, new: Any) -> None:
    assert not alike(old, new)
    assert list(differences({"x": old}, {"x": new}))


@given(JSON, JSON)
def test_alike_means_equal_but_for_order(one: Any, other: Any) -> None:
    assert alike(one, one)
    if json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True):
        assert alike(one, other)
    if not isinstance(one, list) and alike(one, other):
        assert type(one) is type(other)


@given(st.lists(JSON, max_size=5).flatmap(lambda items: st.tuples(st.just(items), st.permutations(items))))
def test_any_order_of_a_list_is_alike(lists: tuple[list[Any], list[Any]]) -> None:
    assert alike(*lists)


def test_values_that_differ_only_at_their_end_have_the_effect_of_their_field_and_look_different() -> None:
    network = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/network-production"
    ids = [
        f"{network}/providers/Microsoft.Network/virtualNetworks/hub/subnets/{name}" for name in ("one", "two")
    ]
    old, new = ({"spec": {"nodePools": [{"name": "apps", "vnetSubnetID": subnet}]}} for subnet in ids)
    [change] = differences(old, new)
    assert change.effect is Effect.REPLACEMENT
    assert change.old != change.new
    assert max(map(len, (change.old, change.new))) <= 80
