"""The Kubernetes API servers of the local cloud: a TLS port for each started cluster, on the same threads.

It is the ``ControlPlane`` to which the Azure world reports clusters and nodes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from localcloud.common.certificates import Authority
from localcloud.common.clock import system_clock
from localcloud.common.control_plane import InsideCluster, KubernetesNode
from localcloud.common.front_door import FrontDoor
from localcloud.common.http_server import HttpServers, RunningServer
from localcloud.kubernetes.wire.cluster_access import Admission, common_name, new_kubeconfig
from localcloud.kubernetes.wire.kubernetes_app import ClusterApi
from localcloud.kubernetes.world.controllers import Delays
from localcloud.kubernetes.world.kubernetes_clusters import (
    Extension,
    KubernetesClusters,
    nodes_outside,
    outside,
)
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from shared.resource_ids import ClusterId

_logger = logging.getLogger(__name__)
_THREADS, _MOST_THREADS = 4, 64
"""A watch holds a thread until it ends."""
_SETTLE_SECONDS = 0.02
_DELAYS = Delays()
LOG_NAME = "requests-kubernetes.jsonl"


@dataclass(frozen=True)
class _RunningServer:
    server: RunningServer
    door: FrontDoor
    kubeconfig: str
    closing: threading.Event


class KubernetesPlane:
    """Starts and stops API servers; a context manager.

    ``extension`` holds the controllers installed into every cluster. They run after writes and when they are
    due, and ``interval`` seconds after an error; ``delays`` are those of the built-in ones. ``accepts_token``
    decides which bearer tokens are valid. Kubeconfigs are also written to ``kubeconfig_dir``, readable by the
    owner only.
    """

    def __init__(
        self,
        authority: Authority,
        *,
        accepts_token: Callable[[str], bool],
        extension: Extension | None = None,
        interval: float = 1.0,
        log_dir: Path | None = None,
        kubeconfig_dir: Path | None = None,
        clock: Callable[[], datetime] = system_clock,
        delays: Delays = _DELAYS,
    ) -> None:
        self._authority, self._accepts_token = authority, accepts_token
        self._log_dir, self._kubeconfig_dir = log_dir, kubeconfig_dir
        self._interval, self._clock = interval, clock
        self._running: dict[ClusterId, _RunningServer] = {}
        self._lock = threading.Lock()
        self._changed, self._closing = threading.Event(), threading.Event()
        self.clusters = KubernetesClusters(clock, extension, delays=delays)
        self._controllers = threading.Thread(target=self._run_controllers, daemon=True, name="controllers")
        tls = authority.server_context(client_certificates=True)
        self._servers = HttpServers(tls=tls, threads=_THREADS, most=_MOST_THREADS)
        self._controllers.start()

    def start(self, cluster: ClusterId, nodes: Sequence[KubernetesNode]) -> str:
        """Start a cluster's API server unless it runs; return its kubeconfig."""
        with self._lock:
            self.clusters.start(cluster, nodes)
            if cluster not in self._running:
                world = self.clusters.world(cluster)
                assert world is not None  # noqa: S101
                self._running[cluster] = self._serve(cluster, world)
                world.subscribe(self._changed.set)
                self._changed.set()
            return self._running[cluster].kubeconfig

    def start_outside(self, name: str) -> str:
        """Start a cluster that is not in Azure; return its kubeconfig, with a client certificate."""
        return self.start(outside(name), nodes_outside(name))

    def set_nodes(self, cluster: ClusterId, nodes: Sequence[KubernetesNode]) -> None:
        """Set the nodes of a started cluster."""
        self.clusters.set_nodes(cluster, nodes)

    def set_power(self, cluster: ClusterId, *, on: bool) -> None:
        """Close every connection to a cluster, or answer again."""
        self.clusters.set_power(cluster, on=on)

    def set_entra(self, cluster: ClusterId, *, on: bool) -> None:
        """Accept bearer tokens at a cluster, or refuse each."""
        self.clusters.set_entra(cluster, on=on)

    def inside(self, cluster: ClusterId) -> InsideCluster | None:
        """Return the objects of a cluster for what runs in it."""
        return self.clusters.inside(cluster)

    def stop(self, cluster: ClusterId) -> None:
        """Remove a cluster's API server and all its objects."""
        with self._lock:
            running = self._running.pop(cluster, None)
            self.clusters.stop(cluster)
        if running is not None:
            running.closing.set()
            running.server.close()
            if self._kubeconfig_dir is not None:
                with suppress(FileNotFoundError):
                    self._kubeconfig_path(cluster, self._kubeconfig_dir).unlink()

    def kubeconfig(self, cluster: ClusterId) -> str:
        """Return the kubeconfig of a started cluster; raise KeyError when it is not started."""
        return self._running[cluster].kubeconfig

    def url(self, cluster: ClusterId) -> str:
        """Return the address of a started cluster's API server."""
        return self._running[cluster].server.url

    def door(self, cluster: ClusterId) -> FrontDoor:
        """Return the front door of a started cluster: its faults and its requests."""
        return self._running[cluster].door

    def close(self) -> None:
        """Stop the controllers and every API server."""
        self._closing.set()
        self._changed.set()
        self._controllers.join(5)
        with self._lock:
            running, self._running = list(self._running.values()), {}
        for cluster in running:
            cluster.closing.set()
        self._servers.close()

    def __enter__(self) -> KubernetesPlane:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self, cluster: ClusterId, world: KubernetesWorld) -> _RunningServer:
        closing = threading.Event()
        access = Admission(
            common_name(cluster), self._accepts_token, lambda: self.clusters.has_entra(cluster)
        )
        log = None if self._log_dir is None else self._log_dir / LOG_NAME
        door = FrontDoor(
            ClusterApi(world, access, closing.is_set, lambda: self.clusters.is_on(cluster)),
            f"kubernetes/{cluster.name}",
            log_file=log,
        )
        server = self._servers.serve(door)
        text = new_kubeconfig(cluster, server.url, self._authority)
        if self._kubeconfig_dir is not None:
            path = self._kubeconfig_path(cluster, self._kubeconfig_dir)
            path.touch(mode=0o600)
            path.write_text(text)
        return _RunningServer(server, door, text, closing)

    def _kubeconfig_path(self, cluster: ClusterId, folder: Path) -> Path:
        return folder / f"{cluster.name}.yaml"

    def _run_controllers(self) -> None:
        while not self._closing.is_set():
            self._changed.wait(self._pause())
            self._closing.wait(_SETTLE_SECONDS)
            self._changed.clear()
            try:
                self.clusters.reconcile()
            except Exception:
                self._changed.set()
                self._closing.wait(self._interval)
                _logger.exception("a controller failed; it runs again in the next round")

    def _pause(self) -> float | None:
        """Return the seconds until something is due, None when nothing is.

        What is due although the controllers just ran, as after an error, waits for ``interval``.
        """
        due = self.clusters.due()
        left = None if due is None else (due - self._clock()).total_seconds()
        return self._interval if left is not None and left <= 0 else left
