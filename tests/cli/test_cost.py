"""``roadstead cost``: what the app has found of the costs of the fleet, in groups."""

from __future__ import annotations

import json

import pytest

from cli.errors import ExitCode
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.costs.known_costs import read_costs
from shared.ports.state import SubscriptionCosts
from shared.prices.price_file import PRICE_FILE
from tests.support.pipeline_runs import push
from tests.support.priced_fleets import ASLEEP, priced_cloud, priced_files
from tests.support.roadstead_command import roadstead

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    return priced_cloud(one="  environment: production\n", two="  environment: development\n")


def rows(output: str) -> list[list[str]]:
    return [row.split() for row in output.splitlines()]


def test_the_groups_are_those_of_the_app_and_the_dearest_is_first(url: str, cloud: MemoryCloud) -> None:
    read_costs(cloud.ports)
    done = roadstead("cost", "--by", "environment", "--url", url)

    assert done.returncode == ExitCode.OK, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.startswith("List price: $400 a month, prices of 2026-09-23")
    assert lines[:3] == [
        "ENVIRONMENT  CLUSTERS  A MONTH  AT MOST  BILLED",
        "production   1         $237     $237     $792",
        "development  1         $164     $164     $720",
    ]
    assert lines[3].startswith("Billed by Azure from ")


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        ("cluster", ["cluster/one", "cluster/two"]),
        ("environment", ["environment/production", "environment/development"]),
        ("owner", ["owner/(none)"]),
        ("system", ["system/(none)"]),
    ],
)
def test_each_key_has_its_groups(url: str, cloud: MemoryCloud, by: str, groups: list[str]) -> None:
    read_costs(cloud.ports)

    assert roadstead("cost", "--by", by, "--url", url, "-o", "name").stdout.splitlines() == groups


def test_what_has_no_price_is_named(url: str, cloud: MemoryCloud) -> None:
    files = priced_files(one="")
    lines = files[PRICE_FILE].splitlines(keepends=True)
    push(cloud, {**files, PRICE_FILE: b"".join(line for line in lines if b"disk" not in line)})
    cloud.run()
    read_costs(cloud.ports)

    assert "no price for disk P10 LRS in eastus: not counted" in roadstead("cost", "--url", url).stdout


def test_without_prices_it_says_how_to_get_them_and_what_was_billed(url: str, cloud: MemoryCloud) -> None:
    files = priced_files(one="")
    push(cloud, {path: content for path, content in files.items() if path != PRICE_FILE})
    cloud.run()
    read_costs(cloud.ports)

    done = roadstead("cost", "--url", url)

    assert "roadstead prices update writes it" in done.stdout.splitlines()[0]
    assert ["one", "1", "not", "known", "not", "known", "$792"] in rows(done.stdout)


def test_before_the_app_has_added_up_it_says_when_it_does(url: str, cloud: MemoryCloud) -> None:
    done = roadstead("cost", "--url", url)

    assert done.stdout.splitlines()[0].startswith("List price: not known yet: the app adds up once a day")


def test_roadstead_itself_is_what_its_own_group_has_cost(url: str, cloud: MemoryCloud) -> None:
    assert "Not known: " in roadstead("cost", "--own", "--url", url).stdout
    now = cloud.clock()
    own = {"microsoft.web/sites": 18.5, "microsoft.servicebus/namespaces": 9.86}
    cloud.state.save_costs(
        SubscriptionCosts("a", now, now, "2026-10-01", "2026-10-30", "USD", {"one": 70.0}, own=own)
    )
    head, *lines = roadstead("cost", "--own", "--url", url).stdout.splitlines()

    assert head == "Roadstead itself: $28.36, billed by Azure from 2026-10-01 to 2026-10-30"
    assert [row.split() for row in lines] == [
        ["TYPE", "OF", "RESOURCE", "BILLED"],
        ["microsoft.web/sites", "$18.50"],
        ["microsoft.servicebus/namespaces", "$9.86"],
        ["Counted:", "nothing", "yet"],
    ]


def test_what_roadstead_has_counted_is_shown_by_kind_and_wide_by_operation(
    url: str, cloud: MemoryCloud
) -> None:
    cloud.state.add_used({"executions planner": 3, "tables GET roadsteadfleets": 1_000}, cloud.clock())
    done = roadstead("cost", "--own", "--url", url)

    assert f"Counted since {cloud.clock().date()}, at list prices of East US: " in done.stdout
    assert ["table", "operations", "1,000", "$0.00"] in rows(done.stdout)
    assert "GET roadsteadfleets" in roadstead("cost", "--own", "--url", url, "-o", "wide").stdout


def test_a_cluster_that_sleeps_has_what_it_costs_idle(url: str, cloud: MemoryCloud) -> None:
    push(cloud, priced_files(one="", two=ASLEEP))
    cloud.run(seconds=((20 - cloud.clock().hour) % 24 or 24) * 3600, until=lambda: False)
    read_costs(cloud.ports)

    done = roadstead("cost", "--url", url)
    view = json.loads(roadstead("cost", "--url", url, "-o", "json").stdout)

    assert "ASLEEP  IDLE AT MOST" in done.stdout
    assert next(row for row in rows(done.stdout) if row[0] == "two")[4:6] == ["1", "$23.36"]
    assert [group["asleep"] for group in view["systems"]] == [1]
