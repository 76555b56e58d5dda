"""What the pages of the console cost in a large fleet: ``python -m bench.console [CLUSTERS] [MILLISECONDS]``.

Saves the records through the production adapter in Azurite, and opens pages on them with a session of its
own for each. Seconds of this process's processor, bytes, calls of tables, and seconds that passed where each
call takes ``MILLISECONDS`` longer. A second visit is one within five seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from azure.core.pipeline.transport import RequestsTransport
from azure.data.tables import TableServiceClient

from bench.status import fleet_of
from shared.adapters.tables import storage_tables
from shared.app.console.recent import SECONDS
from shared.ports import Ports, State
from shared.ports.process import in_threads
from shared.process_memory import collect_rarely
from tests.support.azurite import connect, running
from tests.support.console_pages import browse

WRITERS, VIEWERS = 8, 20
OLD = SECONDS + 1
"""After so many seconds a read is old; Azurite ends a connection that was idle for five."""
COMMIT = "c" * 40
PAGES: Mapping[str, str] = {
    "first page": "/",
    "clusters": "/clusters",
    "filter by text": "/clusters?text=cluster-09",
    "filter by phase": "/clusters?phase=Failed",
    "filter by version": "/clusters?version=1.36",
    "sorted by version": "/clusters?sort=-version",
    "sorted by age": "/clusters?sort=-since",
    "cluster": "/clusters/cluster-00097",
    "plan": f"/plans/{COMMIT}",
    "rollouts": "/rollouts",
    "versions": "/versions",
    "systems": "/systems",
    "costs": "/costs",
    "activity": "/activity",
}


@dataclass
class Calls:
    """The calls of tables, and how much longer each takes."""

    longer: float = 0.0
    count: int = 0


@dataclass(frozen=True)
class Opened:
    """A page that was opened: seconds of the processor, seconds that passed, bytes, and calls of tables."""

    processor: float
    seconds: float
    size: int
    calls: int


@contextmanager
def counted() -> Iterator[Calls]:
    """Count each request that a client of Azure sends."""
    calls, send = Calls(), RequestsTransport.send

    def slower(transport: RequestsTransport, request: Any, **given: Any) -> Any:
        calls.count += 1
        time.sleep(calls.longer)
        return send(transport, request, **given)

    with patch.object(RequestsTransport, "send", slower):
        yield calls


def stored(clusters: int, service: TableServiceClient) -> Ports:
    """Return ports on tables with a fleet of so many clusters, with the clock and the threads of an app."""
    cloud = fleet_of(clusters)
    state = State(storage_tables(service), "bench")
    records = [replace(record, etag="") for record in cloud.state.clusters()]
    state.save(records[0])  # creates the table
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(state.save, records[1:]))
    for plan in filter(None, [cloud.state.plan(COMMIT)]):
        state.save_plan(replace(plan, etag=""))
    state.save_fleet(replace(cloud.state.fleet(), etag=""))
    return replace(cloud.ports, state=state, elapsed=time.monotonic, together=in_threads)


def opened(ports: Ports, address: str, calls: Calls) -> Opened:
    """Open a page."""
    before, processor, begun = calls.count, time.process_time(), time.monotonic()
    reply = browse(ports, address)
    passed = time.monotonic() - begun
    if reply.status_code != 200:
        raise SystemExit(f"{address}: {reply.status_code}")
    return Opened(time.process_time() - processor, passed, len(reply.get_body()), calls.count - before)


def main(clusters: int, milliseconds: float) -> None:
    """Open each page when its reads are old, and again; then the first one by many people at once."""
    collect_rarely()  # as the app does
    with running() as port, connect(port) as service, counted() as calls:
        ports = stored(clusters, service)
        opened(ports, "/", calls)  # imports, and opens connections
        for name, address in PAGES.items():
            time.sleep(OLD)
            first, second = opened(ports, address, calls), opened(ports, address, calls)
            calls.longer = milliseconds / 1000
            time.sleep(OLD)
            slow = opened(ports, address, calls)
            calls.longer = 0.0
            print(
                f"{name:<18} {first.processor:.2f} s of the processor, {first.size / 1000:.0f} kB, "
                f"{first.calls} calls; again {second.processor:.2f} s, {second.calls} calls; "
                f"{slow.seconds:.2f} s where a call takes {milliseconds:.0f} ms",
                flush=True,
            )
        opened(ports, "/clusters/cluster-00000", calls)
        another = opened(ports, "/clusters/cluster-00001", calls)
        print(f"another cluster within {SECONDS:.0f} s: {another.processor:.2f} s, {another.calls} calls")
        time.sleep(OLD)
        before, processor = calls.count, time.process_time()
        with ThreadPoolExecutor(VIEWERS) as pool:
            list(pool.map(lambda _: browse(ports, "/"), range(VIEWERS)))
        used = time.process_time() - processor
        print(f"{VIEWERS} people at once: {used:.2f} s of the processor, {calls.count - before} calls")


if __name__ == "__main__":
    given = [float(text) for text in sys.argv[1:3]]
    clusters, milliseconds = given + [10_000, 20][len(given) :]
    main(int(clusters), milliseconds)
