"""The Flux controllers as pods: the built program runs while a pod of its deployment is on a node.

It runs with the pod's own arguments and the pod's service account, so that the roles of the components file
count. Addresses and folders are those of this machine, and no leader is elected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import httpx

from localcloud.kubernetes.world.object_store import Object
from localcloud.runtime.child_processes import Child, PartFailed
from localcloud.runtime.port_reservations import PortReservations
from tests.authority.node_agent import Program
from tests.authority.programs import FLUX, NOTIFICATION, SOURCE
from tests.authority.programs import Program as Binary
from tests.authority.real_cluster import RealCluster

_STOP_SECONDS = 10.0
_ELSEWHERE = re.compile(r"--(storage-path|storage-adv-addr|events-addr|enable-leader-election)(=|$)")
"""Arguments that only work inside a cluster: its names, its folders, and its namespace for the election."""
_TOKEN_SECONDS = 86400


class FluxPods:
    """Starts the programs of one cluster; ``ca`` is the certificate that git servers are trusted by.

    Artifacts are served at one address, as that of a Service, whatever pod the source-controller runs in: its
    deployment never has two.
    """

    def __init__(self, cluster: RealCluster, folder: Path, *, ca: Path) -> None:
        self._cluster, self._folder, self._ca = cluster, folder, ca
        self._binaries = {program.name: program for program in FLUX}
        self._ports = PortReservations()
        self._artifacts = self._ports.reserve(None)

    def __call__(self, pod: Object) -> Program | None:
        """Return the running program of a Flux pod, None for any other pod."""
        container = pod["spec"]["containers"][0]
        binary = self._binaries.get(container["image"].rpartition(":")[0].rpartition("/")[2])
        if binary is None:
            return None
        folder = self._folder / pod["metadata"]["name"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kubeconfig").write_text(self._cluster.kubeconfig_with_token(self._token(pod)))
        environment = {
            "KUBECONFIG": str(folder / "kubeconfig"),
            "RUNTIME_NAMESPACE": pod["metadata"]["namespace"],
            "SSL_CERT_FILE": str(self._ca),
            "TMPDIR": str(folder),
            "HOME": str(folder),
            "NO_PROXY": "127.0.0.1",
        }
        arguments = container.get("args") or ()
        return _FluxPod(self._cluster, binary, arguments, folder, environment, self._artifacts)

    def close(self) -> None:
        """Release the ports."""
        self._ports.close()

    def _token(self, pod: Object) -> str:
        namespace, account = pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"]
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        spec = {"expirationSeconds": _TOKEN_SECONDS}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self._cluster.world.call("POST", path, body)["status"]["token"])


class _FluxPod:
    def __init__(
        self,
        cluster: RealCluster,
        binary: Binary,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        artifacts: int,
    ) -> None:
        self._ports = PortReservations()
        health, metrics, events, receiving = (self._ports.reserve(None) for _ in range(4))
        options = [argument for argument in arguments if not _ELSEWHERE.match(argument)]
        options += [f"--health-addr=127.0.0.1:{health}", f"--metrics-addr=127.0.0.1:{metrics}"]
        if binary is SOURCE:
            (folder / "data").mkdir(exist_ok=True)
            options += [f"--storage-path={folder / 'data'}"]
            options += [f"--storage-{name}=127.0.0.1:{artifacts}" for name in ("addr", "adv-addr")]
        if binary is NOTIFICATION:
            options += [f"--events-addr=127.0.0.1:{events}", f"--receiverAddr=127.0.0.1:{receiving}"]
        self._probe = f"http://127.0.0.1:{health}/readyz"
        if binary is SOURCE:  # as its readiness probe does: the files are served by the leader only
            self._probe = f"http://127.0.0.1:{artifacts}/"
        command = [str(binary.path), *options]
        self._start = partial(cluster.run, folder.name, command, self.ready, environment)
        self._child: Child = self._start()

    def ready(self) -> bool:
        """Return whether the readiness probe of the deployment succeeds; start a program that ended again."""
        try:
            self._child.check()
            return httpx.get(self._probe, trust_env=False).is_success
        except httpx.HTTPError:
            return False
        except PartFailed:
            self._child = self._start()
            return False

    def stop(self) -> None:
        """End the program as the deletion of its pod does."""
        self._child.stop(_STOP_SECONDS)
        self._ports.close()
