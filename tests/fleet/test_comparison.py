"""For any spec: what Azure created from it needs no write, and merging it over twice changes nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from shared.fleet.aks.comparison import overlay
from tests.support.arm_bodies import OWNER, bodies, cluster_body, created, desired
from tests.support.cluster_specs import SPECS
from tests.support.hypothesis_settings import GENERATED


@GENERATED
@given(SPECS)
def test_what_azure_made_of_a_spec_needs_no_write(spec: dict[str, Any]) -> None:
    cluster = desired(**spec)
    assert bodies(cluster, created(cluster)) == []


@GENERATED
@given(SPECS, SPECS)
def test_what_is_merged_over_is_in_the_result_and_nothing_else_is_lost(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    old, new = (cluster_body(desired(**spec), OWNER, None) or {} for spec in (before, after))
    merged, found = overlay(old, new)
    assert overlay(merged, new) == (merged, [])
    assert bool(found) == (merged != old)
    assert old.keys() <= merged.keys()
    assert old["properties"].keys() <= merged["properties"].keys()
    assert old["tags"].keys() <= merged["tags"].keys()
