"""``roadstead cost``: the list price of the fleet, in groups."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli.errors import ExitCode
from cli.worktree import open_worktree
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.costs.known_costs import read_costs
from shared.ports.state import SubscriptionCosts
from shared.prices.price_file import Kind, Prices, written
from tests.support import fleet_files
from tests.support.pipeline_runs import push
from tests.support.priced_fleets import ASLEEP, with_prices
from tests.support.proposals import Repo
from tests.support.recorded_prices import prices_of
from tests.support.roadstead_command import roadstead, write

pytestmark = pytest.mark.lives

TWO = "clusters/two/cluster.yaml"
EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet"


@pytest.fixture
def cloud() -> MemoryCloud:
    repo = Repo(MemoryCloud())
    repo.push(fleet_files.fleet("one", "two"))
    return repo.cloud


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return priced(Path(shutil.copytree(EXAMPLE, tmp_path / "fleet")))


def priced(fleet: Path) -> Path:
    clusters = open_worktree(fleet).resolve().clusters.values()
    (fleet / "prices.yaml").write_text(written(prices_of(cluster.spec for cluster in clusters)))
    return fleet


def test_the_files_are_grouped_and_the_dearest_is_first(fleet: Path) -> None:
    done = roadstead("cost", str(fleet), "--files", "--by", "environment")

    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stdout.splitlines() == [
        "List price: $2,852 a month, at most $5,399 by the autoscaler, prices of 2026-09-23",
        "ENVIRONMENT  CLUSTERS  A MONTH  AT MOST  SPOT AT MOST",
        "production   2         $2,688   $5,235   $0.00",
        "development  1         $164     $164     $0.00",
    ]


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        ("cluster", ["pacific-aks", "atlantic-aks", "sargasso-aks"]),
        ("location", ["westus2", "eastus"]),
        ("class", ["apps-fixed", "apps", "small"]),
        ("owner", ["shop", "(none)"]),
    ],
)
def test_each_key_has_its_groups(fleet: Path, by: str, groups: list[str]) -> None:
    file = fleet / "clusters/pacific-aks/cluster.yaml"
    labelled = "{name: pacific-aks, labels: {owner: shop}}"
    file.write_text(file.read_text().replace("{name: pacific-aks}", labelled))

    view = json.loads(roadstead("cost", str(fleet), "--files", "--by", by, "-o", "json").stdout)

    assert [group["name"] for group in view["groups"]] == groups
    assert view["listPrice"] == {"low": 2851.97, "high": 5398.63, "spotLow": 0, "spotHigh": 0}
    assert round(sum(group["listPrice"]["low"] for group in view["groups"]), 1) == 2852.0


def test_what_has_no_price_is_named(fleet: Path) -> None:
    clusters = open_worktree(fleet).resolve().clusters.values()
    all_of = prices_of(cluster.spec for cluster in clusters)
    disks = tuple(entry for entry in all_of.entries if entry.kind is not Kind.DISK)
    less = Prices(all_of.day, all_of.currency, all_of.source, disks)
    (fleet / "prices.yaml").write_text(written(less))

    done = roadstead("cost", str(fleet), "--files")

    assert "no price for disk P10 LRS in eastus; no price for disk P15 LRS in eastus" in done.stdout


def test_a_cluster_that_is_not_valid_is_named(fleet: Path) -> None:
    (fleet / "clusters/pacific-aks/cluster.yaml").write_text("kind: Nothing")

    done = roadstead("cost", str(fleet), "--files")

    assert done.returncode == ExitCode.OK, done.stderr
    assert "not counted: what is not valid: pacific-aks (roadstead validate)" in done.stdout


def test_without_prices_it_says_how_to_get_them(tmp_path: Path) -> None:
    write(tmp_path, fleet_files.fleet("one"))
    done = roadstead("cost", str(tmp_path), "--files")
    assert done.returncode == ExitCode.FAILED
    assert "roadstead prices update writes it" in done.stderr


def test_the_accepted_clusters_are_those_of_the_app(tmp_path: Path, url: str) -> None:
    write(tmp_path, fleet_files.fleet("one", "two", "three"))
    done = roadstead("cost", str(priced(tmp_path)), "--url", url)

    assert done.returncode == ExitCode.OK, done.stderr
    assert [text.split()[0] for text in done.stdout.splitlines()[2:]] == ["one", "two"]


def test_roadstead_itself_is_what_its_own_group_has_cost(url: str, cloud: MemoryCloud) -> None:
    assert "Not known: " in roadstead("cost", "--own", "--url", url).stdout
    now = cloud.clock()
    own = {"microsoft.web/sites": 18.5, "microsoft.servicebus/namespaces": 9.86}
    cloud.state.save_costs(
        SubscriptionCosts("a", now, now, "2026-10-01", "2026-10-30", "USD", {"one": 70.0}, own=own)
    )
    done = roadstead("cost", "--own", "--url", url)
    view = json.loads(roadstead("cost", "--own", "--url", url, "-o", "json").stdout)

    head, *rows = done.stdout.splitlines()
    assert head == "Roadstead itself: $28.36, billed by Azure from 2026-10-01 to 2026-10-30"
    assert [row.split() for row in rows] == [
        ["TYPE", "OF", "RESOURCE", "BILLED"],
        ["microsoft.web/sites", "$18.50"],
        ["microsoft.servicebus/namespaces", "$9.86"],
        ["Counted:", "nothing", "yet"],
    ]
    assert view["total"]["amount"] == 28.36


def test_what_roadstead_has_counted_is_shown_by_kind_and_wide_by_operation(
    url: str, cloud: MemoryCloud
) -> None:
    cloud.state.add_used({"executions planner": 3, "tables GET roadsteadfleets": 1_000}, cloud.clock())
    done = roadstead("cost", "--own", "--url", url)
    assert f"Counted since {cloud.clock().date()}, at list prices of East US: " in done.stdout
    assert ["table", "operations", "1,000", "$0.00"] in [row.split() for row in done.stdout.splitlines()]
    assert "GET roadsteadfleets" in roadstead("cost", "--own", "--url", url, "-o", "wide").stdout


def test_a_cluster_that_sleeps_has_what_it_costs_idle(tmp_path: Path, url: str, cloud: MemoryCloud) -> None:
    files = with_prices(fleet_files.fleet("one") | {TWO: fleet_files.cluster("two", extra=ASLEEP)})
    push(cloud, files)
    cloud.run(seconds=20 * 3600, until=lambda: False)
    write(tmp_path, files)

    done = roadstead("cost", str(tmp_path), "--url", url)
    view = json.loads(roadstead("cost", str(tmp_path), "--url", url, "--by", "system", "-o", "json").stdout)

    assert "ASLEEP" in done.stdout
    assert "IDLE AT MOST" in done.stdout
    assert "$23.36" in done.stdout
    assert (view["asleep"], view["idle"]) == (1, {"low": 3.65, "high": 23.36})
    assert [group["name"] for group in view["groups"]] == ["(none)"]


def test_what_azure_has_billed_is_a_column_of_its_own(tmp_path: Path, url: str, cloud: MemoryCloud) -> None:
    cloud.run()
    read_costs(cloud.ports)
    write(tmp_path, fleet_files.fleet("one", "two"))
    fleet = str(priced(tmp_path))

    done = roadstead("cost", fleet, "--url", url, "--by", "environment")
    view = json.loads(roadstead("cost", fleet, "--url", url, "-o", "json").stdout)

    assert done.stdout.splitlines()[1].split() == [
        *("ENVIRONMENT", "CLUSTERS", "A", "MONTH", "AT", "MOST", "SPOT", "AT", "MOST", "BILLED"),
    ]
    assert "$1,584" in done.stdout
    assert "Billed by Azure from " in done.stdout
    assert view["problems"] == []
    assert [group["billed"]["amount"] for group in view["groups"]] == [792, 792]
