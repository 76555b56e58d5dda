"""The controllers as pods: the built program runs while a pod with its image is on a node.

It runs with the pod's own arguments and the pod's service account, so that the roles of the components file
count. Addresses and folders are those of this machine, and no leader is elected.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import yaml

from localcloud.kubernetes.world.object_store import Object
from localcloud.runtime.child_processes import Child, PartFailed
from localcloud.runtime.port_reservations import PortReservations
from tests.authority.node_agent import Program
from tests.authority.programs import NOTIFICATION, PODS, SEALED_SECRETS, SOURCE
from tests.authority.programs import Program as Binary
from tests.authority.real_cluster import RealCluster

_STOP_SECONDS = 10.0
_ELSEWHERE = re.compile(r"--(storage-path|storage-adv-addr|events-addr|enable-leader-election)(=|$)")
"""Arguments that only work inside a cluster: its names, its folders, and its namespace for the election."""
_TOKEN_SECONDS = 86400
_IN_CLUSTER = """\
mount -t tmpfs none /run
mkdir -p /run/secrets/kubernetes.io
cp -r "$1" /run/secrets/kubernetes.io/serviceaccount
shift
exec "$@"
"""
"""Gives a program the files of its service account where a kubelet mounts them, and for it alone."""


class PodPrograms:
    """Starts the programs of one cluster; ``ca`` is the certificate that git servers are trusted by.

    Artifacts are served at one address, as that of a Service, whatever pod the source-controller runs in: its
    deployment never has two.
    """

    def __init__(self, cluster: RealCluster, folder: Path, *, ca: Path) -> None:
        self._cluster, self._folder, self._ca = cluster, folder, ca
        self._binaries = {program.name: program for program in PODS}
        self._ports = PortReservations()
        self._artifacts = self._ports.reserve(None)

    def __call__(self, pod: Object) -> Program | None:
        """Return the running program of a pod, None for a pod whose image is none of the programs."""
        container = pod["spec"]["containers"][0]
        binary = self._binaries.get(container["image"].rpartition(":")[0].rpartition("/")[2])
        if binary is None:
            return None
        folder = self._folder / pod["metadata"]["name"]
        folder.mkdir(parents=True, exist_ok=True)
        kubeconfig = self._cluster.kubeconfig_with_token(self._token(pod))
        (folder / "kubeconfig").write_text(kubeconfig)
        environment = {
            "KUBECONFIG": str(folder / "kubeconfig"),
            "RUNTIME_NAMESPACE": pod["metadata"]["namespace"],
            "POD_NAMESPACE": pod["metadata"]["namespace"],
            "SSL_CERT_FILE": str(self._ca),
            "TMPDIR": str(folder),
            "HOME": str(folder),
            "NO_PROXY": "127.0.0.1",
        }
        options = [option for option in container.get("args") or () if not _ELSEWHERE.match(option)]
        if binary is SEALED_SECRETS:
            environment |= _service_account(folder / "serviceaccount", kubeconfig)
            return _Running(partial(self._sealed_secrets, folder, options, environment))
        return _Running(partial(self._flux, binary, folder, options, environment))

    def close(self) -> None:
        """Release the ports."""
        self._ports.close()

    def _flux(
        self,
        binary: Binary,
        folder: Path,
        options: Sequence[str],
        environment: Mapping[str, str],
        ports: PortReservations,
    ) -> _Started:
        health, metrics, events, receiving = (ports.reserve(None) for _ in range(4))
        more = [f"--health-addr=127.0.0.1:{health}", f"--metrics-addr=127.0.0.1:{metrics}"]
        probe = f"http://127.0.0.1:{health}/readyz"
        if binary is SOURCE:
            (folder / "data").mkdir(exist_ok=True)
            more += [f"--storage-path={folder / 'data'}"]
            more += [f"--storage-{name}=127.0.0.1:{self._artifacts}" for name in ("addr", "adv-addr")]
            # as its readiness probe does: the files are served by the leader only
            probe = f"http://127.0.0.1:{self._artifacts}/"
        if binary is NOTIFICATION:
            more += [f"--events-addr=127.0.0.1:{events}", f"--receiverAddr=127.0.0.1:{receiving}"]
        command = [str(binary.path), *options, *more]
        return self._started(folder, command, probe, environment)

    def _sealed_secrets(
        self, folder: Path, options: Sequence[str], environment: Mapping[str, str], ports: PortReservations
    ) -> _Started:
        serving, metrics = (ports.reserve(None) for _ in range(2))
        more = [f"--listen-addr=127.0.0.1:{serving}", f"--listen-metrics-addr=127.0.0.1:{metrics}"]
        inside = ["unshare", "--map-root-user", "--mount", "sh", "-ec", _IN_CLUSTER, "sh"]
        command = [*inside, str(folder / "serviceaccount"), str(SEALED_SECRETS.path), *options, *more]
        return self._started(folder, command, f"http://127.0.0.1:{serving}/healthz", environment)

    def _started(
        self, folder: Path, command: list[str], probe: str, environment: Mapping[str, str]
    ) -> _Started:
        def ready() -> bool:
            return httpx.get(probe, trust_env=False).is_success

        return _Started(ready, partial(self._cluster.run, folder.name, command, ready, environment))

    def _token(self, pod: Object) -> str:
        namespace, account = pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"]
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        spec = {"expirationSeconds": _TOKEN_SECONDS}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self._cluster.world.call("POST", path, body)["status"]["token"])


def _service_account(folder: Path, kubeconfig: str) -> Mapping[str, str]:
    """Write what a kubelet mounts for a service account; return the variables that belong to it."""
    found = yaml.safe_load(kubeconfig)
    server, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text(user["token"])
    (folder / "ca.crt").write_bytes(base64.b64decode(server["certificate-authority-data"]))
    address = urlsplit(server["server"])
    return {
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT": str(address.port),
    }


@dataclass(frozen=True)
class _Started:
    """How to start a program, and its readiness probe."""

    ready: Callable[[], bool]
    start: Callable[[], Child]


class _Running:
    def __init__(self, prepare: Callable[[PortReservations], _Started]) -> None:
        self._ports = PortReservations()
        self._started = prepare(self._ports)
        self._child: Child = self._started.start()

    def ready(self) -> bool:
        """Return whether the readiness probe of the deployment succeeds; start a program that ended again."""
        try:
            self._child.check()
            return self._started.ready()
        except httpx.HTTPError:
            return False
        except PartFailed:
            self._child = self._started.start()
            return False

    def stop(self) -> None:
        """End the program as the deletion of its pod does."""
        self._child.stop(_STOP_SECONDS)
        self._ports.close()
