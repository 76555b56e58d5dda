"""Labels and taints to remove from a node pool: collected over generations until one of them is Ready."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.fleet.aks.removed_keys import keys_to_remove

TAINTS = ("a=1:NoSchedule", "a=2:NoSchedule", "b=1:NoExecute")
POOLS = st.fixed_dictionaries(
    {"name": st.just("apps")},
    optional={
        "nodeLabels": st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy")),
        "nodeTaints": st.lists(st.sampled_from(TAINTS), unique=True),
    },
)
DOCUMENTS = POOLS.map(lambda pool: {"spec": {"nodePools": [pool]}})


def marks(document: Any) -> set[str]:
    (pool,) = document["spec"]["nodePools"]
    return {*pool.get("nodeLabels", ()), *pool.get("nodeTaints", ())}


@given(st.lists(DOCUMENTS, min_size=1, max_size=6))
def test_what_any_generation_had_and_the_last_one_has_not_is_dropped(generations: list[Any]) -> None:
    found: dict[str, tuple[str, ...]] = {}
    for before, after in pairwise(generations):
        found = keys_to_remove(before, after, found)
    had = set[str]().union(*map(marks, generations))
    assert set(found.get("apps", ())) == had - marks(generations[-1])


def test_another_value_of_a_label_drops_nothing_and_another_effect_drops_the_old_taint() -> None:
    before = {"name": "apps", "nodeLabels": {"tier": "web"}, "nodeTaints": ["a=1:NoSchedule"]}
    after = {"name": "apps", "nodeLabels": {"tier": "db"}, "nodeTaints": ["a=1:NoExecute"]}
    found = keys_to_remove({"spec": {"nodePools": [before]}}, {"spec": {"nodePools": [after]}}, {})
    assert found == {"apps": ("a=1:NoSchedule",)}


def test_a_removed_pool_leaves_no_keys_to_remove() -> None:
    before = {"spec": {"nodePools": [{"name": "apps", "nodeLabels": {"a": "b"}}]}}
    assert keys_to_remove(before, {"spec": {"nodePools": []}}, {"apps": ("c",)}) == {}
