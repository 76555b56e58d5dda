"""What the planner does at the end of one cluster of a rollout: ``python -m bench.turns [CLUSTERS]``.

A commit changes every cluster of a fleet in memory, and another one ten of them, with the stages that a fleet
has without any of its own. Counted are the calls to the state and the records that they return; times are
those of the processor.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from bench.counting import Counted
from bench.fleet import ENVIRONMENTS, generate
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.planner.planner import handle
from shared.cluster.queues.messages import PlanRequest, RolloutRequest, ToPlan
from shared.cluster.record import READY
from shared.cluster.record_parts import Condition, Phase
from shared.cluster.transitions.acceptance import accept_new
from shared.language.resolve.repository_layout import Files, blob_id
from shared.language.resolve.resolver import resolve
from shared.ports import FleetConfig, FleetRecord, PlanLimits, State

CONTINUE = RolloutRequest()


@dataclass(frozen=True)
class Turn:
    """The calls to the state, the records that they returned, and seconds of the processor."""

    calls: Counter[str]
    records: Counter[str]
    seconds: float
    started: int


@dataclass(frozen=True)
class Turns:
    """The plan of the commit, the end of a cluster when another one may start, and when none may."""

    plan: Turn
    next_starts: Turn
    none_starts: Turn


FEW = 10
"""How many clusters the small commit changes."""


def measure(clusters: int) -> Turns:
    """Change every cluster, and let some of them end, one after the other."""
    files = generate(clusters)
    return _measure(files, {name: text.replace(b"tier: t", b"tier: x") for name, text in _layers(files)})


def measure_few(clusters: int) -> Turns:
    """Change ten clusters of one environment, and let some of them end, one after the other."""
    files = generate(clusters)
    own = sorted(name for name in files if name.startswith("clusters/"))[:: len(ENVIRONMENTS)][:FEW]
    return _measure(files, {name: files[name].replace(b"team: team", b"team: other") for name in own})


def _layers(files: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    return ((name, text) for name, text in files.items() if "envir" in name)


def _measure(files: dict[str, bytes], changed: dict[str, bytes]) -> Turns:
    cloud = MemoryCloud(config=FleetConfig("bench", "example/fleet", limits=PlanLimits(plan_work=10**9)))
    first = cloud.repository.push(files)
    desired = resolve("bench", Files({path: blob_id(file) for path, file in files.items()}), files)
    for wanted in desired.clusters.values():
        cloud.state.save(accept_new(wanted, uid="0badcafe", commit=first, now=cloud.clock()))
        _end(cloud, wanted.name)
    cloud.state.save_fleet(FleetRecord(first, cloud.clock()))
    cloud.clock.advance(60)
    commit = cloud.repository.push(files | changed)
    plan = _turn(cloud, PlanRequest(commit=commit, again=True))
    _end(cloud, _changing(cloud)[0])  # the first one of the first stage
    _turn(cloud, CONTINUE)
    _end(cloud, _changing(cloud)[0])
    return Turns(plan, _turn(cloud, CONTINUE), _turn(cloud, CONTINUE))


def _turn(cloud: MemoryCloud, request: ToPlan) -> Turn:
    """Carry a request of the planner out to its last hand-over, and measure that."""
    cloud.clock.advance(10)
    before, state, began = len(_changing(cloud)), Counted(cloud.state), time.process_time()
    handle(request, replace(cloud.ports, state=cast(State, state)))
    seconds = time.process_time() - began
    return Turn(state.calls, state.records, seconds, len(_changing(cloud)) - before)


def _changing(cloud: MemoryCloud) -> list[str]:
    return [summary.name for summary in cloud.state.summaries() if summary.phase is Phase.UPDATING]


def _end(cloud: MemoryCloud, name: str) -> None:
    """Let the job of a cluster end."""
    record, now = cloud.state.cluster(name), cloud.clock()
    if record is not None:
        ready = Condition(READY, True, "Done", "", now, record.generation, now)
        job = replace(record.job, active=False)
        ended = replace(record, phase=Phase.READY, observed_generation=record.generation, job=job)
        cloud.state.save(replace(ended, conditions=(ready,)))


def main() -> None:
    """Measure a tenth of the fleet and the fleet."""
    clusters = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for size, of in ((clusters // 10, measure), (clusters, measure), (clusters, measure_few)):
        found = of(size)
        print("a commit changes all clusters:" if of is measure else f"a commit changes {FEW} clusters:")
        for name, turn in (
            ("plan of the commit", found.plan),
            ("an end, others start", found.next_starts),
            ("an end, none starts", found.none_starts),
        ):
            read = ", ".join(f"{number} {what}" for what, number in turn.records.most_common(4))
            calls = sum(turn.calls.values())
            print(f"{size:6} clusters, {name:20} {turn.started:4} start, {calls:4} calls: {read}")
            print(f"{'':26}{turn.seconds:.2f} s of the processor")


if __name__ == "__main__":
    main()
