"""Single values of a YAML file are changed, and every other character stays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.language.yaml.editing import NotEditable, with_value, without
from shared.language.yaml.parser import parse

TEXT = """\
# one
kind: Cluster   # a kind
metadata: {name: one}
spec:
  location: "eastus"

  # pools
  nodePools:
    - name: system
      count: 1   # keep
    - {name: apps, vmSize: D4, count: 2}   # apps

  tags:
    cost: 'a'  # c
  ranges:
    - 10.0.0.0/8 # x
    - 11.0.0.0/8
  empty: {}
  nothing:
  text: |
    hi
      # no comment
  # the end
"""


def lines(after: str) -> tuple[list[str], list[str]]:
    """Return the lines that the file has no longer, and the new ones."""
    old, new = TEXT.splitlines(), after.splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


@pytest.mark.parametrize(
    ("path", "value", "gone", "new"),
    [
        ("location", "westus", ['  location: "eastus"'], ['  location: "westus"']),
        ("nodePools [system] count", 5, ["      count: 1   # keep"], ["      count: 5   # keep"]),
        (
            "nodePools [apps] count",
            5,
            ["    - {name: apps, vmSize: D4, count: 2}   # apps"],
            ["    - {name: apps, vmSize: D4, count: 5}   # apps"],
        ),
        (
            "nodePools [apps] zones",
            ["1", "2"],
            ["    - {name: apps, vmSize: D4, count: 2}   # apps"],
            ["    - {name: apps, vmSize: D4, count: 2, zones: ['1', '2']}   # apps"],
        ),
        ("nodePools [web] count", 3, [], ["    - name: web", "      count: 3"]),
        ("nodePools [system] nodeLabels a.b/c", "x", [], ["      nodeLabels:", "        a.b/c: x"]),
        ("tags cost", "1.30", ["    cost: 'a'  # c"], ["    cost: '1.30'  # c"]),
        ("tags own", "on", [], ["    own: 'on'"]),
        ("sku tier", "Standard", [], ["  sku:", "    tier: Standard"]),
        ("empty own", "x", ["  empty: {}"], ["  empty: {own: x}"]),
        ("nothing own", "x", ["  nothing:"], ["  nothing: {own: x}"]),
        ("ranges", ["11.0.0.0/8", "12.0.0.0/8"], ["    - 10.0.0.0/8 # x"], ["    - 12.0.0.0/8"]),
        ("tags cost", None, ["    cost: 'a'  # c"], ["    cost: null  # c"]),
    ],
)
def test_one_value_changes(path: str, value: Any, gone: list[str], new: list[str]) -> None:
    assert lines(with_value(TEXT, ["spec", *path.split()], value)) == (gone, new)


@pytest.mark.parametrize(
    ("path", "gone", "new"),
    [
        (
            "nodePools [apps] count",
            ["    - {name: apps, vmSize: D4, count: 2}   # apps"],
            ["    - {name: apps, vmSize: D4}   # apps"],
        ),
        ("nodePools [system] count", ["      count: 1   # keep"], []),
        ("tags cost", ["  tags:", "    cost: 'a'  # c"], []),
        ("text", ["  text: |", "    hi", "      # no comment"], []),
    ],
)
def test_one_entry_goes(path: str, gone: list[str], new: list[str]) -> None:
    assert lines(without(TEXT, ["spec", *path.split()])) == (gone, new)


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("location name", "x", "no object with a key name"),
        ("tags [a] count", 1, "no list with an item"),
        ("ranges", ["12.0.0.0/8"], "no item of the list remains"),
        ("nodePools", [], "a list of objects"),
        ("ranges", "x", "comments that a change would lose"),
    ],
)
def test_what_has_no_place_is_not_changed(path: str, value: Any, why: str) -> None:
    with pytest.raises(NotEditable, match=why):
        with_value(TEXT, ["spec", *path.split()], value)


def test_an_entry_that_the_file_does_not_have_cannot_go() -> None:
    with pytest.raises(NotEditable):
        without(TEXT, ["spec", "tags", "own"])


def test_a_file_whose_last_line_has_no_end_gets_one() -> None:
    assert with_value("spec:\n  a: 1", ["spec", "b"], 2) == "spec:\n  a: 1\n  b: 2\n"


VALUES = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=20),
    st.integers(-(2**31), 2**31),
    st.booleans(),
    st.lists(st.text("abc123:#{}[],&*!|>'\"%@` -", max_size=8), max_size=3),
)
PATHS = st.sampled_from(
    ["tags cost", "tags own", "nodePools [apps] x", "nodePools [system] count", "sku tier"]
)


@given(PATHS, VALUES)
def test_any_value_is_read_again_as_it_was(path: str, value: Any) -> None:
    steps = ["spec", *path.split()]
    found: Any = parse(with_value(TEXT, steps, value).encode(), "cluster.yaml").plain()
    before: Any = parse(TEXT.encode(), "cluster.yaml").plain()
    for step in steps[:-1]:
        found, before = (_below(document, step) for document in (found, before))
    assert found[steps[-1]] == value
    assert type(found[steps[-1]]) is type(value) or isinstance(found[steps[-1]], type(value))
    rest = {key: document for key, document in found.items() if key != steps[-1]}
    assert rest == {key: document for key, document in (before or {}).items() if key != steps[-1]}


def _below(value: Any, step: str) -> Any:
    if isinstance(value, list):
        return next(document for document in value if document["name"] == step[1:-1])
    return (value or {}).get(step)


@pytest.mark.parametrize("value", ["1e5", "1234e56", "0o17", "12", "1.30", "on", "~", "a\nb"])
@pytest.mark.parametrize("text", ["spec: {a: b}\n", "spec:\n  a: b\n", "spec:\n  c: 1\n"])
def test_a_string_that_could_be_something_else_stays_a_string(text: str, value: str) -> None:
    for name in ("a", "new", value):
        root = parse(with_value(text, ["spec", name], value).encode(), "x")
        assert root.plain()["spec"][name] == value


def test_a_byte_order_mark_moves_no_place() -> None:
    marked = "\ufeffcount: 1  # c\nother: 2\n"
    assert with_value(marked, ["count"], 30) == "\ufeffcount: 30  # c\nother: 2\n"
    assert with_value(marked, ["other"], 30) == "\ufeffcount: 1  # c\nother: 30\n"
    assert without(marked, ["count"]) == "\ufeffother: 2\n"
