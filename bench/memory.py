"""How many new clusters a core handles in memory: ``python -m bench.memory [CLUSTERS] [FOLDER]``.

One thread, the local cloud in memory, and an Azure that takes no time: what is left is the work of the
product and of the stand-ins. ``FOLDER`` is another checkout. The two run in turns, three times each in a
process of its own, because seconds of the processor vary with what else the machine does; the fewest count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from localcloud.azure.world.arm_resources import Timings
from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports import FleetConfig
from shared.process_memory import collect_rarely
from tests.support import fleet_files
from tests.support.pipeline_runs import push

ROOT = Path(__file__).parents[1]
CONFIG = FleetConfig("example", "example/fleet")
TURNS = 3


def measure(clusters: int) -> float:
    """Create so many clusters; return the seconds of the processor."""
    collect_rarely()  # as the app does
    cloud = MemoryCloud(config=CONFIG)
    cloud.azure.engine.timings = Timings(create_cluster=0.0)
    files = fleet_files.fleet(*(f"cluster-{number:05}" for number in range(clusters)), budget=clusters)
    before = time.process_time()
    push(cloud, files)
    cloud.run(86400)
    seconds = time.process_time() - before
    phases = Counter(record.phase.value for record in cloud.state.clusters())
    if phases != {"Ready": clusters}:
        raise SystemExit(f"not every cluster is Ready: {phases}")
    return seconds


def _apart(clusters: int, folder: Path) -> float:
    """Measure a checkout by its own bench, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "bench.memory", str(clusters), "--alone"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main(clusters: int, folders: list[Path]) -> None:
    """Measure each checkout in turn, and print the best of each."""
    best: dict[Path, float] = {}
    for _ in range(TURNS):
        for folder in folders:
            seconds = _apart(clusters, folder)
            best[folder] = min(best.get(folder, seconds), seconds)
    for folder, seconds in best.items():
        each = 1000 * seconds / clusters
        print(f"{folder}: {clusters / seconds:.1f} clusters a second and core, {each:.1f} ms for each")
    if len(best) == 2:
        ours, theirs = best.values()
        print(f"{theirs / ours:.2f} times as many as the other checkout")


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    if "--alone" in sys.argv:
        print(measure(number))
    else:
        main(number, [ROOT, *(Path(folder).resolve() for folder in sys.argv[2:])])
