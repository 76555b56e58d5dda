"""A week of a fleet that sleeps at night, through the Functions host: ``python -m bench.week [CLUSTERS]``.

The whole local cloud runs as processes, and libfaketime puts their clock forward: by a quarter of an hour
around each evening and morning, by an hour otherwise, once nothing is left to do. A commit upgrades
Kubernetes on the third night, which waits for the morning. Counted are the requests to Azure, as in
``bench.nights``, which has no host. The hours of nodes are those that Azure says run before each step of
the clock. A worker that took too long since a read reads again before it writes: those reads are said, as
there are some on a machine that is busy.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from bench.nights import DAYS, NODES, UPGRADED, Night, files, night_of
from cli.errors import CommandError
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import Options
from shared.azure.changes.writes import is_stopped
from tests.support.arm_client import SUBSCRIPTION, arm
from tests.support.fast_clock import FastClock
from tests.support.fleet_operator import Operator

QUARTER, HOUR = timedelta(minutes=15), timedelta(hours=1)
NOTICED, SETTLED = 3.0, 300.0
"""Seconds until each process has noticed a step, and within which everything follows that it leads to."""
WORKING = {"Provisioning", "Updating"}
_READ_AGAIN = ("too old for a write", "the lease has nearly ended")
"""What the worker logs of a read that is repeated."""
_LIST = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.ContainerService/managedClusters"


class Week:
    """A fleet, its clock, and what was counted."""

    def __init__(self, operator: Operator, clock: FastClock) -> None:
        self._operator, self._clock = operator, clock
        self.ran = self.hours = 0.0
        self.own = 0
        """So many lists of Azure are this one's."""

    @property
    def now(self) -> datetime:
        """The time that the processes have."""
        return datetime.now(UTC) + timedelta(seconds=self._clock.seconds)

    def live(self) -> Sequence[Any]:
        """Return the clusters, as Azure lists them, page by page."""
        found: list[Any] = []
        address = httpx.URL(_LIST, params={"api-version": "2025-08-01"})
        with arm(self._operator) as azure:
            while True:
                self.own += 1
                page = azure.get(address).raise_for_status().json()
                found += page["value"]
                if "nextLink" not in page:
                    return found
                address = httpx.URL(page["nextLink"])

    def read_again(self) -> int:
        """Return how many reads were repeated so far because the machine was too slow."""
        log = (self._operator.cloud.state / "logs" / "functions.log").read_text(errors="replace")
        return sum(map(log.count, _READ_AGAIN))

    def phases(self) -> Mapping[str, str]:
        """Return each cluster's phase; a step of the clock ends connections that were open."""
        try:
            return self._operator.phases()
        except (CommandError, httpx.HTTPError):
            return {"": "Updating"}

    def until(self, hour: int, minute: int = 0) -> None:
        """Go on until the next time of the day."""
        end = self.now.replace(hour=hour, minute=minute, second=0, microsecond=0)
        end += timedelta(days=end <= self.now)
        while (left := end - self.now) > timedelta():
            near = any(abs(self.now.hour + self.now.minute / 60 - at) < 1.01 for at in (5, 17))
            self._step(min(left, QUARTER if near else HOUR))

    def _step(self, length: timedelta) -> None:
        found, hours = self.live(), length / timedelta(hours=1)
        self.ran += hours * sum(_nodes(cluster) for cluster in found)
        self.hours += hours * NODES * len(found)
        self._clock.forward(int(length.total_seconds()) + 1)
        began = time.monotonic()
        time.sleep(NOTICED)
        while WORKING & {*self.phases().values()} and time.monotonic() < began + SETTLED:
            time.sleep(0.5)


def _monday(hour: int) -> datetime:
    """Return an hour of the next Monday."""
    now = datetime.now(UTC)
    return now.replace(hour=hour, minute=0) + timedelta(days=7 - now.weekday())


def _nodes(live: Any) -> int:
    pools = live["properties"]["agentPoolProfiles"]
    return 0 if is_stopped(live) else sum(pool["count"] for pool in pools)


def measure(clusters: int, days: int, folder: Path) -> None:
    """Let a fleet be for so many days, and print."""
    clock, names = FastClock(folder / "clock"), [f"cluster-{number:03}" for number in range(clusters)]
    clock.forward(int((_monday(10) - datetime.now(UTC)).total_seconds()))
    options = Options(create_seconds=1, extra={"POLL_SECONDS": "5"})
    with LocalCloud(folder / "cloud", options, spawn=clock.spawn) as cloud:
        operator = Operator(cloud, folder / "clone")
        week = Week(operator, clock)
        operator.wait_for_status(operator.push(files(names, "cluster", "1.35")), "success", seconds=1800)
        week.until(12)
        week.ran = week.hours = 0.0
        for day in range(days):
            week.until(16, 55)
            begin, own, again = len(cloud.requests("arm")), week.own, week.read_again()
            week.until(23)
            slept = Counter(week.phases().values())["Sleeping"]
            if day == UPGRADED:
                operator.push(files(names, "cluster", "1.36"))
            week.until(5, 45)
            night = night_of(week.now - timedelta(days=1), cloud.requests("arm")[begin:], slept)
            _print(night, clusters, week.own - own, week.read_again() - again)
            week.until(12)
        running = Counter(str(own["properties"]["currentKubernetesVersion"]) for own in week.live())
        ready = Counter(week.phases().values())["Ready"]
        print(f"{clusters} clusters, {days} days: {ready} Ready at noon, versions {dict(running)}")
        saved = week.hours - week.ran
        print(f"hours of nodes: {week.ran:.0f} of {week.hours:.0f}, {saved / week.hours:.0%} saved")
        operator.close()
        cloud.kill_functions()


def _print(night: Night, clusters: int, own: int, again: int) -> None:
    most, each = max(night.clusters.values(), default=0), night.clusters.total() / clusters
    counted = f"{each:.1f} requests a cluster, {most} at most, {night.shared - own} of shared lists"
    counted += f"; {again} reads again, as the machine was too slow" if again else ""
    print(f"{night.day:10} {night.slept} slept, {counted}", flush=True)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.week")
    parser.add_argument("clusters", type=int, nargs="?", default=60)
    parser.add_argument("days", type=int, nargs="?", default=DAYS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(given.clusters, given.days, Path(folder))


if __name__ == "__main__":
    main()
