"""A new fleet over the wire: ``python -m bench.wire [CLUSTERS] [HOSTS] [FOLDER]``.

Starts the local cloud with its real protocols and so many functions hosts, pushes a fleet of new clusters,
and waits until all are Ready. The figures are seconds of the processor of the hosts, which depend little on
what else the machine does, and how often Azure was asked for what. ``FOLDER`` is another checkout whose
functions run instead, for a comparison on the same stand-ins.

In Azure the listeners of triggers are not in the Python process; in the local cloud they are threads of it.
So what these threads take is counted too, and what is left without them is shown next to the whole.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen

from bench.fleet import generate
from cli.fleet_api.client import Api
from localcloud.demo.checkout import Checkout
from localcloud.functions.triggers.listener_threads import LISTENER
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import ROOT, Options, child_environment

CREATION = 20.0
SETTLES = 10.0
"""Seconds until a new host has imported what it needs."""
LONGEST = 3600.0
COUNTS = 50
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Wire:
    """Seconds, those of the processor of each host, MiB of the largest host, and the calls to Azure.

    ``listeners`` are the seconds of the processor that the listeners of all hosts take.
    """

    seconds: float
    processor: list[float]
    listeners: float
    memory: int
    created: int
    refused: int
    kubeconfigs: int


def _wait_for(port: int) -> None:
    """Return when a host listens."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return


@contextmanager
def more_hosts(cloud: LocalCloud, number: int, app: Path) -> Iterator[list[int]]:
    """Yield the ids of so many more functions hosts of a running cloud."""
    settings = str(cloud.state / "local.settings.json")
    command = [sys.executable, "-m", "localcloud.functions.host", "--app", str(app), "--settings", settings]
    environment = child_environment(os.environ, cloud.settings)
    hosts: list[Popen[bytes]] = []
    ports = [_free_port() for _ in range(number)]
    try:
        for port in ports:
            own = ["--port", str(port), "--stop-with-parent"]
            log = (cloud.state / "logs" / f"functions-{port}.log").open("wb")
            hosts.append(Popen([*command, *own], stdin=PIPE, stdout=log, stderr=log, env=environment))
        for port in ports:
            _wait_for(port)
        yield [host.pid for host in hosts]
    finally:
        for host in hosts:
            host.terminate()
        for host in hosts:
            host.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def measure(clusters: int, hosts: int, app: Path, folder: Path) -> Wire:
    """Create so many clusters from one push."""
    options = Options(create_seconds=CREATION, extra={"ROADSTEAD_FLEET": "bench"}, app=app)
    with LocalCloud(folder / "cloud", options) as cloud, more_hosts(cloud, hosts - 1, app) as more:
        first = cloud.process("functions")
        checkout = Checkout(cloud.remote, folder / "clone")
        checkout.replace_all(generate(clusters))
        time.sleep(SETTLES)
        running = (first, *more)
        before, listening, begun = _processors(running), _listeners(running), time.monotonic()
        checkout.push("a fleet")
        with closing(Api(cloud.urls.functions, cloud.settings["API_KEY_ADMIN"])) as api:
            while (ready := _ready(api)) < clusters:
                cloud.check()
                if time.monotonic() - begun > LONGEST:
                    raise SystemExit(f"only {ready} are Ready")
                time.sleep(max(5.0, clusters / COUNTS))  # every count reads an entity of each cluster
        seconds = time.monotonic() - begun
        after, listened = _processors(running), _listeners(running)
        calls = cloud.requests("arm")
        puts = Counter(
            call["status"] for call in calls if call["method"] == "PUT" and _is_cluster(call["path"])
        )
        return Wire(
            seconds,
            [end - start for start, end in zip(before, after, strict=True)],
            listened - listening,
            max(map(_peak, running)),
            puts[201],
            sum(call["status"] == 429 for call in calls),
            sum("listClusterUserCredential" in call["path"] for call in calls),
        )


def _ready(api: Api) -> int:
    counts = api.get("clusters?limit=1")["counts"]
    return int(counts["phases"].get("Ready", 0))


def _is_cluster(path: str) -> bool:
    return path.partition("?")[0].rsplit("/", 2)[-2].lower() == "managedclusters"


def _processors(hosts: Iterable[int]) -> list[float]:
    return [_processor(Path(f"/proc/{host}/stat")) for host in hosts]


def _listeners(hosts: Iterable[int]) -> float:
    """Return the seconds of the processor of all threads that listen, and still run."""
    seconds = 0.0
    for thread in (path for host in hosts for path in Path(f"/proc/{host}/task").iterdir()):
        with suppress(OSError):  # the thread has ended meanwhile
            if (thread / "comm").read_text().strip() == LISTENER:
                seconds += _processor(thread / "stat")
    return seconds


def _processor(stat: Path) -> float:
    """Return the seconds of the processor that a process or a thread has used."""
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _peak(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))


def main(clusters: int, hosts: int, app: Path) -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory() as folder:
        found = measure(clusters, hosts, app, Path(folder))
    each = ", ".join(f"{seconds:.1f}" for seconds in found.processor)
    print(f"{clusters} clusters Ready after {found.seconds:.0f} s, {hosts} hosts")
    print(
        f"processor {each} s: {sum(found.processor) / clusters:.3f} s for each cluster, "
        f"{found.memory} MiB at most"
    )
    without = sum(found.processor) - found.listeners
    print(f"listeners took {found.listeners:.1f} s of it: {without / clusters:.3f} s for each without them")
    print(
        f"creations {found.created}, refusals {found.refused}, "
        f"{found.kubeconfigs / clusters:.2f} kubeconfigs for each cluster"
    )


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:3]]
    clusters, hosts = given + [100, 1][len(given) :]
    main(clusters, hosts, Path(sys.argv[3]) if len(sys.argv) > 3 else ROOT)
