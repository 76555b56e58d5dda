"""What a channel has, of what Azure lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.azure.availability.channels import (
    COMMUNITY,
    EXTENSION,
    LONG_TERM,
    Offered,
    VersionStep,
    following,
    following_extension,
    following_image,
    following_patch,
    in_artifact,
    of_aks,
    supported,
    unknown,
)
from shared.json_tree import Json
from shared.kubernetes_versions import numbers
from shared.resource_ids import RegionId

TODAY = date(2026, 11, 29)
NONE = timedelta(0)
BOTH, LATER = (COMMUNITY, LONG_TERM), (LONG_TERM,)
OFFERED = {
    **{"1.33.13": LATER, "1.34.9": BOTH, "1.34.10": BOTH, "1.35.7": BOTH, "1.36.2": BOTH, "1.36.3": BOTH},
    "1.37.1": BOTH,
}
"""Kubernetes 1.34 leaves the community's support on 2026-11-30, and 1.33 long-term support on 2027-07-31."""


def step(
    channel: str,
    present: str,
    offers: Sequence[Offered] = (OFFERED,),
    today: date = TODAY,
    pace: timedelta = NONE,
) -> VersionStep | None:
    return following(channel, present, [supported(channel, offer) for offer in offers], today, pace)


def version(channel: str, present: str, today: date = TODAY, pace: timedelta = NONE) -> str:
    found = step(channel, present, today=today, pace=pace)
    return found.version if found else ""


def unread(channel: str, offers: Mapping[RegionId, Offered]) -> str:
    lists = {place: supported(channel, offer) for place, offer in offers.items()}
    return unknown("Kubernetes", channel, lists)


@pytest.mark.parametrize(
    ("channel", "present", "expected"),
    [
        *(("rapid", "1.36.3", "1.37.1"), ("rapid", "1.37.1", ""), ("rapid", "1.34.9", "1.37.1")),
        *(("stable", "1.35.7", "1.36.3"), ("stable", "1.36.2", "1.36.3"), ("stable", "1.36.3", "")),
        *(("stable", "1.37.0", ""), ("stable", "1.36", "1.36.3")),
        *(("patch", "1.36.2", "1.36.3"), ("patch", "1.36.3", ""), ("patch", "1.35.7", "")),
        *(("patch", "1.34.9", "1.35.7"), ("patch", "1.33.11", "1.34.10"), ("patch", "1.28.3", "1.34.10")),
        *(("lts", "1.33.11", "1.33.13"), ("lts", "1.33.13", ""), ("lts", "1.31.2", "1.33.13")),
        ("lts", "1.34.9", "1.34.10"),
    ],
)
def test_a_channel_has_a_version_of_what_is_offered_and_never_an_older_one(
    channel: str, present: str, expected: str
) -> None:
    assert version(channel, present) == expected


def test_a_minor_is_left_before_its_support_ends_and_a_slow_fleet_leaves_it_earlier() -> None:
    ends = date(2027, 3, 31)  # of 1.35
    early = ends - timedelta(days=60)
    assert version("patch", "1.35.7", early - timedelta(days=1)) == ""
    assert version("patch", "1.35.7", early) == "1.36.3"
    assert version("patch", "1.35.7", early - timedelta(days=14), timedelta(days=14)) == "1.36.3"
    found = step("patch", "1.35.7", today=early)
    assert found == VersionStep("1.36.3", "Kubernetes 1.35 leaves support on 2027-03-31, in 60 days")


def test_only_what_every_region_offers_counts() -> None:
    behind = {name: plans for name, plans in OFFERED.items() if name not in ("1.36.3", "1.37.1")}
    found = step("stable", "1.35.6", [OFFERED, behind])
    assert found is not None
    assert found.version == "1.35.7"
    assert step("stable", "1.35.6", []) is None
    assert step("stable", "1.35.6", [OFFERED, {}]) is None


def test_regions_without_a_common_patch_do_not_end_a_minor_and_one_that_lacks_the_minor_does() -> None:
    behind = {"1.35.6": BOTH, "1.36.3": BOTH}
    assert step("patch", "1.35.7", [OFFERED, behind]) is None
    del behind["1.35.6"]
    found = step("patch", "1.35.7", [OFFERED, behind])
    assert found == VersionStep("1.36.3", "Kubernetes 1.35 is not offered in every region any more")


def test_an_empty_list_of_a_region_and_lists_with_nothing_in_common_say_nothing_of_a_channel() -> None:
    east, west = RegionId("s", "eastus"), RegionId("s", "westus")
    assert unread("stable", {east: OFFERED, west: OFFERED}) == ""
    assert unread("stable", {east: OFFERED, west: {}}).startswith(
        "which versions of Kubernetes westus offers"
    )
    assert "for the channel stable" in unread("stable", {east: {"1.33.13": LATER}})
    assert unread("lts", {east: {"1.33.13": LATER}}) == ""
    assert "in every region" in unread("stable", {east: OFFERED, west: {"1.36.9": BOTH}})
    assert "no cluster of the environment is in AKS" in unread("stable", {})


@given(
    st.sampled_from(["rapid", "stable", "patch", "lts"]),
    st.sampled_from([*OFFERED, "1.30.1", "1.38.0"]),
    st.lists(st.dictionaries(st.sampled_from([*OFFERED]), st.sampled_from([BOTH, LATER])), max_size=3),
    st.integers(0, 800),
)
def test_what_is_proposed_is_offered_everywhere_with_the_plan_and_newer(
    channel: str, present: str, offers: list[dict[str, tuple[str, ...]]], days: int
) -> None:
    found = step(channel, present, offers, TODAY + timedelta(days=days))
    if found is not None:
        plan = LONG_TERM if channel == "lts" else COMMUNITY
        assert offers
        assert all(plan in offer.get(found.version, ()) for offer in offers)
        assert numbers(found.version) > numbers(present)


UBUNTU, LINUX = "AKSUbuntu-2204gen2containerd-", "AKSAzureLinux-V3gen2-"


@pytest.mark.parametrize(
    ("present", "newest", "expected"),
    [
        ("202510.19.1", (f"{UBUNTU}202511.01.0",), "202511.01.0"),
        ("202511.01", (f"{UBUNTU}202511.01.0",), ""),
        ("202510.19.1", (f"{UBUNTU}202512.06.0", f"{LINUX}202511.20.0"), "202511.20.0"),
        ("202511.20.0", (f"{UBUNTU}202512.06.0", f"{LINUX}202511.20.0"), ""),
        (
            "202510.19.1",
            (f"{UBUNTU}202512.06.0", "AKSWindows-2022-containerd-20348.4405.251112"),
            "202512.06.0",
        ),
        ("202510.19.1", ("AKSWindows-2022-containerd-20348.4405.251112",), ""),
        ("202510.19.1", (), ""),
    ],
)
def test_a_node_image_is_one_that_every_region_can_give_to_each_kind_of_pool(
    present: str, newest: tuple[str, ...], expected: str
) -> None:
    found = following_image(present, newest)
    assert (found.version if found else "") == expected


# Flux

EXTENSIONS = ("1.19.5", "1.20.4", "1.21.0", "1.21.1", "1.22.1", "1.22.2", "1.23.0")


@pytest.mark.parametrize(
    ("channel", "present", "expected"),
    [
        *(("rapid", "1.22.1", "1.23.0"), ("rapid", "1.23.0", ""), ("rapid", "1.20.4", "1.21.1")),
        *(("stable", "1.19.5", "1.20.4"), ("stable", "1.21.1", "1.22.2"), ("stable", "1.22.2", "")),
        *(("stable", "1.23.0", ""), ("patch", "1.22.1", "1.22.2"), ("patch", "1.22.2", "")),
        *(("patch", "1.18.2", "1.19.5"), ("rapid", "1.18.2", "1.19.5"), ("patch", "1.24.0", "")),
    ],
)
def test_the_extension_of_a_channel_is_never_older_and_never_two_minors_further(
    channel: str, present: str, expected: str
) -> None:
    found = following_extension(channel, present, [EXTENSIONS])
    assert (found.version if found else "") == expected


def test_the_extension_that_one_region_lacks_does_not_count() -> None:
    found = following_extension("rapid", "1.22.1", [EXTENSIONS, EXTENSIONS[:-1]])
    assert found == VersionStep("1.22.2", "Azure has it in every region of the environment")
    left = following_extension("patch", "1.21.1", [EXTENSIONS, ("1.22.2", "1.23.0")])
    assert left == VersionStep("1.22.2", f"{EXTENSION} 1.21 is not offered in every region any more")


@given(
    st.sampled_from(["rapid", "stable", "patch"]),
    st.sampled_from([*EXTENSIONS, "1.18.0", "1.24.1"]),
    st.lists(st.sets(st.sampled_from(EXTENSIONS)), max_size=3),
)
def test_a_proposed_extension_is_in_every_list_newer_and_of_the_next_minor_that_all_have(
    channel: str, present: str, lists: list[set[str]]
) -> None:
    found = following_extension(channel, present, lists)
    if found is not None:
        common = set.intersection(*lists)
        assert found.version in common
        assert numbers(found.version) > numbers(present)
        skipped = [v for v in common if numbers(present)[:2] < numbers(v)[:2] < numbers(found.version)[:2]]
        assert skipped == []


DISTRIBUTIONS = ("2.7.5", "2.8.6", "2.8.8", "2.9.4")


@given(
    st.sampled_from([*DISTRIBUTIONS, "2.8.1", "2.10.0"]),
    st.lists(st.sets(st.sampled_from(DISTRIBUTIONS)), max_size=3),
)
def test_flux_of_the_operator_stays_on_its_minor(present: str, lists: list[set[str]]) -> None:
    found = following_patch(present, lists)
    common = set.intersection(*lists) if lists else set[str]()
    newer = [v for v in common if numbers(v) > numbers(present) and numbers(v)[:2] == numbers(present)[:2]]
    assert (found.version if found else "") == max(newer, key=numbers, default="")


def test_the_lists_have_versions_for_aks_and_folders_of_manifests() -> None:
    listed: list[Json] = [
        {"properties": {"version": "1.21.0", "supportedClusterTypes": ["connectedCluster"]}},
        {"properties": {"version": "1.22.2", "supportedClusterTypes": ["managedCluster"]}},
        {
            "properties": {
                "version": "1.22.1",
                "supportedClusterTypes": ["connectedClusters", "ManagedClusters"],
            }
        },
        {"properties": {"version": "1.23.0"}},
    ]
    assert of_aks(listed) == {"1.22.1", "1.22.2", "1.23.0"}
    paths = ("flux/VERSION", "flux/v2.8.8/source-controller.yaml", "flux/v2.9.4/a/b.yaml", "flux/vx/a.yaml")
    assert in_artifact((*paths, "flux-images/v2.10.0/upstream-alpine.yaml")) == {"2.8.8", "2.9.4"}
