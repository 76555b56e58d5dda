"""A fleet of one cluster that sleeps at night, at a time of the week."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.one_cluster import ONE, ready

NIGHTS = '{stop: "0 19 * * 1-5", start: "0 7 * * 1-5", timeZone: Europe/Helsinki}'
"""Helsinki is two hours ahead of UTC in January: 17:00 and 05:00."""


def sleeping(more: str = "") -> str:
    """Return YAML of a cluster that sleeps at night, for ``files``."""
    return f"  sleep: {{schedules: [{NIGHTS}]{more}}}\n"


def until(cloud: MemoryCloud, hour: int, day: int = 0, minute: int = 0) -> None:
    """Run the app until an hour of UTC, so many days after today."""
    now = cloud.clock()
    at = now.replace(hour=hour, minute=minute, second=0, microsecond=0) + timedelta(days=day)
    cloud.run(seconds=(at - now).total_seconds(), until=lambda: False)


def on_monday(more: str = "", extra: str = "", *, pools: str = "") -> MemoryCloud:
    """Return a cloud on a Monday at noon, UTC, whose cluster is Ready and sleeps at night.

    ``pools`` is YAML of its further node pools.
    """
    cloud = ready(pools + sleeping(more) + extra)
    monday = datetime(2026, 1, 12, 12, tzinfo=UTC)
    cloud.clock.advance((monday - cloud.clock()).total_seconds())
    return cloud


def runs(cloud: MemoryCloud) -> bool:
    """Return whether Azure runs the cluster."""
    return bool(cloud.azure.get_cluster(ONE)["properties"]["powerState"]["code"] == "Running")
