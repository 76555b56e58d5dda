"""What the Kubernetes APIs of the local cloud cost: ``python -m bench.clusters [CLUSTERS] [WORKERS]``.

A process of its own serves the clusters with the local Flux. It is measured while nobody asks it anything,
and while the production adapter installs Flux's components and a source in each cluster, over TLS.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory

from bench.components import EXAMPLE
from localcloud.common.certificates import Authority
from localcloud.common.clock import system_clock
from localcloud.flux.flux_controllers import FluxOfClusters, SourceRevision
from localcloud.kubernetes.wire.kubernetes_servers import KubernetesPlane
from shared.adapters.kubernetes import KubernetesConnections
from shared.app.worker.steps.flux.components import install, live_of
from shared.cluster.outcomes import Wait
from shared.kubernetes import flux_objects
from shared.kubernetes.flux_readiness import REQUESTED_AT, Ready, readiness
from shared.resource_ids import ClusterId

QUIET_SECONDS = 10.0
FILES = {"app/one.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: default}\n"}
REQUEST = "2026-01-01T00:00:00Z"
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """What a process used so far: seconds of the processor, and how often its threads were woken."""

    seconds: float
    woken: int
    threads: int

    @classmethod
    def of(cls, process: int) -> Usage:
        """Read it."""
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        woken = 0
        for task in tasks:
            lines = (task / "status").read_text().splitlines()
            woken += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))
        return cls((int(fields[11]) + int(fields[12])) / TICKS, woken, len(tasks))


def cluster_of(number: int) -> ClusterId:
    """Return the identity of a cluster."""
    name = f"cluster-{number:04}"
    return ClusterId("00000000-0000-0000-0000-000000000001", f"rg-{name}", name)


def serve(clusters: int, folder: Path) -> None:
    """Serve so many clusters until the input ends."""
    source = SourceRevision("1" * 40, lambda: FILES)
    with KubernetesPlane(
        Authority(),
        accepts_token=lambda _: False,
        extension=FluxOfClusters(lambda _url, _branch: source, system_clock),
        kubeconfig_dir=folder,
    ) as plane:
        for number in range(clusters):
            plane.start(cluster_of(number), [])
        print("ready", flush=True)
        sys.stdin.read()


@contextmanager
def served(clusters: int, folder: Path) -> Iterator[int]:
    """Yield the id of a process that serves so many clusters."""
    command = [sys.executable, "-m", "bench.clusters", "serve", str(clusters), str(folder)]
    with Popen(command, stdin=PIPE, stdout=PIPE) as process:
        assert process.stdin  # noqa: S101
        assert process.stdout  # noqa: S101
        process.stdout.readline()
        yield process.pid
        process.stdin.close()


def bring_up(number: int, folder: Path) -> None:
    """Install Flux and its source in a cluster, and wait until it has applied the source."""
    cluster = cluster_of(number)
    text = (folder / f"{cluster.name}.yaml").read_text()
    with closing(KubernetesConnections(lambda _: text, aad_token=None, clock=system_clock)) as connections:
        api = connections.connect(cluster)
        manifests = flux_objects.components(EXAMPLE.read_bytes())
        while isinstance(wait := install(manifests, live_of(manifests, api), api), Wait):
            time.sleep(wait.seconds)
        named = {"name": flux_objects.NAMESPACE, "namespace": flux_objects.NAMESPACE}
        metadata = {**named, "annotations": {REQUESTED_AT: REQUEST}}
        source, sync = flux_objects.SOURCE, flux_objects.KUSTOMIZATION
        spec = {"interval": "1m0s", "url": "https://example.org/fleet", "ref": {"branch": "main"}}
        ref = {"kind": source.kind, "name": source.name}
        path = {"interval": "10m0s", "path": "./app", "prune": True, "sourceRef": ref}
        for one, content in ((source, spec), (sync, path)):
            api.apply(
                {"apiVersion": one.api_version, "kind": one.kind, "metadata": metadata, "spec": content}
            )
        while not isinstance(readiness(api.get(sync) or {"metadata": {}}, REQUEST), Ready):
            time.sleep(0.5)


def main(clusters: int, workers: int) -> None:
    """Measure, and print."""
    with TemporaryDirectory() as folder, served(clusters, Path(folder)) as process:
        print(f"{clusters} clusters, {workers} workers")
        _quiet("idle, without Flux", process)
        before, begun = Usage.of(process), time.monotonic()
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(bring_up, range(clusters), [Path(folder)] * clusters))
        after = Usage.of(process)
        seconds, took = after.seconds - before.seconds, time.monotonic() - begun
        print(f"Flux in each: {took:.1f} s, {after.threads} threads")
        hundred = 100 / clusters
        woken = (after.woken - before.woken) * hundred
        print(f"per 100 clusters: {seconds * hundred:.2f} s of the processor, {woken:.0f} wake-ups")
        _quiet("idle, with Flux   ", process)


def _quiet(title: str, process: int) -> None:
    before = Usage.of(process)
    time.sleep(QUIET_SECONDS)
    after = Usage.of(process)
    woken = (after.woken - before.woken) / QUIET_SECONDS
    percent = 100 * (after.seconds - before.seconds) / QUIET_SECONDS
    print(f"{title}: {after.threads} threads, {woken:.0f} wake-ups a second, {percent:.1f}% of a core")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        given = [int(text) for text in sys.argv[1:]]
        main(*(given + [100, 8][len(given) :]))
