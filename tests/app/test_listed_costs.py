"""List prices are found once a day from the price file of the newest commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.costs import costs_view
from shared.app.costs.known_costs import AGAIN, read_costs
from shared.cluster.record_parts import Phase
from shared.prices.price_file import PRICE_FILE
from shared.resource_ids import GroupId
from tests.support.console_pages import shown
from tests.support.pipeline_runs import cloud_with, push
from tests.support.priced_fleets import ASLEEP, priced_cloud, priced_files

LABELLED = "  environment: production\n"


@pytest.fixture
def cloud() -> MemoryCloud:
    return priced_cloud(one=LABELLED, two="  environment: development\n")


def test_each_cluster_has_its_list_price_with_the_day_of_the_prices(cloud: MemoryCloud) -> None:
    read_costs(cloud.ports)
    view = costs_view(cloud.ports)
    (one, two) = view["clusters"]
    assert one["listed"]
    assert one["listed"] == {
        "low": 236.52,
        "high": 236.52,
        "idleLow": 3.65,
        "idleHigh": 23.36,
        "unpriced": 0,
        "currency": "USD",
        "pricesOf": "2026-09-23",
        "foundAt": one["listed"]["foundAt"],
    }
    assert (one["environment"], two["environment"]) == ("production", "development")
    assert [(group["name"], group["low"], group["clusters"]) for group in view["environments"]] == [
        ("production", 236.52, 1),
        ("development", 163.52, 1),
    ]
    assert (view["currency"], view["listProblem"]) == ("USD", "")


def test_a_cluster_that_sleeps_now_has_idle_costs_in_its_groups() -> None:
    cloud = priced_cloud(one="", two=ASLEEP)
    cloud.run(seconds=(20 - cloud.clock().hour) * 3600, until=lambda: False)
    assert {record.name: record.phase for record in cloud.state.clusters()}["two"] is Phase.SLEEPING

    read_costs(cloud.ports)

    (group,) = costs_view(cloud.ports)["owners"]
    assert (group["clusters"], group["asleep"], group["idleLow"], group["idleHigh"]) == (2, 1, 3.65, 23.36)


def test_without_a_price_file_it_says_so_and_reads_what_was_billed() -> None:
    cloud = MemoryCloud()
    files = priced_files(one="")
    push(cloud, {path: content for path, content in files.items() if path != PRICE_FILE})
    cloud.run()
    read_costs(cloud.ports)

    view = costs_view(cloud.ports)

    assert "roadstead prices update writes it" in view["listProblem"]
    (cluster,) = view["clusters"]
    assert cluster["listed"] is None
    assert cluster["billed"] is not None


def test_what_has_no_price_is_counted_and_named() -> None:
    files = priced_files(one="")
    files[PRICE_FILE] = b"".join(
        line for line in files[PRICE_FILE].splitlines(keepends=True) if b"disk" not in line
    )
    cloud = cloud_with(files)
    read_costs(cloud.ports)

    view = costs_view(cloud.ports)

    assert view["missing"] == ["no price for disk P10 LRS in eastus"]
    assert [group["unpriced"] for group in view["environments"]] == [1]


def test_what_is_in_the_apps_own_group_is_what_roadstead_costs(cloud: MemoryCloud) -> None:
    subscription = cloud.state.clusters()[0].desired.id.subscription
    own = replace(cloud.ports.config, app_group=GroupId(subscription, "RG-one"))
    ports = replace(cloud.ports, config=own)
    read_costs(ports)

    view = costs_view(ports)

    assert all(entry["type"] and entry["billed"]["currency"] == "USD" for entry in view["own"])
    assert {cluster["name"] for cluster in view["clusters"] if cluster["billed"]} == {"one", "two"}


def test_pages_show_the_costs_and_what_is_not_known(cloud: MemoryCloud) -> None:
    assert "unknown" in shown(cloud.ports, "/clusters?columns=cost,billed").text
    cloud.clock.advance(60)
    read_costs(cloud.ports)

    assert "$237 2026-09-23" in shown(cloud.ports, "/clusters").text
    assert "$792 to " in shown(cloud.ports, "/clusters?columns=cost,billed").text
    page = shown(cloud.ports, "/clusters/one?show=costs").text
    assert "List price a month $237; asleep all month $3.65 to $23.36" in page
    assert "Billed by Azure $792 from " in page
    costs = shown(cloud.ports, "/costs").text
    assert "By environment" in costs
    assert "production 1 $237 0 $792" in costs
    assert "Roadstead itself Unknown" in costs


def test_list_prices_are_found_again_after_a_day_also_when_azure_refuses(cloud: MemoryCloud) -> None:
    read_costs(cloud.ports)
    cloud.clock.advance(AGAIN.total_seconds())
    read_costs(cloud.ports)
    (record,) = cloud.state.costs()
    assert record.listed is not None
    assert record.listed.at > cloud.clock() - AGAIN
