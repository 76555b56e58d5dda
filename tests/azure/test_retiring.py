"""What AKS retires of a manifest: 180 days ahead, with the day, the source and what to do."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.azure import retirements as table
from shared.azure.retirements import (
    AHEAD,
    AS_OF,
    FRESH,
    KUBERNETES,
    Announcement,
    retirement_warnings,
    retiring,
    stale,
)
from tests.support.resolved_fleets import ONE, with_change

LATE = date(2100, 1, 1)
ANNOUNCED = [announced for announced in vars(table).values() if isinstance(announced, Announcement)]
NEW = "1.99"
"""A version that the table does not have."""


def spec(version: str = NEW, *, pools: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "kubernetesVersion": version,
        "nodePools": pools or [{"name": "a", "osSKU": "AzureLinux"}],
        **fields,
    }


def paths(found: dict[str, Any], today: date = LATE) -> list[tuple[str | int, ...]]:
    return [retirement.path for retirement in retiring(found, today)]


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("plan", ["KubernetesOfficial", "AKSLongTermSupport"])
def test_a_version_is_warned_of_180_days_before_its_plan_ends(version: tuple[int, int], plan: str) -> None:
    support = KUBERNETES[version]
    end = support.long_term if plan == "AKSLongTermSupport" else support.community
    asked = spec(f"{version[0]}.{version[1]}.4", supportPlan=plan, pools=[{"osSKU": "AzureLinux3"}])
    assert retiring(asked, end - AHEAD - timedelta(days=1)) == []
    (warned,) = retiring(asked, end - AHEAD)
    assert (warned.path, warned.announced.on) == (("kubernetesVersion",), end)
    assert f"leaves support on {end}, in 180 days" in str(warned)
    assert "leaves support today" in str(retiring(asked, end)[0])
    assert f"leaves support on {end}, in 1 day:" in str(retiring(asked, end - timedelta(days=1))[0])
    assert f"is out of support since {end}" in str(retiring(asked, end + timedelta(days=1))[0])


def test_a_version_without_long_term_support_is_told_how_much_later_that_ends() -> None:
    (warned,) = retiring(spec("1.33"), date(2026, 11, 23))
    assert str(warned) == (
        "Kubernetes 1.33 is out of support since 2026-07-31: upgrade to a newer version, or choose "
        "supportPlan AKSLongTermSupport, which ends on 2027-07-31 "
        "(https://learn.microsoft.com/azure/aks/supported-kubernetes-versions)"
    )


def test_long_term_support_is_offered_as_long_as_it_lasts() -> None:
    support = KUBERNETES[1, 29]
    (warned, *_) = retiring(spec("1.29"), support.long_term - timedelta(days=1))
    assert f"choose supportPlan AKSLongTermSupport, which ends on {support.long_term}" in str(warned)
    (warned, *_) = retiring(spec("1.29"), support.long_term)
    assert warned.announced.instead == "upgrade to a newer version"


def test_a_version_older_than_the_table_is_out_of_support_and_a_newer_one_is_not_known() -> None:
    assert paths(spec("1.21"))[:1] == [("kubernetesVersion",)]
    assert paths(spec(NEW)) == []
    assert paths(spec("")) == []


def test_the_version_that_runs_counts_and_not_the_one_that_git_asks_for() -> None:
    today = date(2026, 11, 23)
    (warned,) = retiring(spec("1.33"), today, running="1.34.4")
    assert warned.announced.what == "Kubernetes 1.34"
    assert retiring(spec("1.33"), today, running="1.36.1") == []


@pytest.mark.parametrize(
    ("pool", "version", "announced"),
    [
        ({"osSKU": "Windows2019", "osType": "Windows"}, NEW, table.WINDOWS_2019),
        ({"osSKU": "Windows2022", "osType": "Windows"}, NEW, table.WINDOWS_2022),
        ({"osSKU": "Windows2025", "osType": "Windows"}, NEW, None),
        ({"osType": "Windows"}, "1.34", None),
        ({"osSKU": "Ubuntu2204"}, "1.36", table.UBUNTU_2204),
        ({"osSKU": "Ubuntu2404"}, "1.33", None),
        ({"osSKU": "Ubuntu"}, "1.34", table.DEFAULT_UBUNTU_2204),
        ({}, "1.34", table.DEFAULT_UBUNTU_2204),
        ({}, "1.35", None),
        ({"enableFIPS": True}, "1.34", table.UBUNTU_2004),
        ({"enableFIPS": True}, "1.35", None),
        ({"osSKU": "AzureLinux"}, "1.31", table.AZURE_LINUX_2),
        ({"osSKU": "AzureLinux"}, "1.32", None),
        ({"osSKU": "AzureLinux3"}, "1.31", None),
        ({"osSKU": "AzureLinux", "orchestratorVersion": "1.31.9"}, "1.32", table.AZURE_LINUX_2),
    ],
)
def test_the_image_of_a_pool_follows_its_sku_and_its_version(
    pool: dict[str, Any], version: str, announced: Announcement | None
) -> None:
    found = [
        retirement for retirement in retiring(spec(version, pools=[pool]), LATE) if "osSKU" in retirement.path
    ]
    assert [retirement.announced for retirement in found] == ([announced] if announced else [])


@pytest.mark.parametrize(
    ("fields", "path", "announced"),
    [
        (
            {"networkProfile": {"networkPlugin": "kubenet"}},
            ("networkProfile", "networkPlugin"),
            table.KUBENET,
        ),
        ({"networkProfile": {"networkPolicy": "azure"}}, ("networkProfile", "networkPolicy"), table.NPM),
        (
            {"ingressProfile": {"webAppRouting": {"enabled": True}}},
            ("ingressProfile", "webAppRouting"),
            table.NGINX,
        ),
    ],
)
def test_a_feature_is_warned_of_at_its_field(
    fields: dict[str, Any], path: tuple[str, ...], announced: Announcement
) -> None:
    (warned,) = retiring(spec(**fields), LATE)
    assert (warned.path, warned.announced) == (path, announced)


@pytest.mark.parametrize(
    "fields",
    [
        {"networkProfile": {"networkPlugin": "azure", "networkPolicy": "cilium"}},
        {"ingressProfile": {"webAppRouting": {"enabled": False}}},
        {
            "ingressProfile": {
                "webAppRouting": {"enabled": True, "nginx": {"defaultIngressControllerType": "None"}}
            }
        },
    ],
)
def test_what_is_not_retired_is_not_warned_of(fields: dict[str, Any]) -> None:
    assert paths(spec(**fields)) == []


def test_the_policy_manager_ends_sooner_on_windows_nodes() -> None:
    pools = [{"osType": "Windows", "osSKU": "Windows2025"}]
    (warned,) = retiring(spec(pools=pools, networkProfile={"networkPolicy": "azure"}), LATE)
    assert warned.announced == table.NPM_ON_WINDOWS


@given(st.dates(date(2025, 1, 1), date(2030, 1, 1)))
def test_warnings_come_soonest_first_and_none_goes_away_with_time(today: date) -> None:
    asked = spec(
        "1.33",
        pools=[{"osSKU": "Windows2019", "osType": "Windows"}, {"enableFIPS": True}],
        networkProfile={"networkPlugin": "kubenet", "networkPolicy": "azure"},
    )
    now, later = (
        [
            (retirement.announced.on, retirement.path, retirement.announced.what)
            for retirement in retiring(asked, day)
        ]
        for day in (today, today + timedelta(days=30))
    )
    assert [on for on, *_ in now] == sorted(on for on, *_ in now)
    assert set(now) <= set(later)


def test_every_announcement_has_a_day_a_remedy_and_an_announcement_of_microsoft() -> None:
    assert len(ANNOUNCED) == 10
    for announced in ANNOUNCED:
        address = urlsplit(announced.source)
        assert address.scheme == "https"
        assert address.netloc == "learn.microsoft.com" or address.path.startswith("/Azure/AKS/"), (
            announced.source
        )
        assert announced.instead
    assert all(support.community < support.long_term for support in KUBERNETES.values())


def test_a_table_older_than_half_a_year_says_so_with_its_date() -> None:
    assert stale(AS_OF + FRESH) == ""
    assert f"is of {AS_OF}, older than half a year" in stale(AS_OF + FRESH + timedelta(days=1))


def test_a_pool_that_the_cluster_removes_shifts_the_place_of_no_other() -> None:
    pools = (
        "  nodePools:\n    - {name: apps, $patch: delete}\n"
        "    - {name: late, vmSize: Standard_D4s_v5, count: 1, osSKU: Ubuntu2204}\n"
    )
    fleet = with_change(ONE, "spec:\n", f"spec:\n{pools}")
    found = retirement_warnings(fleet, ["one"], table.UBUNTU_2204.on)
    (warned,) = [problem for problem in found if "Ubuntu 22.04" in problem.message]
    assert (warned.file, warned.line, warned.field) == (ONE, 8, "spec.nodePools[late].osSKU")
