"""Manifests with the values of Azure: what a proposal changes, and what it leaves out."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from shared.azure.differences import Difference
from shared.azure.drift.proposal import TAKEN, propose
from shared.language.desired import Desired
from tests.support import fleet_files
from tests.support.resolved_fleets import resolved

PATH = "clusters/one/cluster.yaml"
OWN = """\
  tags: {cost: a}   # who pays
"""


def resolve(files: dict[str, bytes], text: str) -> Desired | str:
    """Return the cluster of a manifest, or what is wrong with it."""
    fleet = resolved(files | {PATH: text.encode()})
    if "one" in fleet.clusters:
        return fleet.clusters["one"]
    return fleet.invalid["one"][0].message


def tags(live: dict[str, str], desired: Desired) -> list[Difference]:
    """Return in which tags a cluster with these differs."""
    wanted = dict(desired.spec.tags)

    keys = [key for key in sorted({*live, *wanted}) if live.get(key) != wanted.get(key)]
    return [Difference(f"tags.{key}", wanted.get(key), live.get(key)) for key in keys]


def proposed(
    files: dict[str, bytes], live: dict[str, str], *fields: Difference
) -> tuple[str, dict[str, str]]:
    text = files[PATH].decode()
    found = propose(text, fields, partial(resolve, files), partial(tags, live))
    return found.content, dict(found.left_out)


def fleet(own: str = OWN) -> dict[str, bytes]:
    return fleet_files.fleet() | {PATH: fleet_files.cluster("one", extra=own)}


def test_a_tag_that_is_gone_in_azure_goes_with_its_object() -> None:
    files = fleet()
    content, left = proposed(files, {}, Difference("tags.cost", "a", None))
    assert (content, left) == (files[PATH].decode().replace(OWN, ""), {})


def test_a_tag_of_a_shared_file_that_is_gone_in_azure_is_null() -> None:
    files = fleet("  environment: development\n")
    (name, value), *_ = resolved(files).clusters["one"].spec.tags.items()
    content, left = proposed(files, {}, Difference(f"tags.{name}", value, None))
    assert left == {}
    assert content == files[PATH].decode() + f"  tags:\n    {name}: null\n"


def test_a_value_that_git_has_already_is_not_proposed() -> None:
    content, left = proposed(fleet(), {"cost": "a"}, Difference("tags.cost", "z", "a"))
    assert (content, left) == (fleet()[PATH].decode(), {"tags.cost": TAKEN})


def test_a_field_that_the_newest_commit_leaves_out_is_not_said_to_have_the_value_of_azure() -> None:
    files = fleet("")
    text, field = files[PATH].decode(), Difference("tags.cost", "a", "b")
    found = propose(text, [field], partial(resolve, files), lambda _: [])
    assert found.content == text
    assert found.left_out["tags.cost"].endswith("or does not name the field")


def test_an_invalid_manifest_proposes_nothing() -> None:
    files = fleet("  tags: 3\n")
    _, left = proposed(files, {"cost": "b"}, Difference("tags.cost", "a", "b"))
    assert "tags.cost" in left
    assert left["tags.cost"]


def test_a_change_that_lets_another_field_differ_is_left_out() -> None:
    def compare(desired: Desired) -> list[Difference]:
        other = [Difference("sku.tier", "Free", "Standard")] if desired.spec.tags.get("cost") == "b" else []
        return [*tags({"cost": "b"}, desired), *other]

    files = fleet()
    found = propose(
        files[PATH].decode(), [Difference("tags.cost", "a", "b")], partial(resolve, files), compare
    )
    assert (found.fields, dict(found.left_out)) == ((), {"tags.cost": "Azure would then differ in sku.tier"})


BOUNDS = """\
    - name: apps
      vmSize: Standard_D4s_v5
      minCount: 1   # quiet
      maxCount: 3
"""


def bounds(low: int, high: int, desired: Desired) -> list[Difference]:
    """Return in which bounds of the pool a cluster with these differs."""
    pool = next(pool for pool in desired.spec.node_pools if pool.name == "apps")
    sides = (("minCount", pool.min_count, low), ("maxCount", pool.max_count, high))
    return [Difference(f"nodePools[apps].{name}", git, live) for name, git, live in sides if git != live]


def test_two_bounds_that_are_only_valid_together_are_proposed_together() -> None:
    files = fleet(BOUNDS)
    fields = [Difference("nodePools[apps].minCount", 1, 5), Difference("nodePools[apps].maxCount", 3, 9)]
    found = propose(files[PATH].decode(), fields, partial(resolve, files), partial(bounds, 5, 9))
    changed = BOUNDS.replace("minCount: 1", "minCount: 5").replace("maxCount: 3", "maxCount: 9")
    assert found.content == files[PATH].decode().replace(BOUNDS, changed)
    assert not found.left_out


def test_what_is_valid_is_proposed_without_what_is_not() -> None:
    files = fleet(BOUNDS)
    bad: Any = "many"
    fields = [Difference("nodePools[apps].maxCount", 3, 9), Difference("nodePools[apps].minCount", 1, bad)]
    found = propose(files[PATH].decode(), fields, partial(resolve, files), partial(bounds, bad, 9))
    assert [field.path for field in found.fields] == ["nodePools[apps].maxCount"]
    assert "must be an integer" in found.left_out["nodePools[apps].minCount"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_ends_of_lines_stay(newline: str) -> None:
    files = fleet()
    files[PATH] = files[PATH].replace(b"\n", newline.encode())
    content, left = proposed(files, {"cost": "a", "own": "x"}, Difference("tags.own", None, "x"))
    assert left == {}
    assert content == files[PATH].decode().replace("{cost: a}", "{cost: a, own: x}")
