"""Which version of Kubernetes a channel has, of what AKS offers."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.azure.availability.channels import (
    COMMUNITY,
    LONG_TERM,
    Step,
    following,
    following_image,
    unknown,
)
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


def version(channel: str, present: str, today: date = TODAY, pace: timedelta = NONE) -> str:
    found = following(channel, present, [OFFERED], today, pace)
    return found.version if found else ""


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
    found = following("patch", "1.35.7", [OFFERED], early, NONE)
    assert found == Step("1.36.3", "Kubernetes 1.35 leaves support on 2027-03-31, in 60 days")


def test_only_what_every_region_offers_counts() -> None:
    behind = {name: plans for name, plans in OFFERED.items() if name not in ("1.36.3", "1.37.1")}
    found = following("stable", "1.35.6", [OFFERED, behind], TODAY, NONE)
    assert found is not None
    assert found.version == "1.35.7"
    assert following("stable", "1.35.6", [], TODAY, NONE) is None
    assert following("stable", "1.35.6", [OFFERED, {}], TODAY, NONE) is None


def test_regions_without_a_common_patch_do_not_end_a_minor_and_one_that_lacks_the_minor_does() -> None:
    behind = {"1.35.6": BOTH, "1.36.3": BOTH}
    assert following("patch", "1.35.7", [OFFERED, behind], TODAY, NONE) is None
    del behind["1.35.6"]
    found = following("patch", "1.35.7", [OFFERED, behind], TODAY, NONE)
    assert found == Step("1.36.3", "Kubernetes 1.35 is not offered in every region any more")


def test_an_empty_list_of_a_region_and_lists_with_nothing_in_common_say_nothing_of_a_channel() -> None:
    east, west = RegionId("s", "eastus"), RegionId("s", "westus")
    assert unknown("stable", {east: OFFERED, west: OFFERED}) == ""
    assert unknown("stable", {east: OFFERED, west: {}}).startswith(
        "which versions of Kubernetes westus offers"
    )
    assert "for the channel stable" in unknown("stable", {east: {"1.33.13": LATER}})
    assert unknown("lts", {east: {"1.33.13": LATER}}) == ""
    assert "in every region" in unknown("stable", {east: OFFERED, west: {"1.36.9": BOTH}})
    assert "no cluster of the environment is in AKS" in unknown("stable", {})


@given(
    st.sampled_from(["rapid", "stable", "patch", "lts"]),
    st.sampled_from([*OFFERED, "1.30.1", "1.38.0"]),
    st.lists(st.dictionaries(st.sampled_from([*OFFERED]), st.sampled_from([BOTH, LATER])), max_size=3),
    st.integers(0, 800),
)
def test_what_is_proposed_is_offered_everywhere_with_the_plan_and_newer(
    channel: str, present: str, offers: list[dict[str, tuple[str, ...]]], days: int
) -> None:
    found = following(channel, present, offers, TODAY + timedelta(days=days), NONE)
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
