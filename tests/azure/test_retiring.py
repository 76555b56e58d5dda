"""What AKS retires of a manifest: 180 days ahead, with the day, the source and what to do."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.azure.availability import announcements as table
from shared.azure.availability.announcements import (
    AS_OF,
    ISTIO,
    KUBERNETES,
    SERIES,
    Announcement,
    of_revision,
    of_size,
)
from shared.azure.availability.retirements import AHEAD, FRESH, retirement_warnings, retiring, stale
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
        (
            {"azure": {"properties": {"addonProfiles": {"openServiceMesh": {"enabled": True}}}}},
            ("azure", "properties", "addonProfiles", "openServiceMesh"),
            table.OPEN_SERVICE_MESH,
        ),
        (
            {"serviceMeshProfile": {"istio": {"revisions": ["asm-1-27", "asm-1-99"]}}},
            ("serviceMeshProfile", "istio", "revisions", 0),
            of_revision("asm-1-27"),
        ),
    ],
)
def test_a_feature_is_warned_of_at_its_field(
    fields: dict[str, Any], path: tuple[str, ...], announced: Announcement
) -> None:
    (warned,) = retiring(spec(**fields), LATE)
    assert (warned.path, warned.announced) == (path, announced)


@pytest.mark.parametrize(
    ("pool", "path", "announced"),
    [
        (
            {"tags": {"AKS-disable-kubelet-serving-certificate-rotation": "true"}},
            ("tags", "AKS-disable-kubelet-serving-certificate-rotation"),
            table.KUBELET_CERTIFICATES,
        ),
        ({"tags": {"SkipGPUDriverInstall": "true"}}, ("tags", "SkipGPUDriverInstall"), table.GPU_TAG),
        (
            {"azure": {"properties": {"enableCustomCATrust": True}}},
            ("azure", "properties", "enableCustomCATrust"),
            table.CUSTOM_CA,
        ),
        ({"vmSize": "Standard_D4s_v2"}, (), None),
        ({"vmSize": "Standard_DS3_v2"}, ("vmSize",), of_size("Standard_DS3_v2")),
        (
            {"virtualMachinesProfile": {"scale": {"manual": [{"size": "standard_nv12s_v3", "count": 1}]}}},
            ("virtualMachinesProfile", "scale", "manual", 0, "size"),
            of_size("standard_nv12s_v3"),
        ),
    ],
)
def test_what_a_pool_has_is_warned_of_at_its_field(
    pool: dict[str, Any], path: tuple[str | int, ...], announced: Announcement | None
) -> None:
    found = retiring(spec(pools=[{"name": "a", "osSKU": "AzureLinux", **pool}]), LATE)
    expected = [(("nodePools", 0, *path), announced)] if announced else []
    assert [(warned.path, warned.announced) for warned in found] == expected
    assert (
        retiring(
            spec(pools=[{"osSKU": "AzureLinux", "tags": dict.fromkeys(pool.get("tags", ()), "no")}]), LATE
        )
        == []
    )


@pytest.mark.parametrize(
    ("size", "series"),
    [
        ("Standard_D3", "D"),
        ("Standard_DS13-4_v2", "Dsv2"),
        ("Standard_D2_v2_Promo", "Dv2"),
        ("Standard_A4m_v2", "Av2"),
        ("Standard_B2ms", "B"),
        ("Standard_F8s_v2", "Fsv2"),
        ("Standard_L16s_v2", "Lsv2"),
        ("Standard_M192idms_v2", "M192i"),
        ("Standard_NV16as_v4", "NVv4"),
        ("Standard_DC4s_v2", "DCsv2"),
        ("Standard_DC8ds_v3", "DCsv3 or DCdsv3"),
        ("Standard_EC16ads_cc_v5", "cc_v5"),
        ("Standard_HB120-64rs_v2", "HBv2"),
        ("Standard_HC44rs", "HC"),
        ("Standard_NP20s", "NP"),
        ("Standard_NC24rs_v3", "NCv3"),
        *(
            (name, "")
            for name in ("Standard_D4s_v5", "Standard_B2s_v2", "Standard_F4as_v6", "Standard_L8s_v3")
        ),
        *((name, "") for name in ("Standard_NC24ads_A100_v4", "Standard_M192is_v3", "Standard_E4s_v3", "")),
    ],
)
def test_a_size_of_a_retired_series_is_known_and_its_successors_are_not(size: str, series: str) -> None:
    found = of_size(size)
    assert (found.on if found else None) == (SERIES[series][1] if series else None)
    assert of_size(size.upper()) is None or found is not None


def test_a_revision_of_istio_that_microsoft_still_supports_is_not_warned_of() -> None:
    newest = max(ISTIO)
    assert [of_revision(f"asm-1-{newest + number}") for number in (1, 2)] == [None, None]
    oldest = of_revision("asm-1-17")
    assert oldest is not None
    assert oldest.on == ISTIO[min(ISTIO)]


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
    assert len(ANNOUNCED) == 14
    sizes = [found for size in ("Standard_D3", "Standard_NV12s_v3") if (found := of_size(size))]
    revisions = [found for minor in ISTIO if (found := of_revision(f"asm-1-{minor}"))]
    for announced in (*ANNOUNCED, *sizes, *revisions):
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
