"""What the lists of a large fleet cost over the wire: ``python -m bench.lists [CLUSTERS]``.

Saves the records of new clusters through the production adapter in Azurite, and reads them as whole records,
as summaries, and as continuations. Seconds of this process's processor, and seconds that passed, which
contain Azurite's own work.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from shared.adapters.tables import storage_tables
from shared.cluster.transitions.acceptance import accept_new
from shared.ports import State
from shared.process_memory import collect_rarely
from tests.support.azurite import connect, running
from tests.support.cluster_records import NOW
from tests.support.desired_clusters import desired

WRITERS = 8


def main(clusters: int) -> None:
    """Save, read each list twice, and print the second time, when connections are open."""
    collect_rarely()  # as the app does
    records = [
        accept_new(desired(f"cluster-{number:05}"), uid="0badcafe", commit="c" * 40, now=NOW)
        for number in range(clusters)
    ]
    with running() as port, connect(port) as service:
        state = State(storage_tables(service), "bench")
        state.save(records[0])  # creates the table
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(state.save, records[1:]))
        lists: dict[str, Callable[[], Sequence[object]]] = {
            "whole records": state.clusters,
            "summaries": state.summaries,
            "continuations": state.continuations,
        }
        for name, read in lists.items():
            read()
            processor, begun = time.process_time(), time.monotonic()
            found = len(read())
            processor, seconds = time.process_time() - processor, time.monotonic() - begun
            print(f"{name:<14} {found} read: {processor:.2f} s of the processor, {seconds:.2f} s passed")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
