"""What a push costs, by the size of the fleet: ``python -m bench.push [CLUSTERS] [CHANGED]``.

Plans a generated fleet as the planner does, on a repository and a state in memory: first from nothing, then
after a push that changes a few clusters, in the parts tree, records, resolve and plan. A tenth of the fleet
is measured too, so that the growth shows. Seconds are those of the processor; the calls are what counts.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar, cast

from bench.counting import Counted
from bench.fleet import cluster_file, generate
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.planner.branch import needs_confirmation
from shared.app.repository import PlanInputs, read_files, read_known, resolved, save_fingerprints
from shared.cluster.queues.messages import PlanRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.transitions.acceptance import accept_change, accept_new
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.work import Work
from shared.plan.make_plan import make_plan
from shared.plan.plan import Plan
from shared.ports import FleetConfig, FleetRecord, Ports, State
from shared.process_memory import collect_rarely

NOW = datetime(2026, 1, 1, tzinfo=UTC)
T = TypeVar("T")


class Bench:
    """A fleet in memory, the calls that a plan of it makes, and the seconds of its parts."""

    def __init__(self, clusters: int) -> None:
        self.cloud = MemoryCloud(config=FleetConfig("bench", "example/fleet"))
        self.files = generate(clusters)
        self.host, self.state = Counted(self.cloud.git_host), Counted(self.cloud.state)
        self.seconds: dict[str, float] = {}
        self.head = ""
        self.ports: Ports = replace(
            self.cloud.ports,
            git_host=self.host,
            state=cast(State, self.state),
        )

    def plan(self, files: Mapping[str, bytes]) -> tuple[Plan, DesiredFleet]:
        """Push the files and plan them, and record what the plan accepts."""
        self.cloud.repository.push(files)
        self.host.calls.clear()
        self.state.calls.clear()
        records = self._timed(
            "records", lambda: {record.name: record for record in self.ports.state.clusters()}
        )
        recorded = self._timed("fingerprints", lambda: read_known(records, self.ports))
        read = self.ports.git_host.read_head("main")
        head, last = read.commit, FleetRecord(commit=self.head)
        descends = self.ports.git_host.is_descendant
        if needs_confirmation(
            PlanRequest(commit=head), read, last, is_descendant=descends, pushed_at=lambda: read.at
        ):
            raise SystemExit("the head was a stale read")
        self.head = head
        tree = self._timed("tree", lambda: read_files(head, self.ports))
        desired = self._timed("resolve", lambda: resolved(head, tree, recorded, self.ports, Work()).desired)
        if desired.problems:
            raise SystemExit(f"the generated fleet has problems: {desired.problems[0]}")
        plan = self._timed("plan", lambda: make_plan(head, desired, records, now=NOW))
        inputs = PlanInputs(desired, records, recorded)
        self._timed("save fingerprints", lambda: save_fingerprints(plan, inputs, self.ports))
        self._record(plan, desired, records)
        return plan, desired

    def _timed(self, part: str, work: Callable[[], T]) -> T:
        before = time.process_time()
        result = work()
        self.seconds[part] = time.process_time() - before
        return result

    def _record(self, plan: Plan, desired: DesiredFleet, records: Mapping[str, ClusterRecord]) -> None:
        for item in plan.items:
            if item.acts:
                cluster, record = desired.clusters[item.cluster], records.get(item.cluster)
                if record is None:
                    made = accept_new(cluster, uid="0badcafe", commit=plan.commit, now=NOW)
                else:
                    made = accept_change(record, cluster, commit=plan.commit, now=NOW)
                self.cloud.state.save(made)
        self.cloud.state.clusters()  # it reads what is saved once, when somebody asks for it

    def show(self, title: str, plan: Plan, desired: DesiredFleet) -> None:
        """Print what a plan cost."""
        resolved = len(desired.clusters.keys() - desired.unchanged)
        print(f"{title}: {plan.summary}")
        print(f"  blobs read {self.host.calls['blob']}, clusters resolved {resolved}")
        print(f"  calls to the repository {self.host.calls.total()}: {_words(self.host.calls)}")
        print(f"  calls to the state {self.state.calls.total()}: {_words(self.state.calls)}")
        parts = ", ".join(f"{part} {seconds:.3f}" for part, seconds in self.seconds.items())
        print(f"  seconds {sum(self.seconds.values()):.3f}: {parts}")


def _words(calls: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(calls.items()))


def measure(clusters: int, changed: int) -> None:
    """Plan a fleet from nothing, and then a push that changes some of its clusters."""
    bench = Bench(clusters)
    bench.show(f"{clusters} clusters, first plan", *bench.plan(bench.files))
    edits = dict(cluster_file(number, count=4) for number in range(changed))
    files = bench.files | {path: text.encode() for path, text in edits.items()}
    bench.show(f"{clusters} clusters, {changed} changed", *bench.plan(files))


def main() -> None:
    """Measure a tenth of the fleet and the fleet."""
    given = [int(text) for text in sys.argv[1:]]
    clusters, changed = given + [10_000, 5][len(given) :]
    collect_rarely()  # as the app does
    measure(max(changed, clusters // 10), changed)
    measure(clusters, changed)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak memory {peak} MiB, with both fleets, their files and their state")


if __name__ == "__main__":
    main()
