"""Layers: precedence, removals, protection, and the source of each value."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.language.desired import Desired
from shared.language.model.fleet_rules import DeleteBudget
from shared.language.resolve.manifest_file import Placeholders
from shared.language.yaml.nodes import Items, Mark, Node, merge, plain_value, texts, without_nulls
from tests.support import fleet_files
from tests.support.identity_access import SHOP
from tests.support.resolved_fleets import GOOD, ONE, resolved, with_change, with_files
from tests.support.yaml_nodes import node

pytestmark = pytest.mark.lives

SCALARS = st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["x", "{name}", "{other}", "{"])
NAMED = st.lists(st.sampled_from("abc"), unique=True, max_size=3)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.dictionaries(st.sampled_from("pqr"), inner, max_size=3)
        | st.lists(inner, max_size=2)
        | st.tuples(NAMED, st.dictionaries(st.sampled_from("pq"), inner, max_size=2)).map(
            lambda drawn: [{"name": name, **drawn[1]} for name in drawn[0]]
        )
    ),
    max_leaves=10,
)
LAYERS = st.lists(st.dictionaries(st.sampled_from("pqr"), VALUES, max_size=3), min_size=1, max_size=4)
relaxed = settings(suppress_health_check=[HealthCheck.too_slow])


def marked(value: Any, layer: int) -> Node:
    """Return plain data as nodes of a file that has the number of the layer as its name."""

    def at(found: Node) -> Node:
        inner: Any = found.value
        if isinstance(inner, dict):
            inner = {key: at(item) for key, item in inner.items()}
        elif isinstance(inner, Items):
            inner = Items(at(item) for item in inner)
        return Node(inner, Mark(str(layer), 1, 1))

    return at(node(value))


def leaves(value: Node, path: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], Node]:
    """Return the leaves of a tree by path; items of a list by their number."""
    if not isinstance(value.value, dict | tuple):
        return {path: value}
    items = value.value.items() if isinstance(value.value, dict) else enumerate(value.value)
    return {at: leaf for step, item in items for at, leaf in leaves(item, (*path, step)).items()}


@relaxed
@given(LAYERS)
def test_every_value_of_the_result_is_in_the_layer_that_its_mark_names(layers: list[dict[str, Any]]) -> None:
    nodes = [marked(layer, number) for number, layer in enumerate(layers)]
    written = [{leaf.value for leaf in leaves(layer).values()} for layer in nodes]
    for leaf in leaves(reduce(merge, nodes)).values():
        assert leaf.value in written[int(leaf.mark.file)]


@relaxed
@given(LAYERS)
def test_the_values_of_the_last_layer_are_in_the_result(layers: list[dict[str, Any]]) -> None:
    nodes = [marked(layer, number) for number, layer in enumerate(layers)]
    merged = reduce(merge, nodes)
    for path, leaf in leaves(nodes[-1]).items():
        by_name = [_named(nodes[-1], path[: depth + 1]) for depth in range(len(path))]
        assert merged.find(by_name).value == leaf.value


def _named(root: Node, path: tuple[str | int, ...]) -> str | int:
    """Return the last step of a path, as the item's name where the list is merged by name."""
    above, item = root.find(path[:-1]), root.find(path)
    names = [inner.name for inner in above.value] if isinstance(above.value, tuple) else []
    distinct = None not in names and len(set(names)) == len(names)
    return item.name if names and distinct and item.name is not None else path[-1]


@relaxed
@given(LAYERS)
def test_a_layer_that_lacks_a_field_leaves_it_unchanged(layers: list[dict[str, Any]]) -> None:
    nodes = [marked(layer, number) for number, layer in enumerate(layers)]
    merged, below = reduce(merge, nodes), reduce(merge, nodes[:-1], node({}))
    for key in below.value.keys() - nodes[-1].value.keys():
        assert merged.value[key].plain() == below.value[key].plain()


@relaxed
@given(LAYERS)
def test_plain_values_have_no_nulls_no_removed_items_and_no_placeholders(
    layers: list[dict[str, Any]],
) -> None:
    merged = reduce(merge, [marked(layer, 0) for layer in layers])
    fill = Placeholders({"name": "one"}).fill
    slow = without_nulls(merged).plain()
    assert plain_value(merged, fill) == filled(slow, fill)


def filled(value: Any, fill: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: filled(inner, fill) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, fill) for inner in value]
    return fill(value) if isinstance(value, str) else value


@given(st.text(st.sampled_from("{}name ocatin"), max_size=30))
def test_other_braces_stay_as_they_are(text: str) -> None:
    fill = Placeholders({"name": "N", "location": "L"}).fill
    assert fill(text) == text.replace("{name}", "N").replace("{location}", "L")


def test_the_order_is_fleet_class_environment_cluster() -> None:
    order = ["fleet.yaml", "classes/plain.yaml", "classes/web.yaml", "environments/dev.yaml", ONE]
    keys = ("a", "b", "c", "d", "e")
    files = dict(GOOD)
    for number, path in enumerate(order):
        tags = "".join(f"{key}: '{number}', " for key in keys[number:])
        at = "  defaults:\n" if path in ("fleet.yaml", "environments/dev.yaml") else "spec:\n"
        indent = "    " if "defaults" in at else "  "
        old = (
            files[path]
            .replace("    tags:\n      environment: dev\n", "")
            .replace("  tags:\n    team: shop\n", "")
        )
        files[path] = old.replace(at, f"{at}{indent}tags: {{{tags}}}\n", 1)
    fleet = resolved({path: text.encode() for path, text in files.items()})
    assert fleet.problems == ()
    assert fleet.clusters["one"].spec.tags == {"a": "0", "b": "1", "c": "2", "d": "3", "e": "4"}
    assert fleet.clusters["two"].spec.tags == dict.fromkeys(keys, "0")


def test_placeholders_are_filled_with_what_the_cluster_has() -> None:
    text = "'{name} {environment} {class} {location} {OTHER} {{name}}'"
    one = with_change(ONE, "team: shop", f"team: {text}").clusters["one"]
    assert one.spec.tags["team"] == "one dev web westeurope {OTHER} {one}"
    assert one.spec.resource_group == "rg-one"


def test_an_item_is_removed_from_a_list_and_a_layer_above_can_add_it_again() -> None:
    without = with_change(
        "environments/dev.yaml", "    tags:", "    nodePools: [{name: apps, $patch: delete}]\n    tags:"
    )
    assert [pool.name for pool in without.clusters["one"].spec.node_pools] == ["system"]
    both = GOOD | {
        "environments/dev.yaml": GOOD["environments/dev.yaml"].replace(
            "    tags:", "    nodePools: [{name: apps, $patch: delete}]\n    tags:"
        ),
        ONE: GOOD[ONE].replace(
            "  tags:", "  nodePools: [{name: apps, vmSize: Standard_D2s_v5, count: 1}]\n  tags:"
        ),
    }
    again = resolved({path: text.encode() for path, text in both.items()}).clusters["one"].spec.node_pools[1]
    assert (again.vm_size, again.count, again.min_count) == ("Standard_D2s_v5", 1, None)


@pytest.mark.parametrize(
    ("environment", "field", "protected"),
    [
        ("prod", "", True),
        ("dev", "", False),
        ("prod", "  deletionProtection: false\n", False),
        ("dev", "  deletionProtection: true\n", True),
    ],
)
def test_production_protects_a_cluster_unless_its_manifest_sets_the_field(
    environment: str, field: str, protected: bool
) -> None:
    fleet = with_change(ONE, "  environment: dev\n", f"  environment: {environment}\n{field}")
    assert fleet.clusters["one"].spec.deletion_protection is protected


def test_a_layer_may_remove_what_any_class_has_and_what_is_removed_already() -> None:
    removed = "    nodePools: [{name: apps, $patch: delete}]\n    sku: null\n    tags:"
    fleet = with_change("environments/dev.yaml", "    tags:", removed)
    assert fleet.problems == ()
    files = GOOD | {
        "environments/dev.yaml": GOOD["environments/dev.yaml"].replace("    tags:", removed, 1),
        ONE: GOOD[ONE].replace("  tags:", "  sku: null\n  tags:"),
    }
    assert resolved({path: text.encode() for path, text in files.items()}).problems == ()


def test_environments_keep_the_order_of_the_fleet() -> None:
    fleet = with_change("fleet.yaml", "[dev, prod]", "[prod, dev]")
    assert list(fleet.environments) == ["prod", "dev"]
    assert fleet.environments["prod"].spec.production


def test_the_stored_form_names_class_environment_and_labels_and_reads_the_older_one() -> None:
    fleet = with_change(ONE, "  name: one\n", "  name: one\n  labels: {team: shop}\n")
    one = fleet.clusters["one"]
    assert (one.environment, one.cluster_class, one.labels) == ("dev", "web", {"team": "shop"})
    assert Desired(one.document()) == one
    two = fleet.clusters["two"].document()
    assert two.keys() == {"name", "spec", "components"}
    assert Desired(two) == fleet.clusters["two"]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("spec.location", "clusters/one/cluster.yaml:8"),
        ("spec.tags.environment", "environments/dev.yaml:8"),
        ("spec.tags.team", "clusters/one/cluster.yaml:10"),
        ("spec.nodePools[apps].vmSize", "classes/web.yaml:9"),
        ("spec.nodePools[system].count", "fleet.yaml:23"),
        ("spec.nodePools[gone].count", "classes/web.yaml:7"),
        ("spec.sku.tier", "classes/plain.yaml:7"),
        ("spec.networkProfile.outboundType", "fleet.yaml:15"),
        ("components", "clusters/one/cluster.yaml:1"),
    ],
)
def test_every_value_has_its_file_and_line(path: str, source: str) -> None:
    assert with_files().source("one", path) == source


def test_a_removed_value_has_the_place_of_its_removal_and_keys_may_have_dots() -> None:
    fleet = with_change(ONE, "team: shop", "environment: null\n    cost.center: '7'\n    cost: '8'")
    assert fleet.problems == ()
    assert fleet.source("one", "spec.tags.environment") == f"{ONE}:10"
    assert fleet.source("one", "spec.tags.cost.center") == f"{ONE}:11"


def test_a_valid_cluster_is_explained_with_filled_values_and_an_invalid_one_is_not() -> None:
    fleet = with_change("clusters/two/cluster.yaml", "location", "loaction")
    one = fleet.explained("one")
    assert one is not None
    assert one.node.find(("spec", "resourceGroup")).value == "rg-one"
    assert str(one.node.find(("spec", "resourceGroup")).mark) == "fleet.yaml:13:5"
    assert (fleet.explained("two"), fleet.explained("three"), fleet.source("three", "spec")) == (
        None,
        None,
        "",
    )


@given(st.integers(0, 50), st.integers(0, 100), st.integers(0, 500))
def test_the_delete_budget_is_the_smaller_of_both_limits(count: int, percent: int, recorded: int) -> None:
    allowed = DeleteBudget(count=count, percent=percent).of(recorded)
    assert allowed <= count
    assert (allowed == 0) == (count == 0 or percent == 0)
    assert allowed <= max(1, recorded * percent / 100)


def test_the_example_is_resolved_through_its_classes() -> None:
    fleet = resolved(fleet_files.example())
    pools = {
        name: {pool.name: pool for pool in cluster.spec.node_pools}
        for name, cluster in fleet.clusters.items()
    }
    assert pools["atlantic-aks"]["apps"].max_count == 10
    assert (pools["pacific-aks"]["apps"].count, pools["pacific-aks"]["apps"].max_count) == (3, None)
    assert list(pools["sargasso-aks"]) == ["system"]
    assert fleet.clusters["pacific-aks"].spec.deletion_protection
    assert fleet.systems["shop"].clusters == ("atlantic-aks", "pacific-aks")


@relaxed
@given(LAYERS)
def test_strings_are_found_at_any_depth(layers: list[dict[str, Any]]) -> None:
    merged = reduce(merge, [marked(layer, 0) for layer in layers])
    found = [leaf.value for leaf in leaves(merged).values() if isinstance(leaf.value, str)]
    assert [text for _, text in texts(merged)] == found


MERGED_BY_NAME = {
    "maintenanceWindows": tuple(f"timeInWeek: [{{day: Sunday, hourSlots: [{hour}]}}]" for hour in (1, 2)),
    "bootstrapSecrets": ("vault: ops, keys: {k: v}", "secretName: b, vault: ops, keys: {k: v}"),
    "identities": tuple(f"identity: {SHOP.resource}-{name}" for name in "xy"),
    "roleAssignments": tuple(
        f"role: {role}, scope: /subscriptions/{SHOP.subscription}, identity: kubelet"
        for role in ("AcrPull", "Reader")
    ),
    "policies": tuple(
        f"definition: /providers/Microsoft.Authorization/policyDefinitions/{name}, mode: All" for name in "xy"
    ),
}


@pytest.mark.parametrize("field", MERGED_BY_NAME)
def test_a_list_that_layers_merge_by_name_has_each_name_once(field: str) -> None:
    name = "default" if field == "maintenanceWindows" else "a"
    items = "".join(f"    - {{name: {name}, {rest}}}\n" for rest in MERGED_BY_NAME[field])
    cluster = fleet_files.cluster("one", extra=f"  {field}:\n{items}")
    files = fleet_files.fleet() | {"clusters/one/cluster.yaml": cluster}
    problems = [problem for problem in resolved(files).problems if problem.field == f"spec.{field}"]
    assert [problem.message for problem in problems] == [
        f"has {name} twice, first in line {problems[0].line - 1}; names must differ"
    ]
