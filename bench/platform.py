"""A commit that changes what Flux applies on a whole fleet: ``python -m bench.platform [CLUSTERS] [STAGES]``.

Virtual time on the local cloud in memory, under Azure's documented limits, from the push until the last
cluster has applied the commit. The stages are as in ``bench.stages``, and so is the bound. Counted is what a
fleet costs, and what a cluster does: pins that are written, what a pass of verification reads, and passes.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from bench.counting import Call, Counted, Watched
from bench.parallel import ParallelCloud
from bench.rollout import CONFIG, LONGEST, OFTEN
from bench.stages import OPERATION, Work, files_of, subscriptions_of, sum_of_stages
from localcloud.azure.world import request_limits
from localcloud.azure.world.arm_resources import Timings
from shared.ports import FleetConfig
from shared.process_memory import collect_rarely
from shared.rollouts.rollout import RolloutState
from tests.support.counted_calls import deliveries
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import Around

CHANGED = {"platform/changed.yaml": b"apiVersion: v1\nkind: Namespace\nmetadata: {name: changed}\n"}
ENTRA = "  aadProfile: {managed: true, enableAzureRBAC: true}\n"
_VERIFY = "shared.app.worker.steps.flux.verify", "verify"


@dataclass
class Inside:
    """Calls to the Kubernetes APIs: by method and kind, those of verification and the others.

    ``objects`` are how many objects verification got, ``passes`` how often it ran.
    """

    verifying: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    objects: int = 0
    passes: int = 0

    def count(self, call: Call) -> None:
        """Count a call of a step."""
        if call.method in ("server", "certificates"):  # no calls to a cluster
            return
        given = call.given[0] if call.given else ""
        kind = given["kind"] if isinstance(given, dict) else getattr(given, "kind", "")
        method = "dry run" if call.named.get("dry_run") else call.method
        name = f"{method} {call.given[1] if call.method == 'list' else kind}"
        if not _is_verifying(sys._getframe()):
            self.others[name] += 1
            return
        self.verifying[name] += 1
        self.objects += call.rows if call.found is not None else 0
        self.passes += name == "list Deployment"  # which begins a pass


class GitReads:
    """Counts what the git host is asked; its adapter remembers files and trees, which never change.

    The files of a fleet of ten thousand clusters take less memory than it has for them.
    """

    def __init__(self) -> None:
        self.calls = Counter[str]()
        self._read: set[tuple[str, Any]] = set()

    def count(self, call: Call) -> None:
        """Count a call that asks for a file, or a tree, for the first time."""
        if call.method in ("blob", "tree", "archive"):
            commit, *rest = call.given
            paths = rest[0] if rest else ("",)
            asked = {(commit, path) for path in paths}
            if asked <= self._read:
                return
            self._read |= asked
        self.calls[call.method] += 1


def _is_verifying(frame: FrameType | None) -> bool:
    while frame is not None:
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) == _VERIFY:
            return True
        frame = frame.f_back
    return False


class CountedCloud(ParallelCloud):
    """A cloud that counts what its workers ask of clusters."""

    def __init__(self, workers: int, **options: Any) -> None:
        self.inside = Inside()
        super().__init__(workers, **options)

    def connections(self) -> Any:
        """Return connections whose calls are counted."""
        inner = super().connections()

        def count(call: Call) -> None:
            self.inside.count(call)  # which is another one after the creation

        def counted(enter: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *given, **named: Watched(enter(*given, **named), count)

        return Around(inner, connect=counted(inner.connect), open=counted(inner.open))


@dataclass(frozen=True)
class Change:
    """What the commit took: virtual seconds until the last cluster had it, real ones, and calls."""

    seconds: float
    real: float
    applied: int
    state: RolloutState | None
    git: Counter[str]
    inside: Inside
    kubeconfigs: int
    refused: int
    state_calls: int
    messages: int


def change(work: Work, *, entra: bool = True, config: FleetConfig = CONFIG) -> Change:
    """Create the clusters, change what Flux applies on all of them, and measure the change."""
    cloud = CountedCloud(work.workers, throttle=True, config=config)
    cloud.azure.engine.timings = Timings(create_cluster=OPERATION, update_cluster=OPERATION)
    cloud.azure.engine.subscriptions = subscriptions_of(work)
    files = files_of(work, ENTRA if entra else "")
    push(cloud, files)
    cloud.run(LONGEST)
    reads = GitReads()
    host: Any = Watched(cloud.ports.git_host, reads.count)
    state: Any = Counted(cloud.ports.state)
    cloud.with_ports(lambda ports: replace(ports, git_host=host, state=state))
    cloud.inside, messages, limits = Inside(), deliveries(cloud), cloud.azure.limits
    before, refused = limits.counts[request_limits.ANY_OTHER.name], len(limits.refusals)
    begin, real = cloud.clock(), time.monotonic()
    commit = push(cloud, files | CHANGED)
    cloud.run(LONGEST)
    seconds = time.monotonic() - real
    records = list(cloud.state.clusters())
    found = cloud.state.rollout(commit)
    return Change(
        (max(record.updated for record in records) - begin).total_seconds(),
        seconds,
        sum(record.observed_generation == 2 for record in records),
        found.state if found else None,
        reads.calls,
        cloud.inside,
        limits.counts[request_limits.ANY_OTHER.name] - before,
        len(limits.refusals) - refused,
        state.calls.total(),
        messages.total(),
    )


def lower_bound(work: Work, config: FleetConfig = OFTEN) -> float:
    """Return the least seconds that the strategy allows, with so many seconds between two reads of a cluster.

    Flux in the local cloud applies a commit within a second, so the reads are most of what a cluster takes.
    """
    return sum_of_stages(work, change(Work(1, 1, 1), config=config).seconds)


def _each(calls: Counter[str], clusters: int) -> str:
    return ", ".join(f"{name} {count / clusters:.2f}" for name, count in calls.most_common())


def main() -> None:
    """Change the platform of the fleet and print; garbage is collected as rarely as in an app."""
    gc.freeze()
    collect_rarely()
    parser = argparse.ArgumentParser(prog="python -m bench.platform")
    parser.add_argument("clusters", type=int, nargs="?", default=1000)
    parser.add_argument("stages", type=int, nargs="?", default=5)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--local-accounts", action="store_true", help="clusters without Entra ID")
    options = parser.parse_args()
    work = Work(options.clusters, options.workers, options.stages)
    whole = change(work, entra=not options.local_accounts)
    bound, with_reads = lower_bound(work), lower_bound(work, CONFIG)
    inside, clusters = whole.inside, work.clusters
    pins = inside.others["apply GitRepository"] / clusters
    print(f"{whole.applied} of {clusters} clusters changed in {work.stages} stages: {whole.state}")
    print(f"makespan       {whole.seconds:8.0f} s  {whole.seconds / bound:.3f} times the lower bound")
    print(f"lower bound    {bound:8.0f} s")
    print(
        f"with its reads {with_reads:8.0f} s  {whole.seconds / with_reads:.3f} times: each poll is waited for"
    )
    print(f"git host       {whole.git.total():8}  " + _each(whole.git, 1))
    print(f"pins written   {pins:8.2f}  of each cluster")
    print(f"kubeconfigs    {whole.kubeconfigs / clusters:8.2f}  of each cluster; 429: {whole.refused}")
    print(f"verification   {inside.passes / clusters:8.2f}  passes of each cluster")
    print(f"  calls        {inside.verifying.total() / inside.passes:8.2f}  of a pass: ", end="")
    print(_each(inside.verifying, inside.passes))
    print(f"  objects      {inside.objects / inside.passes:8.2f}  of a pass")
    print(f"other steps    {inside.others.total() / clusters:8.2f}  calls: {_each(inside.others, clusters)}")
    print(f"state          {whole.state_calls / clusters:8.2f}  calls of each cluster")
    print(f"messages       {whole.messages / clusters:8.2f}  of each cluster")
    print(f"real time      {whole.real:8.1f} s")


if __name__ == "__main__":
    main()
