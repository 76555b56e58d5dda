"""List prices of a month against a calculation by hand, with prices that public sources have recorded."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.worktree import open_worktree
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.prices.monthly import Monthly, OsDisk, monthly, os_disk, parts_of
from shared.prices.price_file import HOURS, Kind, Price, Prices, Unit
from tests.support.recorded_prices import DAY, prices_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet"
NIGHTS = {"stop": "0 19 * * 1-5", "start": "0 7 * * 1-5", "timeZone": "Europe/Helsinki"}
SYSTEM = {"name": "system", "mode": "System", "vmSize": "Standard_D2s_v5", "count": 1}


def spec(location: str, *pools: dict[str, Any], **more: Any) -> ClusterSpec:
    return ClusterSpec.model_validate(
        {
            **{"subscriptionId": "11111111-1111-1111-1111-111111111111", "resourceGroup": "rg"},
            **{"location": location, "kubernetesVersion": "1.36", "nodePools": list(pools)},
            "flux": {"repository": "https://github.com/example/fleet", "path": "./platform"},
            **more,
        }
    )


def listed(cluster: ClusterSpec) -> Monthly:
    return monthly(cluster, prices_of([cluster]))


def money(text: str) -> Decimal:
    return Decimal(text)


def test_the_example_fleet_is_listed_as_calculated_by_hand() -> None:
    clusters = open_worktree(EXAMPLE).resolve().clusters
    prices = prices_of(cluster.spec for cluster in clusters.values())
    found = {name: monthly(cluster.spec, prices) for name, cluster in clusters.items()}

    # eastus: tier 0.1, D4s_v5 0.192, D8s_v5 0.384 and an address 0.005 an hour; P10 19.71 and P15 38.012142
    fixed = money("73.00") + 3 * (money("140.16") + money("19.71")) + money("3.65")
    assert found["atlantic-aks"].low == fixed + 2 * (money("280.32") + money("38.012142"))
    assert found["atlantic-aks"].low == money("1192.924284")
    assert found["atlantic-aks"].high == fixed + 10 * (money("280.32") + money("38.012142"))
    assert found["atlantic-aks"].high == money("3739.58142")
    # westus2: the same by the hour; P10 17.92, P15 34.56 a month
    assert found["pacific-aks"].low == found["pacific-aks"].high == money("1495.53")
    # eastus, tier Free: one D4s_v5 with a P10, and an address
    assert found["sargasso-aks"].low == money("140.16") + money("19.71") + money("3.65") == money("163.52")
    assert sum(priced.low for priced in found.values()) == money("2851.974284")
    assert sum(priced.high for priced in found.values()) == money("5398.63142")
    assert not any(priced.missing or priced.left_out for priced in found.values())


def test_a_premium_cluster_with_disks_on_its_hosts_and_no_address_is_tier_and_nodes_alone() -> None:
    pool = {"name": "system", "mode": "System", "vmSize": "Standard_D4ds_v5", "count": 2}
    cluster = spec(
        *("westeurope", pool),
        sku={"tier": "Premium"},
        networkProfile={"outboundType": "userDefinedRouting"},
    )

    # 730 hours of 0.6 for the tier, and of 0.272 for each of two nodes
    assert (
        listed(cluster).low
        == listed(cluster).high
        == money("438.00") + 2 * money("198.56")
        == money("835.12")
    )


def test_spot_nodes_have_their_own_price_and_are_shown_apart() -> None:
    spot = {"name": "spot", "vmSize": "Standard_E2as_v4", "minCount": 0, "maxCount": 5}
    disk = {"osDiskType": "Managed", "osDiskSizeGB": 128}
    found = listed(spec("australiaeast", SYSTEM, {**spot, **disk, "scaleSetPriority": "Spot"}))

    # tier 73, a D2s_v5 at 0.12 an hour with a P10 at 19.71, an address; up to five spot nodes at 0.016806
    assert found.low == money("73.00") + money("87.60") + money("19.71") + money("3.65") == money("183.96")
    assert found.high == found.low + 5 * (money("12.26838") + money("19.71")) == money("343.8519")
    assert (found.spot.low, found.spot.high) == (money("0"), money("61.3419"))


def test_nodes_of_windows_and_their_addresses_are_counted_at_their_own_prices() -> None:
    windows = {"name": "win", "osType": "Windows", "vmSize": "Standard_DS2_v2", "count": 2}
    disk = {"osDiskType": "Managed", "osDiskSizeGB": 128, "enableNodePublicIP": True}
    found = listed(spec("eastus", {**SYSTEM, "count": 3}, {**windows, **disk}))

    # tier, three D2s_v5 at 0.096 with a P10, two DS2_v2 of Windows at 0.238 with a P10, three addresses
    nodes = 3 * (money("70.08") + money("19.71")) + 2 * (money("173.74") + money("19.71"))
    assert found.low == money("73.00") + nodes + 3 * money("3.65") == money("740.22")


def test_a_size_in_another_case_has_the_price_of_the_size() -> None:
    pool = {"name": "system", "mode": "System", "vmSize": "STANDARD_d4S_V5", "count": 3}
    usual = {**pool, "vmSize": "Standard_D4s_v5"}

    assert listed(spec("eastus", pool)) == listed(spec("eastus", usual))
    assert listed(spec("eastus", pool)).missing == ()


def test_what_has_no_price_is_named_and_the_rest_is_counted() -> None:
    gpu = {"name": "gpu", "vmSize": "Standard_NC24ads_A100_v4", "count": 1, "osDiskType": "Ephemeral"}
    found = listed(spec("eastus", SYSTEM, gpu))

    assert found.missing == ("no price for Standard_NC24ads_A100_v4 in eastus",)
    assert found.low == listed(spec("eastus", SYSTEM)).low


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"networkProfile": {"outboundType": "managedNATGateway"}}, "the NAT gateway"),
        ({"nodeProvisioningProfile": {"mode": "Auto"}}, "nodes of node auto-provisioning"),
        ({"sku": {"name": "Automatic"}}, "the fee of AKS Automatic"),
        ({"sku": {"name": "Automatic"}}, "the NAT gateway of AKS Automatic, with its address"),
        (
            {"sleep": {"schedules": [NIGHTS]}},
            "holidays, and what operators order: listed as awake 60 of 168 hours of a week",
        ),
    ],
)
def test_what_is_asked_for_and_not_counted_is_named(more: dict[str, Any], named: str) -> None:
    assert named in listed(spec("eastus", SYSTEM, **more)).left_out


def test_a_disk_that_azure_chooses_is_named_and_a_stopped_pool_has_no_nodes() -> None:
    old = {"name": "old", "vmSize": "Standard_DS2_v2", "count": 2}
    stopped = {"name": "off", "vmSize": "Standard_D2s_v5", "count": 9, "powerState": {"code": "Stopped"}}
    found = listed(spec("eastus", SYSTEM, old, stopped))

    assert [line.pool for line in found.lines if line.kind is Kind.NODE] == ["system", "old"]
    assert found.left_out == (
        "OS disks of the pool old: AKS chooses it; osDiskType and osDiskSizeGB say",
        "disks of the stopped pool off",
    )


@pytest.mark.parametrize(
    ("size", "more", "disk"),
    [
        ("Standard_D4s_v5", {}, "P10 LRS"),
        ("Standard_D8s_v5", {}, "P15 LRS"),
        ("Standard_D16s_v6", {}, "P20 LRS"),
        ("Standard_E96s_v5", {}, "P30 LRS"),
        ("Standard_D4s_v5", {"osDiskSizeGB": 30}, "P4 LRS"),
        ("Standard_D4s_v5", {"osDiskSizeGB": 129}, "P15 LRS"),
        ("Standard_D4ds_v5", {}, OsDisk.ON_HOST),
        ("Standard_D4ds_v5", {"osDiskType": "Managed"}, "P10 LRS"),
        ("Standard_D2ds_v5", {}, OsDisk.UNKNOWN),  # 75 GiB on the host, which AKS takes from 128 on
        ("Standard_D2ds_v5", {"osDiskSizeGB": 64}, OsDisk.ON_HOST),
        ("Standard_D4ds_v5", {"osDiskSizeGB": 512}, OsDisk.UNKNOWN),
        ("Standard_D4s_v5", {"osDiskType": "Ephemeral"}, OsDisk.ON_HOST),
        ("Standard_D4_v5", {}, OsDisk.UNKNOWN),
        ("Standard_DS2_v2", {"osDiskType": "Managed"}, OsDisk.UNKNOWN),
        ("Standard_DS2_v2", {"osDiskType": "Managed", "osDiskSizeGB": 128}, "P10 LRS"),
        ("Standard_D4as_v4", {}, OsDisk.UNKNOWN),
        ("Basic_A1", {}, OsDisk.UNKNOWN),
    ],
)
def test_the_disk_of_a_node_is_that_which_aks_chooses(size: str, more: dict[str, Any], disk: object) -> None:
    assert (
        os_disk(NodePool.model_validate({"name": "apps", "vmSize": size, "count": 1, **more}), size) == disk
    )


SIZES = st.sampled_from(["Standard_D2s_v5", "STANDARD_d4S_v5", "Standard_E8s_v5", "Standard_L8s_v3"])
PRICES = st.decimals("0.0001", "50", places=4)


@st.composite
def pools(draw: st.DrawFn) -> dict[str, Any]:
    least, more = draw(st.integers(1, 50)), draw(st.integers(0, 50))
    pool: dict[str, Any] = {"name": "apps", "vmSize": draw(SIZES)}
    sized = {"count": least} if not more else {"minCount": least, "maxCount": least + more}
    return (
        pool | sized | draw(st.sampled_from([{}, {"scaleSetPriority": "Spot"}, {"enableNodePublicIP": True}]))
    )


@given(pool=pools(), price=PRICES, node=PRICES)
def test_each_part_is_counted_once_or_named_and_more_nodes_never_cost_less(
    pool: dict[str, Any], price: Decimal, node: Decimal
) -> None:
    cluster = spec("eastus", SYSTEM, pool)
    kinds = {Kind.NODE: node, Kind.SPOT_NODE: node / 4}
    priced = [part for part in parts_of(cluster) if "L8s" not in part.name]
    entries = (Price("eastus", p.kind, p.name, kinds.get(p.kind, price), Unit.HOUR) for p in priced)
    found = monthly(cluster, Prices(DAY, "USD", "https://prices.example.com", tuple(entries)))

    assert 0 <= found.low <= found.high
    assert found.low == sum(HOURS * kinds.get(part.kind, price) * part.least for part in priced)
    assert len(found.lines) == len(priced)
    assert bool(found.missing) == ("L8s" in pool["vmSize"])
