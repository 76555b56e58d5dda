"""YAML with places: valid content, invalid content, and how layers merge."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.language.yaml.nodes import merge, without_nulls
from shared.language.yaml.parser import MAX_BYTES, MAX_DEPTH, MAX_NODES, YamlError, parse, value_of
from tests.support.yaml_nodes import node

relaxed = settings(suppress_health_check=[HealthCheck.too_slow])
"""For a machine that is busy with other tests."""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("1.30", 1.3),
        ('"1.30"', "1.30"),
        ("'5'", "5"),
        ("0x10", "0x10"),
        ("012", 12),
        ("-3", -3),
        ("1e3", 1000.0),
        ("2026-01-01", "2026-01-01"),
        ("~", None),
        ("null", None),
        ("!!str 5", "5"),
    ],
)
def test_scalars_follow_the_yaml_1_2_core_schema(text: str, value: object) -> None:
    assert parse(f"a: {text}\n".encode(), "f").plain() == {"a": value}


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"", 1, "the file is empty; a manifest has"),
        (b"a: 1\na: 2\n", 2, "a is written twice, first in line 1"),
        (b"a: &x 1\nb: *x\n", 2, "aliases"),
        (b"a: 1\n---\nb: 2\n", 2, "a second document"),
        (b"a: [\n", 2, "not valid YAML"),
        (b"a: \xff\n", 1, "not UTF-8"),
        (b"? [a]\n: b\n", 1, "a key must be a plain string"),
        (b"a: !!python/object:os.system x\n", 1, "is not allowed"),
        (b"a: " + b"[" * 60_000, 1, "levels deep"),
        (b"- " * 60_000, 1, "levels deep"),
        (b"[" + b"1," * 30_000 + b"]", 1, "more than 20000 values"),
        (b"x" * (MAX_BYTES + 1), 1, "at most"),
        (b"a: \x00\n", 1, "not valid YAML"),
        (b"a:\n\t- b\n", 2, "not valid YAML"),
    ],
)
def test_content_that_is_no_manifest_is_refused_with_its_place(
    content: bytes, line: int, message: str
) -> None:
    with pytest.raises(YamlError) as caught:
        parse(content, "f")
    assert message in caught.value.message
    assert caught.value.mark.line == line
    assert value_of(content) is None


@relaxed
@given(st.binary(max_size=400) | st.text(max_size=400).map(str.encode))
def test_any_bytes_are_read_or_refused_but_never_crash(content: bytes) -> None:
    with suppress(YamlError):
        parse(content, "f").plain()


@pytest.mark.parametrize(
    "content",
    [
        b"a: [1, 1.5, true, 'true', no, {b: {}}, []]\n",
        b"plain",
        b"- 0x1\n",
        b"&b a: &c d\n",
        b"\xef\xbb\xbfa: 1\n",
    ],
)
def test_a_value_without_places_is_that_of_the_tree(content: bytes) -> None:
    assert repr(value_of(content)) == repr(parse(content, "f").plain())


@pytest.mark.parametrize(
    "content",
    [
        b"a: null\n",
        b"a:\n",
        b"- {name: b, $patch: delete}\n",
        b"a: " + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH,
        b"a: " + b"x" * MAX_NODES,
    ],
)
def test_a_file_that_removes_values_or_is_large_or_deep_is_parsed(content: bytes) -> None:
    assert value_of(content) is None
    assert parse(content, "f").plain()


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
MAPS = st.recursive(
    st.dictionaries(st.sampled_from("ab"), LEAVES, max_size=2),
    lambda inner: st.builds(
        lambda leaves, maps: {**leaves, **maps},
        st.dictionaries(st.sampled_from("ab"), LEAVES, max_size=2),
        st.dictionaries(st.sampled_from("mn"), inner, max_size=2),
    ),
    max_leaves=8,
)
"""Maps in which a key has a map as its value always or never, as in the fields of one model."""


@relaxed
@given(MAPS, MAPS, MAPS)
def test_merging_maps_is_associative_where_no_null_stands_for_a_map(
    a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]
) -> None:
    left = merge(merge(node(a), node(b)), node(c))
    right = merge(node(a), merge(node(b), node(c)))
    assert left.plain() == right.plain()


@relaxed
@given(MAPS)
def test_merging_over_nothing_or_with_nothing_changes_nothing(a: dict[str, Any]) -> None:
    assert merge(node({}), node(a)).plain() == a
    assert merge(node(a), node({})).plain() == a


def test_lists_of_named_items_merge_by_name_and_others_replace() -> None:
    base = node({"pools": [{"name": "a", "size": 1, "zone": 1}, {"name": "b"}], "zones": [1, 2]})
    over = node({"pools": [{"name": "c"}, {"name": "a", "size": 2}], "zones": [3]})
    assert merge(base, over).plain() == {
        "pools": [{"name": "a", "size": 2, "zone": 1}, {"name": "b"}, {"name": "c"}],
        "zones": [3],
    }


def test_layers_merge_from_below_so_an_object_over_a_null_starts_empty() -> None:
    a, b, c = node({"m": {"x": 1}}), node({"m": None}), node({"m": {"y": 2}})
    assert merge(merge(a, b), c).plain() == {"m": {"y": 2}}
    named = [node({"l": [item]}) for item in ({"name": "i", "x": 1}, {"name": "i", "$patch": "delete"})]
    again = merge(merge(named[0], named[1]), node({"l": [{"name": "i", "y": 2}]}))
    assert again.plain() == {"l": [{"name": "i", "y": 2}]}
    assert without_nulls(merge(named[0], named[1])).plain() == {"l": []}


def test_null_removes_a_value_of_the_layer_below() -> None:
    merged = merge(node({"a": {"x": 1, "y": 2}}), node({"a": {"x": None}}))
    assert without_nulls(merged).plain() == {"a": {"y": 2}}


def test_a_merged_value_has_the_file_and_line_that_it_came_from() -> None:
    merged = merge(parse(b"a:\n  x: 1\n  y: 2\n", "low.yaml"), parse(b"\na:\n  y: 3\n", "high.yaml"))
    assert str(merged.find(["a", "x"]).mark) == "low.yaml:2:3"
    assert str(merged.find(["a", "y"]).mark) == "high.yaml:3:3"
    assert str(merged.find(["a", "gone", 3]).mark) == "high.yaml:2:1"
