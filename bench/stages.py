"""A change of a whole fleet in stages: ``python -m bench.stages [CLUSTERS] [WORKERS]``.

Virtual time on the local cloud in memory, under Azure's documented limits. Each stage has one cluster first,
which is watched, and then all others, some at a time; with ``--default`` they are those of a fleet without
any of its own. The bound is what the strategy itself allows: the time
of one cluster alone whose end is seen at once, as often as clusters follow each other, and the soaks.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, replace

from bench.parallel import ParallelCloud
from bench.rollout import CONFIG, LONGEST, OFTEN, subscription
from localcloud.azure.world.arm_resources import Timings
from shared.ports import FleetConfig
from shared.rollouts.rollout import RolloutState
from shared.rollouts.strategy import REST, at_most
from tests.support import fleet_files
from tests.support.pipeline_runs import push

OPERATION = 300.0
"""Seconds that Azure takes for an operation."""
SOAK = 600.0
SHARE = "30%"
EACH = 40
"""How many clusters a subscription has at most."""


@dataclass(frozen=True)
class Work:
    """What is changed, and by whom; ``default``: with the stages of a fleet without any of its own."""

    clusters: int
    workers: int
    stages: int = 5
    default: bool = False

    @property
    def soak(self) -> float:
        """How many seconds the first cluster of a stage is watched."""
        return 0.0 if self.default else SOAK

    @property
    def share(self) -> str:
        """How many of the others of a stage change at a time."""
        return REST if self.default else SHARE


@dataclass(frozen=True)
class Change:
    """What a change took: virtual seconds from the push to the last cluster, real ones for all, and 429s."""

    seconds: float
    real: float
    ready: int
    state: RolloutState | None
    refused: int


def change(work: Work, config: FleetConfig = CONFIG) -> Change:
    """Create the clusters, change all of them, and measure the change."""
    real = time.monotonic()
    cloud = ParallelCloud(work.workers, throttle=True, config=config)
    cloud.azure.engine.timings = Timings(create_cluster=OPERATION, update_cluster=OPERATION)
    cloud.azure.engine.subscriptions = subscriptions_of(work)
    push(cloud, files_of(work, ""))
    cloud.run(LONGEST)
    begin, refused = cloud.clock(), len(cloud.azure.limits.refusals)
    commit = push(cloud, files_of(work, "  tags: {change: all}\n"))
    cloud.run(LONGEST)
    records = list(cloud.state.clusters())
    found = cloud.state.rollout(commit)
    return Change(
        (max(record.updated for record in records) - begin).total_seconds(),
        time.monotonic() - real,
        sum(record.observed_generation == 2 for record in records),
        found.state if found else None,
        len(cloud.azure.limits.refusals) - refused,
    )


def lower_bound(work: Work) -> float:
    """Return the least seconds that the strategy allows."""
    return sum_of_stages(work, change(Work(1, 1, 1), OFTEN).seconds)


def sum_of_stages(work: Work, alone: float) -> float:
    """Return the least seconds of all stages, where one cluster alone takes so long."""
    if work.clusters <= work.stages:
        return work.stages * (alone + work.soak)
    total = 0.0
    for stage in range(work.stages):
        others = len(range(stage, work.clusters, work.stages)) - 1
        total += alone + work.soak + alone * math.ceil(others / at_most(work.share, others))
    return total


def subscriptions_of(work: Work) -> tuple[str, ...]:
    """Return the subscriptions that have the clusters."""
    return tuple(map(subscription, range(math.ceil(work.clusters / EACH))))


def files_of(work: Work, extra: str) -> dict[str, bytes]:
    """Return the fleet; ``extra`` is YAML below ``spec`` of each cluster."""
    names = [f"stage-{number}" for number in range(work.stages)]
    groups = f'[{{clusters: "1", soak: {SOAK:.0f}s}}, {{maxConcurrency: "{SHARE}"}}]'
    stages = "".join(
        f"      - {{name: {name}, select: {{environments: [{name}]}}, groups: {groups}}}\n" for name in names
    )
    files = fleet_files.fleet()
    text = files["fleet.yaml"].decode()
    start, end = text.index("  environments:"), text.index("  guards:")
    own_stages = "" if work.default else f"  rollout:\n    stages:\n{stages}"
    strategy = f"  environments: [{', '.join(names)}]\n{own_stages}"
    environment = files.pop("environments/development.yaml")
    del files["environments/production.yaml"]
    files["fleet.yaml"] = (text[:start] + strategy + text[end:]).encode()
    files |= {
        f"environments/{name}.yaml": environment.replace(b"development", name.encode()) for name in names
    }
    for number in range(work.clusters):
        name, environment_of = f"cluster-{number:05}", names[number % work.stages]
        own = f"  subscriptionId: {subscription(number // EACH)}\n  environment: {environment_of}\n"
        files[f"clusters/{name}/cluster.yaml"] = fleet_files.cluster(name, extra=own + extra)
    return files


def main() -> None:
    """Change the fleet and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.stages")
    parser.add_argument("clusters", type=int, nargs="?", default=1000)
    parser.add_argument("workers", type=int, nargs="?", default=4)
    parser.add_argument("--stages", type=int, default=5)
    parser.add_argument(
        "--poll", type=int, default=CONFIG.timing.poll_seconds, help="seconds between two reads"
    )
    parser.add_argument("--default", action="store_true", help="without spec.rollout")
    options = parser.parse_args()
    work = Work(options.clusters, options.workers, options.stages, options.default)
    whole, bound = (
        change(work, replace(CONFIG, timing=replace(CONFIG.timing, poll_seconds=options.poll))),
        lower_bound(work),
    )
    print(f"{whole.ready} of {work.clusters} clusters changed in {work.stages} stages: {whole.state}")
    print(f"makespan     {whole.seconds:8.0f} s  {whole.seconds / bound:.3f} times the lower bound")
    print(f"lower bound  {bound:8.0f} s")
    print(f"429          {whole.refused:8}")
    print(f"real time    {whole.real:8.1f} s")


if __name__ == "__main__":
    main()
