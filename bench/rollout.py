"""A whole fleet's rollout under Azure's documented limits: ``python -m bench.rollout [CLUSTERS] [WORKERS]``.

Virtual time on the local cloud in memory. Every message that is due runs at once, so there are as many steps
at a time as there are sessions; each worker has tokens and connections of its own. Clusters use local
accounts, or Entra ID with ``--entra``. ``--subscriptions`` spreads them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bench.hosts import SESSIONS
from bench.parallel import ParallelCloud
from localcloud.azure.world import request_limits
from localcloud.azure.world.arm_resources import Timings
from localcloud.kubernetes.world.controllers import Delays
from shared.cluster.record_parts import Phase
from shared.ports import FleetConfig, Timing
from shared.ports.process import MOST
from tests.support import fleet_files
from tests.support.pipeline_runs import push

CREATION = 300.0
"""Seconds that Azure takes to create a cluster; 4 to 6 minutes are usual."""
CONFIG = FleetConfig("example", "example/fleet", timing=Timing(lease_seconds=90, poll_seconds=20))
OFTEN = replace(CONFIG, timing=replace(CONFIG.timing, poll_seconds=1))
SHARED = (request_limits.ARM_READ, request_limits.ARM_WRITE, request_limits.ANY_OTHER)
FIRST = 60.0
LONGEST = 86400.0
ENTRA = "  aadProfile: {managed: true, enableAzureRBAC: true}\n"


@dataclass(frozen=True)
class Work:
    """What is rolled out, and by whom; ``flux`` are the seconds until Flux's Deployments run."""

    clusters: int
    workers: int
    subscriptions: int = 1
    entra: bool = False
    flux: float = 0.0


@dataclass(frozen=True)
class Rollout:
    """What a rollout took: virtual seconds until the last cluster was Ready for the first time, real ones,
    calls by limit, refusals by their time in seconds.

    ``longest`` are the virtual seconds of the longest invocation by queue, ``busy`` those of all invocations,
    ``statuses`` the most of a commit.
    """

    seconds: float
    real: float
    ready: int
    calls: Counter[str]
    refused: list[float]
    longest: Mapping[str, float] = field(default_factory=dict)
    busy: float = 0.0
    statuses: int = 0

    @property
    def longest_job(self) -> float:
        """The virtual seconds of the longest invocation of a worker."""
        return max((self.longest.get(queue, 0.0) for queue in ("jobs", "changes")), default=0.0)


def roll_out(work: Work, config: FleetConfig = CONFIG) -> Rollout:
    """Create the clusters from nothing until all are Ready."""
    cloud = ParallelCloud(work.workers, throttle=True, config=config, delays=Delays(rollout=work.flux))
    cloud.azure.engine.timings = Timings(create_cluster=CREATION)
    cloud.azure.engine.subscriptions = tuple(map(subscription, range(work.subscriptions)))
    begin, real = cloud.clock(), time.monotonic()
    names = [f"cluster-{number:05}" for number in range(work.clusters)]
    files = fleet_files.all_at_once(fleet_files.fleet()) | {
        _path(name): _manifest(name, number, work) for number, name in enumerate(names)
    }
    commit = push(cloud, files)
    cloud.run(LONGEST)
    limits = cloud.azure.limits
    return Rollout(
        (max(r.updated for r in cloud.state.clusters()) - begin).total_seconds(),
        time.monotonic() - real,
        len(_ready(cloud)),
        limits.counts,
        [(at - begin).total_seconds() for _, at in limits.refusals],
        cloud.longest,
        cloud.busy,
        len(cloud.repository.statuses.history(commit)),
    )


def subscription(number: int) -> str:
    """Return the id of a subscription by its number, from 0."""
    return f"00000000-0000-0000-0000-{number + 1:012}"


def _path(name: str) -> str:
    return f"clusters/{name}/cluster.yaml"


def _manifest(name: str, number: int, work: Work) -> bytes:
    where = f"  subscriptionId: {subscription(number % work.subscriptions)}\n"
    return fleet_files.cluster(name, extra=where + (ENTRA if work.entra else ""))


def _ready(cloud: ParallelCloud) -> list[str]:
    return [record.name for record in cloud.state.clusters() if record.phase is Phase.READY]


def lower_bound(work: Work, alone: Rollout) -> float:
    """Return the least seconds in which the buckets of one subscription allow its clusters.

    A write begins a creation and a credential ends it, so those two buckets come on top of the time of a
    cluster alone whose end is seen at once. Reads happen meanwhile. A cluster needs the calls of one alone.
    """
    share = math.ceil(work.clusters / work.subscriptions)
    calls = {name: number * share for name, number in alone.calls.items()}
    waits = {limit: (calls[limit.name] - limit.burst) / limit.per_second for limit in SHARED}
    gates = max(0.0, waits[request_limits.ARM_WRITE], waits[request_limits.ANY_OTHER])
    return max(_seen_at_once(work) + gates, waits[request_limits.ARM_READ])


def bound_of_stays(work: Work, alone: Rollout, bound: float) -> float:
    """Return the least seconds with local accounts, where a wait for Flux takes a place or a kubeconfig.

    A worker that waits for Flux in its message keeps the kubeconfig, and a process has few places for that.
    Every other cluster needs a second kubeconfig. All clusters are ready in Azure at the same moment, so both
    begin at once: the last one ends when places and bucket together have served them all.
    """
    wait, credentials = alone.longest_job, request_limits.ANY_OTHER
    if work.entra or not wait:
        return bound
    places = work.workers * MOST
    needed = 2 * work.clusters - places - work.subscriptions * credentials.burst
    later = needed / (work.subscriptions * credentials.per_second + places / wait)
    return max(bound, _seen_at_once(work) + later)


def bound_of_sessions(work: Work, alone: Rollout, bound: float) -> float:
    """Return the least seconds with the sessions of so many workers.

    All clusters are ready in Azure at the same moment, and each then takes a session as long as one alone;
    not where Flux takes time, because a message may end instead.
    """
    if work.flux:
        return bound
    return max(bound, _seen_at_once(work) + work.clusters * alone.busy / (work.workers * SESSIONS))


def _seen_at_once(work: Work) -> float:
    """Return the seconds of a cluster alone whose end is seen at once."""
    return roll_out(replace(work, clusters=1, workers=1), OFTEN).seconds


def parse() -> Work:
    """Return the work that the command line describes."""
    parser = argparse.ArgumentParser(prog="python -m bench.rollout")
    parser.add_argument("clusters", type=int, nargs="?", default=200)
    parser.add_argument("workers", type=int, nargs="?", default=4)
    parser.add_argument("--subscriptions", type=int, default=1)
    parser.add_argument("--entra", action="store_true", help="clusters with Entra ID")
    parser.add_argument("--flux", type=float, default=0.0, help="seconds until Flux's Deployments run")
    return Work(**vars(parser.parse_args()))


def main() -> None:
    """Roll out and print."""
    work = parse()
    alone, whole = roll_out(replace(work, clusters=1, workers=1)), roll_out(work)
    bound = lower_bound(work, alone)
    early = sum(second < FIRST for second in whole.refused)
    sign_in = "Entra ID" if work.entra else "local accounts"
    print(
        f"{whole.ready} of {work.clusters} clusters Ready, {work.workers} workers, "
        f"{work.subscriptions} subscriptions, {sign_in}"
    )
    print(f"429 in the first minute {early}, after it {len(whole.refused) - early}")
    print(f"makespan        {whole.seconds:8.0f} s  {whole.seconds / bound:.2f} times the lower bound")
    print(f"lower bound     {bound:8.0f} s  one cluster alone {alone.seconds:.0f} s")
    stays = bound_of_stays(work, alone, bound)
    print(f"with its stays  {stays:8.0f} s  {whole.seconds / stays:.2f} times: a wait for Flux takes a place")
    sessions = bound_of_sessions(work, alone, bound)
    print(f"with sessions   {sessions:8.0f} s  {whole.seconds / sessions:.2f} times: {alone.busy:.1f} s each")
    print(
        f"kubeconfigs     {whole.calls[request_limits.ANY_OTHER.name] / work.clusters:8.2f}  of each cluster"
    )
    longest = ", ".join(f"{queue} {seconds:.0f} s" for queue, seconds in sorted(whole.longest.items()))
    print(f"invocations     the longest: {longest}")
    print(f"statuses        {whole.statuses:8}  of a commit at most")
    print(f"real time       {whole.real:8.1f} s")
    print("calls of each cluster, and alone:")
    for name, number in whole.calls.most_common():
        print(f"  {name:<32} {number / work.clusters:6.2f}  {alone.calls[name]:4}")


if __name__ == "__main__":
    main()
