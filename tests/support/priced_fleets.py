"""Fleets in memory with a price file of recorded prices."""

from __future__ import annotations

from collections.abc import Mapping

from localcloud.memory.memory_cloud import MemoryCloud
from shared.language.resolve.resolver import resolve
from shared.prices.price_file import PRICE_FILE, written
from tests.support import fleet_files
from tests.support.pipeline_runs import cloud_with
from tests.support.recorded_prices import prices_of
from tests.support.resolved_fleets import files_of

NIGHTS = '{stop: "0 19 * * *", start: "0 7 * * *", timeZone: UTC}'
ASLEEP = f"  sleep: {{schedules: [{NIGHTS}]}}\n"


def with_prices(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a fleet with the recorded prices of its clusters."""
    clusters = resolve("example", files_of(files), dict(files)).clusters.values()
    return {**files, PRICE_FILE: written(prices_of(cluster.spec for cluster in clusters)).encode()}


def priced_files(**extras: str) -> dict[str, bytes]:
    """Return a fleet of clusters in eastus, each with more in its spec."""
    paths = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=extra)
        for name, extra in extras.items()
    }
    return with_prices(fleet_files.fleet() | paths)


def priced_cloud(**extras: str) -> MemoryCloud:
    """Return a cloud with such a fleet, whose clusters are Ready."""
    return cloud_with(priced_files(**extras))
