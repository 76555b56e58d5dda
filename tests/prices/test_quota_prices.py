"""A quota of the list price refuses what a commit adds beyond it, and what has no price."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.errors import ExitCode
from shared.language.desired import Desired
from shared.language.model.fleet_rules import ClusterQuota
from shared.language.resolve.rules.quota_rules import over_budget
from shared.prices.price_file import PRICE_FILE, Kind, Prices
from shared.prices.quota_prices import QuotaPrices, price_of, prices_from
from tests.support.desired_clusters import desired, with_field
from tests.support.pipeline_runs import cloud_with
from tests.support.priced_fleets import priced_files
from tests.support.recorded_prices import prices_of
from tests.support.roadstead_command import roadstead, write

ONE = desired("one")
PRICES = prices_of([ONE.spec])


def stored(*clusters: Desired) -> dict[str, Desired]:
    return {cluster.name: Desired(json.loads(json.dumps(cluster.document()))) for cluster in clusters}


def refused(
    new: Mapping[str, Desired], old: Mapping[str, Desired], limit: int, prices: Prices | str = PRICES
) -> dict[str, str]:
    found = over_budget(new, old, ClusterQuota(listPrice=limit), QuotaPrices(prices))  # type: ignore[call-arg]
    return {name: "; ".join(message for _, message in findings) for name, findings in found.items()}


def named(*clusters: Desired) -> dict[str, Desired]:
    return {cluster.name: cluster for cluster in clusters}


def test_what_fits_is_admitted_and_the_rest_is_refused_with_the_numbers() -> None:
    two = desired("two")
    assert refused(named(ONE, two), stored(ONE), 474) == {}
    assert refused(named(ONE, two), stored(ONE), 400) == {
        "two": "the fleet: 474 of 400 USD a month by list price; this commit adds 237; 163 would fit; "
        "take some back, or raise it in fleet.yaml"
    }


def test_what_exists_stays_also_beyond_the_quota() -> None:
    assert refused(named(ONE), stored(ONE), 1) == {}
    assert refused(named(desired("one", count=2)), stored(ONE), 1).keys() == {"one"}


def test_a_new_cluster_that_has_no_price_is_refused_with_what_to_do() -> None:
    elsewhere = desired("two", location="norwayeast")
    found = refused(named(ONE, elsewhere), stored(ONE), 10_000)
    assert found.keys() == {"two"}
    assert "no price for cluster tier Standard in norwayeast" in found["two"]
    assert "roadstead prices update gets prices, and the fleet has a quota of the list price" in found["two"]
    assert refused(named(ONE, elsewhere), stored(ONE, elsewhere), 10_000) == {}


def test_without_a_price_file_only_what_exists_as_it_is_stays() -> None:
    missing = prices_from(None)
    assert refused(named(ONE), stored(ONE), 10_000, missing) == {}
    assert "roadstead prices update writes it" in refused(named(ONE), {}, 10_000, missing)["one"]
    assert refused(named(desired("one", count=2)), stored(ONE), 10_000, missing).keys() == {"one"}


def test_an_autoscaled_pool_counts_at_its_maximum() -> None:
    pool = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "minCount": 1, "maxCount": 3}
    scaled = with_field(ONE, "nodePools", [pool])
    assert "557 of 500 USD" in refused(named(scaled), {}, 500)["one"]


@pytest.mark.lives
@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from(["eastus", "westeurope"]), st.booleans()), min_size=1
    ),
    st.sampled_from([Kind.DISK, Kind.NODE, Kind.ADDRESS]),
)
def test_clusters_are_priced_as_a_plan_prices_them_whatever_they_have_in_common(
    drawn: list[tuple[int, str, bool]], without: Kind
) -> None:
    nights: dict[str, Any] = {"schedules": [{"stop": "0 19 * * *", "start": "0 7 * * *", "timeZone": "UTC"}]}
    clusters = [
        with_field(desired(f"c{number}", count=count, location=place), "sleep", nights if asleep else None)
        for number, (count, place, asleep) in enumerate(drawn)
    ]
    whole = prices_of([cluster.spec for cluster in clusters])
    prices = replace(whole, entries=tuple(entry for entry in whole.entries if entry.kind is not without))
    found = QuotaPrices(prices)
    for cluster in stored(*clusters).values():
        price = price_of(cluster, prices)
        amount, unpriced = found.at_most(cluster)
        assert 0 <= amount - float(price.high) < 1
        assert bool(unpriced) == bool(price.missing)


QUOTA = b"spec:\n  clusterQuotas: [{environment: development, listPrice: 400}]\n"
DEVELOPMENT = "  environment: development\n"


def bounded(*names: str) -> dict[str, bytes]:
    files = priced_files(**dict.fromkeys(names, DEVELOPMENT))
    files["fleet.yaml"] = files["fleet.yaml"].replace(b"spec:\n", QUOTA, 1)
    return files


def test_a_push_beyond_the_quota_creates_what_fits() -> None:
    cloud = cloud_with(bounded("one", "two", "three"))
    assert {record.name for record in cloud.state.clusters()} == {"one", "three"}
    plan = cloud.state.plan(cloud.state.fleet().commit)
    assert plan is not None
    assert "environment development: 492 of 400 USD a month by list price" in " ".join(plan.plan.problems)


def test_validate_says_it_too_and_without_a_price_file_what_to_do(tmp_path: Path) -> None:
    write(tmp_path, bounded("one", "two", "three"))
    done = roadstead("validate", str(tmp_path))
    assert done.returncode == ExitCode.FAILED
    assert (
        "492 of 400 USD a month by list price; this commit adds 492; 400 would fit"
        in done.stdout + done.stderr
    )
    (tmp_path / PRICE_FILE).unlink()
    assert "roadstead prices update writes it" in "".join(
        (again := roadstead("validate", str(tmp_path))).stdout + again.stderr
    )


@pytest.mark.parametrize("value", ["-1", "1.5", "'400'"])
def test_a_quota_is_a_whole_number(tmp_path: Path, value: str) -> None:
    files = bounded("one")
    files["fleet.yaml"] = files["fleet.yaml"].replace(b"listPrice: 400", f"listPrice: {value}".encode())
    write(tmp_path, files)
    assert roadstead("validate", str(tmp_path)).returncode == ExitCode.FAILED
