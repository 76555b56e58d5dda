"""Labels and taints to remove from a node pool: collected over generations until the cluster is Ready."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.azure.node_pools.body import keys_to_remove

TAINTS = ("a=1:NoSchedule", "a=2:NoSchedule", "b=1:NoExecute")
POOLS = st.fixed_dictionaries(
    {"name": st.just("apps")},
    optional={
        "nodeLabels": st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy")),
        "nodeTaints": st.lists(st.sampled_from(TAINTS), unique=True),
    },
)
DOCUMENTS = POOLS.map(lambda pool: {"spec": {"nodePools": [pool]}})


def keys(document: Any) -> set[str]:
    (pool,) = document["spec"]["nodePools"]
    return {*pool.get("nodeLabels", ()), *pool.get("nodeTaints", ())}


@given(st.lists(DOCUMENTS, min_size=1, max_size=6))
def test_keys_of_any_generation_that_the_last_one_lacks_are_removed(generations: list[Any]) -> None:
    removed: dict[str, tuple[str, ...]] = {}
    for before, after in pairwise(generations):
        removed = keys_to_remove(before, after, removed)
    had = set[str]().union(*map(keys, generations))
    assert set(removed.get("apps", ())) == had - keys(generations[-1])


def test_another_value_of_a_label_removes_nothing_and_another_effect_removes_the_old_taint() -> None:
    before = {"name": "apps", "nodeLabels": {"tier": "web"}, "nodeTaints": ["a=1:NoSchedule"]}
    after = {"name": "apps", "nodeLabels": {"tier": "db"}, "nodeTaints": ["a=1:NoExecute"]}
    removed = keys_to_remove({"spec": {"nodePools": [before]}}, {"spec": {"nodePools": [after]}}, {})
    assert removed == {"apps": ("a=1:NoSchedule",)}


def test_a_removed_pool_leaves_no_keys_to_remove() -> None:
    before = {"spec": {"nodePools": [{"name": "apps", "nodeLabels": {"a": "b"}}]}}
    assert keys_to_remove(before, {"spec": {"nodePools": []}}, {"apps": ("c",)}) == {}
