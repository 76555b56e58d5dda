"""For any manifest: what Azure makes of it does not differ, and one change by hand is the one difference."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from shared.azure.differences import Difference, beyond_git, drift_of, live_digest
from shared.cluster.failures.errors import InvalidManifest
from tests.support.arm_bodies import OWNER, created, desired, pool
from tests.support.cluster_specs import SPECS
from tests.support.hypothesis_settings import GENERATED

ELSEWHERE = {
    *("subscriptionId", "resourceGroup", "location", "flux", "kubernetesVersion", "nodePools", "azure"),
    *("name", "orchestratorVersion", "type"),
}
"""What is no property of ARM, or decides which properties there are."""
Place = tuple[str, tuple[Any, ...]]


def live_of(spec: dict[str, Any]) -> dict[str, Any]:
    """Return what Azure shows of a cluster after its first job; reject specs that Azure refuses.

    AKS creates every node pool running, and a write of that job stops it.
    """
    try:
        live = copy.deepcopy(created(desired(**spec)))
    except InvalidManifest:
        reject()
    for number, document in enumerate(spec.get("nodePools", ())):
        if "powerState" in document:
            live["properties"]["agentPoolProfiles"][number]["powerState"] = dict(document["powerState"])
    return live


def drift(spec: dict[str, Any], live: dict[str, Any], before: dict[str, Any]) -> list[Difference]:
    """Return the drift of a cluster that Azure showed as ``before`` when it became Ready."""
    cluster = desired(**spec)
    return drift_of(cluster, OWNER, live, beyond_git(cluster, OWNER, before))


def owned(spec: dict[str, Any]) -> Iterator[Place]:
    """Yield each value of a manifest: its path there, and where Azure shows it."""
    yield from _values({"tags": spec["tags"]}, "", ())
    yield from _values({k: v for k, v in spec.items() if k not in ("tags", *ELSEWHERE)}, "", ("properties",))
    untyped = (spec.get("azure") or {}).get("properties") or {}
    yield from _values(untyped, "azure.properties.", ("properties",))
    for number, document in enumerate(spec["nodePools"]):
        at: tuple[Any, ...] = ("properties", "agentPoolProfiles", number)
        fields = {k: v for k, v in document.items() if k not in ELSEWHERE}
        yield from _values(fields, f"nodePools[{document['name']}].", at)


def _values(value: dict[str, Any], prefix: str, at: tuple[Any, ...]) -> Iterator[Place]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _values(inner, f"{prefix}{key}.", (*at, key))
        else:
            yield f"{prefix}{key}", (*at, key)


def another(value: Any) -> Any:
    """Return a value that means something else to ARM."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return value[1:] if isinstance(value, list) else f"{value}9"


@GENERATED
@given(SPECS)
def test_what_azure_makes_of_a_manifest_is_no_drift(spec: dict[str, Any]) -> None:
    live = live_of(spec)
    assert drift(spec, live, live) == []


@pytest.mark.lives
@GENERATED
@given(SPECS, st.data())
def test_one_value_that_somebody_changes_is_the_one_difference(
    spec: dict[str, Any], data: st.DataObject
) -> None:
    before = live_of(spec)
    live = copy.deepcopy(before)
    path, at = data.draw(st.sampled_from(sorted(owned(spec), key=repr)))
    inner: Any = live
    for key in at[:-1]:
        inner = inner[key] if isinstance(inner, list) else inner.get(key)
        assume(inner is not None)
    is_stopped = inner.get("powerState") == {"code": "Stopped"}
    assume(not (is_stopped and at[-1] == "count"))  # Azure shows 0 of a stopped pool
    value = inner.get(at[-1])
    assume(value not in (None, "", [], {}))
    inner[at[-1]] = another(value)
    assert [difference.path for difference in drift(spec, live, before)] == [path]
    assert live_digest(live) != live_digest(before)


def apps(**fields: Any) -> dict[str, Any]:
    return pool(name="apps", mode="User", count=2) | fields


def test_under_an_autoscaler_the_count_is_neither_a_difference_nor_part_of_the_digest() -> None:
    spec = {"nodePools": [pool(), apps(count=None, minCount=1, maxCount=9)], "tags": {}}
    before = live_of(spec)
    live = copy.deepcopy(before)
    live["properties"]["agentPoolProfiles"][1]["count"] = 7
    assert drift(spec, live, before) == []
    assert live_digest(live) == live_digest(before)


def test_an_autoscaler_that_somebody_turns_on_is_a_difference_and_the_count_that_it_chooses_is_none() -> None:
    spec = {"nodePools": [pool(), apps()], "tags": {}}
    before = live_of(spec)
    live = copy.deepcopy(before)
    live["properties"]["agentPoolProfiles"][1] |= {
        "enableAutoScaling": True,
        "minCount": 1,
        "maxCount": 9,
        "count": 7,
    }
    (found,) = drift(spec, live, before)
    assert (found.path, found.git, found.live) == ("nodePools[apps].enableAutoScaling", False, True)


@pytest.mark.parametrize(
    ("requested", "channel", "runs", "differs"),
    [
        ("1.36", None, "1.36.9", False),
        ("1.36", None, "1.37.0", True),
        ("1.36", "patch", "1.37.0", True),
        ("1.36", "stable", "1.37.0", False),
        ("1.36", "rapid", "1.37.0", False),
        ("1.36.2", None, "1.36.9", True),
        ("1.36.2", "none", "1.36.9", True),
        ("1.36.2", "patch", "1.36.9", False),
        ("1.36.2", "node-image", "1.36.9", True),
    ],
)
def test_a_newer_version_is_a_difference_unless_an_automatic_upgrade_brought_it(
    requested: str, channel: str | None, runs: str, differs: bool
) -> None:
    before = live_of({"kubernetesVersion": requested, "tags": {}})
    live = copy.deepcopy(before)
    live["properties"] |= {"kubernetesVersion": runs, "currentKubernetesVersion": runs}
    live["properties"]["autoUpgradeProfile"] = {"upgradeChannel": channel} if channel else None
    found = drift({"kubernetesVersion": requested, "tags": {}}, live, before)
    assert [(difference.path, difference.git, difference.live) for difference in found] == (
        [("kubernetesVersion", requested, runs)] if differs else []
    )


def test_an_image_that_is_older_than_the_manifest_accepts_is_a_difference() -> None:
    spec = {"minNodeImageVersion": "202511.01", "tags": {}}
    live = live_of(spec)
    image = "AKSUbuntu-2204gen2containerd-202510.01.0"
    live["properties"]["agentPoolProfiles"][0]["nodeImageVersion"] = image
    (found,) = drift(spec, live, live)
    assert (found.path, found.git, found.live) == (
        *("nodePools[system].minNodeImageVersion", "202511.01"),
        image,
    )


@pytest.mark.parametrize("key", ["hidden-title", "roadstead-contested-by"])
def test_tags_that_nobody_sets_by_hand_are_no_difference(key: str) -> None:
    before = live_of({"tags": {}})
    live = {**before, "tags": {**before["tags"], key: "x"}}
    assert drift({"tags": {}}, live, before) == []


@pytest.mark.parametrize("state", ["Updating", "Upgrading"])
def test_what_an_operation_is_at_is_no_part_of_the_digest(state: str) -> None:
    before = live_of({"tags": {}})
    live = copy.deepcopy(before)
    for part in (live["properties"], live["properties"]["agentPoolProfiles"][0]):
        part["provisioningState"] = state
    assert live_digest({**live, "eTag": "other"}) == live_digest(before)


def test_the_count_under_an_autoscaler_is_no_part_of_what_a_pool_beyond_git_is() -> None:
    wide = {"name": "extra", "mode": "User", "vmSize": "Standard_D4s_v5", "minCount": 1, "maxCount": 9}
    live = copy.deepcopy(created(desired(nodePools=[pool(), wide])))
    cluster, found = desired(nodePools=[pool()]), []
    for count in (2, 5):
        live["properties"]["agentPoolProfiles"][1]["count"] = count
        found.append(drift_of(cluster, OWNER, live, ()))
    assert found[0] == found[1]
    assert [difference.path for difference in found[0]] == ["nodePools[extra]"]


@pytest.mark.parametrize(
    ("shown", "differs"),
    [(["auto"], False), (["1", "2", "3"], False), (["1", "3"], False), (["1"], True), ([], True)],
)
def test_the_zones_that_aks_chose_are_no_drift_and_one_zone_or_none_is(
    shown: list[str], differs: bool
) -> None:
    spec = {"nodePools": [pool(availabilityZones=["auto"])], "tags": {}}
    live = live_of(spec)
    live["properties"]["agentPoolProfiles"][0]["availabilityZones"] = shown
    found = [difference.path for difference in drift(spec, live, live)]
    assert bool(found) is differs, found
