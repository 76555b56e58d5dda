"""``roadstead prices update`` against the local list of retail prices."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from cli.commands.write.prices import ATTEMPTS, RetailPrices
from cli.errors import CommandError, ExitCode
from localcloud.common.front_door import ScriptedFault
from localcloud.prices.prices_server import PricesServer, recorded
from shared.prices.price_file import Kind, Unit, read_prices
from shared.prices.retail import PriceNeed
from tests.support.recorded_prices import DAY
from tests.support.roadstead_command import roadstead

pytestmark = pytest.mark.lives

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet"
D4S = PriceNeed("eastus", Kind.NODE, "Standard_D4s_v5")


@pytest.fixture
def service() -> Iterator[PricesServer]:
    with PricesServer() as running:
        yield running


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "fleet"))


def update(fleet: Path, service: PricesServer) -> CompletedProcess[str]:
    return roadstead("prices", "update", str(fleet), "--address", service.address)


def no_wait(seconds: float) -> None:
    assert seconds <= 60


def test_it_writes_the_prices_of_what_the_fleet_uses(fleet: Path, service: PricesServer) -> None:
    done = update(fleet, service)

    assert done.returncode == ExitCode.OK, done.stderr
    assert f"12 prices of {datetime.now(UTC).date()} in USD" in done.stdout
    prices = read_prices((fleet / "prices.yaml").read_bytes())
    assert [(price.region, price.name) for price in prices.entries if price.kind is Kind.NODE] == [
        ("eastus", "Standard_D4s_v5"),
        ("eastus", "Standard_D8s_v5"),
        ("westus2", "Standard_D4s_v5"),
        ("westus2", "Standard_D8s_v5"),
    ]
    assert {price.unit for price in prices.entries if price.kind is Kind.DISK} == {Unit.MONTH}


def test_a_second_update_says_what_has_changed(fleet: Path, service: PricesServer) -> None:
    update(fleet, service)
    file = fleet / "prices.yaml"
    file.write_text(file.read_text().replace('"0.384"', '"0.4"', 1).replace("D4s_v5", "D4s_v4", 1))

    out = update(fleet, service).stdout

    assert "changed: Standard_D8s_v5 in eastus, 0.4 to 0.384 for 1 Hour" in out
    assert "new: Standard_D4s_v5 in eastus, 0.192 for 1 Hour" in out
    assert "no longer used: Standard_D4s_v4 in eastus" in out


def test_what_has_no_price_is_named(fleet: Path, service: PricesServer) -> None:
    shared = fleet / "fleet.yaml"
    shared.write_text(shared.read_text().replace("Standard_D4s_v5", "Standard_D4s_v9"))

    done = update(fleet, service)

    assert done.returncode == ExitCode.OK, done.stderr
    assert "no price for Standard_D4s_v9 in eastus: the list has none" in done.stdout


def test_it_reads_every_page() -> None:
    with PricesServer(page=1) as service, RetailPrices(service.address, "EUR", wait=no_wait) as prices:
        found, missing = prices.prices([PriceNeed("northeurope", Kind.NODE, "Standard_D4s_v5")], DAY)
        pages = len(service.door.requests)

    assert (pages, not missing, str(found.entries[0].price)) == (2, True, "0.1813")


def test_a_busy_service_is_asked_again(service: PricesServer) -> None:
    waits = list[float]()
    service.door.faults = [ScriptedFault("prices", 429, {}, {"Retry-After": "7"}, times=2)]
    with RetailPrices(service.address, "USD", wait=waits.append) as prices:
        found, _ = prices.prices([D4S], DAY)

    assert (len(found.entries), waits) == (1, [7.0, 7.0])


@pytest.mark.parametrize(("status", "requests"), [(503, ATTEMPTS), (403, 1)])
def test_a_service_that_refuses_leaves_the_file_as_it_was(
    status: int, requests: int, service: PricesServer, fleet: Path
) -> None:
    service.door.faults = [ScriptedFault("prices", status, {"Error": "no"}, times=None)]
    with (
        RetailPrices(service.address, "USD", wait=no_wait) as prices,
        pytest.raises(CommandError, match=f"answered {status}.*the price file is as it was"),
    ):
        prices.prices([D4S], DAY)

    assert len(service.door.requests) == requests
    assert not (fleet / "prices.yaml").exists()


def test_a_list_leads_to_no_other_service() -> None:
    fault = ScriptedFault("prices", 200, {"Items": [], "NextPageLink": "https://example.com/steal"})
    with PricesServer() as service, RetailPrices(service.address, "USD", wait=no_wait) as prices:
        service.door.faults = [fault]
        with pytest.raises(CommandError, match=r"leads to another service, example\.com"):
            prices.prices([D4S], DAY)


@pytest.mark.parametrize(
    "link", ["http://prices.azure.com/api", "https://prices.azure.com:8443/api", "https://[", "ftp:x"]
)
def test_a_list_leads_to_itself_by_the_same_protocol(link: str) -> None:
    fault = ScriptedFault("prices", 200, {"Items": [], "NextPageLink": link})
    with PricesServer() as service, RetailPrices(service.address, "USD", wait=no_wait) as prices:
        service.door.faults = [fault]
        with pytest.raises(CommandError, match="leads to"):
            prices.prices([D4S], DAY)


def test_what_is_secret_in_an_address_is_asked_with_and_not_written(service: PricesServer) -> None:
    address = service.address.replace("://", "://user:word@") + "?key=word"
    with RetailPrices(address, "USD", wait=no_wait) as prices:
        found, _ = prices.prices([D4S], DAY)

    assert found.entries
    assert found.source == f"{service.address}?api-version=2023-01-01-preview"


def test_a_price_that_no_file_takes_leaves_the_file_as_it_was(fleet: Path, service: PricesServer) -> None:
    huge = [{**entry, "retailPrice": 1e300} for entry in recorded() if entry["armSkuName"] == D4S.name]
    service.door.faults = [ScriptedFault("prices", 200, {"Items": huge}, times=None)]
    done = update(fleet, service)

    assert done.returncode == ExitCode.FAILED
    assert "the list has what no price file takes: prices.yaml:" in done.stderr
    assert not (fleet / "prices.yaml").exists()


def test_clusters_that_are_not_valid_are_named(fleet: Path, service: PricesServer) -> None:
    update(fleet, service)
    (fleet / "clusters/pacific-aks/cluster.yaml").write_text("kind: Nothing")

    done = update(fleet, service)

    assert done.returncode == ExitCode.OK, done.stderr
    assert "without what is not valid: pacific-aks; see roadstead validate" in done.stdout


def test_a_fleet_of_which_nothing_is_valid_keeps_its_prices(fleet: Path, service: PricesServer) -> None:
    update(fleet, service)
    before = (fleet / "prices.yaml").read_bytes()
    (fleet / "fleet.yaml").write_text("kind: Nothing")

    done = update(fleet, service)

    assert done.returncode == ExitCode.FAILED
    assert "roadstead validate" in done.stderr
    assert (fleet / "prices.yaml").read_bytes() == before


def test_a_price_that_the_list_lost_is_not_called_unused(fleet: Path, service: PricesServer) -> None:
    update(fleet, service)
    file = fleet / "prices.yaml"
    usual = (fleet / "fleet.yaml").read_text()
    (fleet / "fleet.yaml").write_text(usual.replace("Standard_D4s_v5", "Standard_D4s_v9"))
    file.write_text(file.read_text().replace("Standard_D4s_v5", "Standard_D4s_v9", 1))

    out = update(fleet, service).stdout

    assert "no price for Standard_D4s_v9 in eastus" in out
    assert "no longer used: Standard_D4s_v9 in eastus" not in out


@pytest.mark.parametrize(
    ("option", "value"), [("--currency", "euro"), ("--address", "http://example.com/list")]
)
def test_a_wrong_option_is_a_wrong_command_line(option: str, value: str, fleet: Path) -> None:
    done = roadstead("prices", "update", str(fleet), option, value)
    assert done.returncode == ExitCode.USAGE
    assert value in done.stderr
